"""Archives of scripts on servers beside a simulated site: a Kafka topic, an index of Elasticsearch.

Each keeps the scripts of some jobs of the Slurm that is beside the site as well. They are asked for them when
a person looks at one, so that this is done while they fault: the screen has to say that they do not answer.
"""

import json
import re
import time
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.brokers_between import HOST, BrokersBetween
from benchmarks.brokers_between import Mood as BrokerMood
from benchmarks.moody_server import Mood, MoodyServer, Question, Reply
from benchmarks.sides import LASTS_S, Fault, Side, Wait
from benchmarks.tour import ENTER
from jobtui.model.scripts import Outcome

INDEX = TOPIC = "sarchive"
KEPT_AT_MOST = 100
"""Documents in the index, the newest."""
OTHERS = 1_000_000
"""Numbers of jobs that nobody asks for begin there."""
LOOKED = 15
"""So many times as long as a fault may it take until the screen says that there is no answer."""
FLUSHED_WITHIN_S = 10.0
SOUGHT = re.compile(rb'"id\.keyword": ?"(\d+)"')


def keys_to_script(number: str) -> tuple[str, ...]:
    """What is typed to see the script of a job of Slurm."""
    return (":", f"goto slurm/{number}{ENTER}", "s")


def document_of(number: str, script: str) -> dict[str, Any]:
    """A script as SArchive sends it."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime())
    environment = {"USER": "jdoe", "HOME": "/home/jdoe"}
    return {
        "id": number, "timestamp": now, "cluster": "huppel", "script": script, "environment": environment,
    }  # fmt: skip


class ServerArchiveSide(Side):
    """What both have in common: that they are looked at while they fault, and what the screen must say."""

    job = ""
    """The number of the job whose script is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = keys_to_script(self.job)
        self.shown = f"echo {self.name} has kept job {self.job}"
        self._is_met = False
        self._kept = 0

    def saw(self, screen: str) -> None:
        """Take note of whether it is said that this does not answer."""
        self._is_met |= any(
            f"{self.source} {outcome}" in screen for outcome in (Outcome.NO_ANSWER, Outcome.DENIED)
        )

    @abstractmethod
    def _be(self, mood: Any) -> None:
        """Answer in another way from now on."""

    def _in_mood(self, mood: Any, well: Any, wait: Wait) -> None:
        """Be so until somebody who looks is told of it."""
        self._is_met, waits = False, 0
        self._be(mood)
        while not self._is_met and waits < LOOKED:
            wait(LASTS_S)
            waits += 1
        self._be(well)
        if not self._is_met:
            self.missed.append(f"{mood.name}: the screen does not say that it does not answer")

    def _next(self) -> dict[str, Any]:
        """The script of one more job."""
        self._kept += 1
        return document_of(str(OTHERS + self._kept), "#!/bin/sh\nsleep 1\n")

    def _looked_at(self) -> dict[str, Any]:
        return document_of(self.job, f"#!/bin/sh\n{self.shown}\n")


class ElasticSide(ServerArchiveSide):
    """An index of Elasticsearch, as far as it is asked: `_doc`, and `_search` by number."""

    name, job = "elastic", "3"

    def __init__(self) -> None:
        super().__init__()
        self._documents = {self.job: self._looked_at()}
        self._server = MoodyServer(self._answer)
        self.source = f"{self._server.url}/{INDEX}"
        self.flags = ("--elastic", self.source)

    def tick(self) -> None:
        """One more script, and one less."""
        document = self._next()
        self._documents[document["id"]] = document
        self._documents.pop(str(OTHERS + self._kept - KEPT_AT_MOST), None)

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls a server."""
        return {
            name: partial(self._in_mood, mood, Mood.WELL)
            for name, mood in (
                ("answers 500", Mood.FAILS), ("hangs", Mood.HANGS), ("breaks off", Mood.BREAKS),
                ("refuses connections", Mood.REFUSES), ("answers 401", Mood.DENIES),
                ("answers a page", Mood.PAGE), ("answers half", Mood.HALF),
            )
        }  # fmt: skip

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _be(self, mood: Mood) -> None:
        self._server.mood = mood

    def _answer(self, question: Question) -> Reply:
        index, _, rest = question.path.lstrip("/").partition("/")
        if index != INDEX:
            return _replied(404, {"error": {"type": "index_not_found_exception"}})
        if question.method == "GET" and rest.startswith("_doc/"):
            return self._document(rest.removeprefix("_doc/"))
        if question.method == "POST" and rest == "_search":
            return self._found(question.body)
        return _replied(405, {"error": "method not allowed"})

    def _document(self, number: str) -> Reply:
        document = self._documents.get(number)
        if document is None:
            return _replied(404, {"_index": INDEX, "_id": number, "found": False})
        return _replied(200, {"_index": INDEX, "_id": number, "found": True, "_source": document})

    def _found(self, query: bytes) -> Reply:
        sought = [number.decode() for number in SOUGHT.findall(query)]
        hits = [{"_id": n, "_source": self._documents[n]} for n in sought if n in self._documents]
        return _replied(200, {"hits": {"total": {"value": len(hits)}, "hits": hits}})


class KafkaSide(ServerArchiveSide):
    """A topic of librdkafka's mock cluster, which lives in this process, behind what can fault."""

    name, job = "kafka", "7"

    def __init__(self) -> None:
        from confluent_kafka import Producer

        super().__init__()
        self._skipped = 0
        self._producer = Producer(
            {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 0}
        )
        broker = next(iter(self._producer.list_topics(timeout=FLUSHED_WITHIN_S).brokers.values()))
        self._brokers = BrokersBetween(broker.port)
        self.source = f"{HOST}:{self._brokers.port}/{TOPIC}"
        self.flags = ("--kafka", self.source)
        self._send(json.dumps(self._looked_at()).encode())

    def tick(self) -> None:
        """One more script."""
        self._send(json.dumps(self._next()).encode())

    @property
    def faults(self) -> Mapping[str, Fault]:
        """What befalls brokers and messages."""
        moods = (
            ("brokers gone", BrokerMood.REFUSES), ("brokers hang", BrokerMood.HANGS),
            ("brokers break off", BrokerMood.BREAKS), ("brokers babble", BrokerMood.BABBLES),
        )  # fmt: skip
        of_brokers = {name: partial(self._in_mood, mood, BrokerMood.WELL) for name, mood in moods}
        return {**of_brokers, "a message that is no script": self._senseless}

    def wrong(self, told: Mapping[str, Any]) -> list[str]:
        """Also other messages than those that made no sense."""
        skipped = next((skipped for name, _, skipped, _ in told["sources"] if name == self.source), 0)
        other = [] if skipped == self._skipped else [f"{self.name}: {skipped} skipped, not {self._skipped}"]
        return [*super().wrong(told), *other]

    def close(self) -> None:
        """End the brokers, and what stands before them."""
        self._brokers.close()

    def _be(self, mood: BrokerMood) -> None:
        self._brokers.be(mood)
        self.tick()

    def _send(self, message: bytes) -> None:
        self._producer.produce(TOPIC, message)
        self._producer.flush(FLUSHED_WITHIN_S)
        self.written += 1

    def _senseless(self, wait: Wait) -> None:
        self._skipped += 1
        self._send(b"\xff no JSON")
        wait(LASTS_S)


def _replied(status: int, document: Mapping[str, Any]) -> Reply:
    return Reply(status, json.dumps(document).encode())

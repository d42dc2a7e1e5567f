"""The server of the endurance run answers well, or as it is told to be in trouble."""

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from benchmarks.moody_server import Mood, MoodyServer, Question, Reply

FAULTS = {
    Mood.BREAKS: httpx.RemoteProtocolError,
    Mood.HALF: httpx.RemoteProtocolError,
    Mood.HANGS: httpx.ReadTimeout,
    Mood.REFUSES: httpx.ConnectError,
}


def echo(question: Question) -> Reply:
    return Reply(200, f'"{question.method} {question.path} {len(question.body)}"'.encode())


@pytest.fixture
def server() -> Iterator[MoodyServer]:
    with closing(MoodyServer(echo)) as server:
        yield server


def test_it_answers_what_it_is_asked_and_counts(server: MoodyServer) -> None:
    assert httpx.get(f"{server.url}/a?b=1").json() == "GET /a?b=1 0"
    assert httpx.post(f"{server.url}/c", content=b"123").json() == "POST /c 3"
    assert server.asked == 2
    server.close()
    server.close()


@pytest.mark.parametrize(("mood", "status"), [(Mood.FAILS, 500), (Mood.DENIES, 401), (Mood.PAGE, 200)])
def test_in_some_trouble_it_answers_something_else(server: MoodyServer, mood: Mood, status: int) -> None:
    server.mood = mood
    answer = httpx.get(server.url)
    assert (answer.status_code, b"GET" in answer.content) == (status, False)


@pytest.mark.parametrize("mood", FAULTS)
def test_in_other_trouble_it_does_not_answer_and_is_well_again(server: MoodyServer, mood: Mood) -> None:
    with httpx.Client(timeout=0.5) as client:
        assert client.get(server.url).status_code == 200
        server.mood = mood
        for _ in range(2):
            with pytest.raises(httpx.HTTPError):
                client.get(server.url)
        with pytest.raises(FAULTS[mood]):
            httpx.get(server.url, timeout=0.5)
        server.mood = Mood.WELL
        assert client.get(server.url).status_code == 200

"""What names an archive of job scripts: a directory, an index of Elasticsearch, a topic of Kafka."""

import re

from jobtui.model.specs import SourceSpec
from jobtui.model.trace_specs import parse_server

_CLUSTER = re.compile(r"(?P<cluster>\w[\w.-]*)=(?P<path>.*)", re.ASCII | re.DOTALL)
_BROKERS = re.compile(r"[\w.:\[\]-]+(?:,[\w.:\[\]-]+)*/[\w.-]{1,249}", re.ASCII)


def split_cluster(text: str) -> tuple[str, str]:
    """The label of a cluster and the path behind it; a path that has that form is given as `./a=b`."""
    found = _CLUSTER.fullmatch(text)
    return (found["cluster"], found["path"]) if found else ("", text)


def parse_archive(text: str) -> SourceSpec:
    """The source that `--archive [CLUSTER=]DIR` names. Raises ValueError when there is no directory in it."""
    label, path = split_cluster(text)
    if not path.strip() or "\0" in path:
        raise ValueError("expected a directory, or CLUSTER=DIR")
    return SourceSpec("archive", path, label=label)


def parse_elastic(text: str) -> SourceSpec:
    """The source that `--elastic URL/INDEX` names. Raises ValueError for what is none."""
    spec = parse_server("elastic", text)
    if "/" not in spec.target.partition("://")[2]:
        raise ValueError("the index is missing: expected http://host:port/index")
    return spec


def parse_kafka(text: str) -> SourceSpec:
    """The source that `--kafka BROKERS/TOPIC` names. Raises ValueError for what is none."""
    text = text.strip()
    if not _BROKERS.fullmatch(text):
        raise ValueError("expected host:port[,host:port...]/topic")
    return SourceSpec("kafka", text)

"""Sites of which commands are asked: the captures, and what stands in for the systems that are not files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.backends.archive.captured import FIXTURES as ARCHIVES
from tests.balsam_server import TOKEN, RecordedBalsam, write_login
from tests.commands.running import sources_of
from tests.condor import CONDOR
from tests.loopback import served
from tests.slurm_stand_in import StandIn
from tests.trace_servers import Answers, Jaeger, Site, Spans, Tempo
from tests.tracing import CAPTURES as TRACES

FILES: dict[str, list[str]] = {
    "none": [],
    "records": sources_of("local")[:2],
    "condor": [f"--condor-log={CONDOR / name}" for name in ("cluster.log", "81419552.log", "job.ad")],
    "spans": [f"--trace-file={TRACES / name}" for name in ("job-fail.otlp.pb", "job-fail.logs.json")],
    "scripts": [f"--archive=huppel={ARCHIVES / 'slurm-daily'}"],
}
SERVERS: dict[str, Callable[[Spans], Answers]] = {"jaeger": Jaeger, "tempo": Tempo}

Flags = Callable[[str], Sequence[str]]


@pytest.fixture
def flags(tmp_path: Path, plain_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flags]:
    """Gives the flags that name all sources of a site."""
    with ExitStack() as stack:

        def of(site: str) -> Sequence[str]:
            if site == "slurm":
                (tmp_path / "slurm").mkdir()
                monkeypatch.setenv("PATH", StandIn(tmp_path / "slurm").captured().search_path)
                return ["--slurm=local"]
            if site == "balsam":
                url = stack.enter_context(served(RecordedBalsam()))
                write_login(plain_environment / ".balsam" / "client.yml", url, TOKEN)
                return [f"--balsam={url}", "--since=2026-11-20T12:00:00Z"]
            if site in SERVERS:
                url = stack.enter_context(served(Site(SERVERS[site](Spans()), "/base")))
                return [f"--{site}={url}"]
            return sources_of(site) if site not in FILES else FILES[site]

        yield of

"""What the pages in docs/ show of the program: command lines, what they print, and the data they were run on.

    <!-- on docker -->
    ```console
    $ jobtui explain VUlhaMOD-tD9ZqDpL-heightWeightReport
    program_failed  confidence 0.95
    ...
    ```

A line `...` stands for lines left out, `...` at the end of a line for the rest of it. To see what is printed:

    python -m tests.excerpts docker explain VUlhaMOD-tD9ZqDpL-heightWeightReport
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jobtui.demo.live import LiveDemo
from jobtui.memory.database import FILE_NAME
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_rfc3339
from tests.commands.running import AT, Ran, environment, jobtui
from tests.memory.runs import a_run, written
from tests.rows import FIXTURES, table
from tests.slurm_stand_in import StandIn

SHOWN = re.compile(r"^<!-- on ([\w-]+) -->\n```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
HERE = "/srv/sirepo"
"""Where pages pretend to be."""

LEFT_OUT = "..."
DEMO_AT = 1_795_208_400
"""When demos are looked at, seconds since the epoch."""


class Excerpt(NamedTuple):
    page: Path
    place: str
    command: str
    lines: tuple[str, ...]


def excerpts(page: Path) -> Iterator[Excerpt]:
    for place, block in SHOWN.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield Excerpt(page, place, command, tuple(lines))


def first_missing(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """The first line that is shown and not printed there, or the first that is left out unsaid."""
    at, free = 0, False
    for line in shown:
        if line.strip() == LEFT_OUT:
            free = True
            continue
        here = range(at, len(printed) if free else min(at + 1, len(printed)))
        found = next((number for number in here if _is(line, printed[number])), None)
        if found is None:
            return line
        at, free = found + 1, False
    return None if free else next((line for line in printed[at:] if line), None)


def _is(shown: str, printed: str) -> bool:
    printed = printed.rstrip()
    if shown.endswith(LEFT_OUT):
        return printed.startswith(shown.removesuffix(LEFT_OUT).rstrip())
    return shown == printed


def linked(told: Mapping[str, Any]) -> Callable[[Path], Mapping[str, str]]:
    def build(place: Path) -> Mapping[str, str]:
        whole = FIXTURES / told.get("all_of", "")
        links = {path.name: path for path in whole.iterdir()} if "all_of" in told else told["links"]
        for name, target in links.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).symlink_to(FIXTURES / target)
        return {f"JOBTUI_{name}": value for name, value in ({"AT": AT} | told["settings"]).items()}

    return build


def demo(incident: str, seed: int = 7) -> Callable[[Path], Mapping[str, str]]:
    def build(place: Path) -> Mapping[str, str]:
        LiveDemo(place, seed=seed, incident=incident, clock=FixedClock(Nanos(DEMO_AT * SECOND))).prepare()
        return {
            "JOBTUI_SRDB": "db",
            "JOBTUI_LOG": "supervisor=supervisor.log;server=server.log",
            "JOBTUI_TRACE_FILE": "spans.jsonl",
            "JOBTUI_ARCHIVE": "archive",
            "JOBTUI_AT": to_rfc3339(Nanos(DEMO_AT * SECOND)),
        }

    return build


def waiting(place: Path) -> Mapping[str, str]:
    """A cluster of Slurm in which some thirty jobs wait, as it was captured."""
    cluster = StandIn(place)
    cluster.waiting()
    return {"JOBTUI_SLURM": "local", "PATH": cluster.search_path, "JOBTUI_AT": "2026-11-25T19:46:30Z"}


def gone(place: Path) -> Mapping[str, str]:
    return {"HOME": str(place)}


def memory(place: Path) -> Mapping[str, str]:
    """What was captured, and a memory in which one of its failures was seen before."""
    bad = [a_run(number * 9_000, "a big ugly error", host="v7") for number in range(40)]
    good = [a_run(number * 900 + 1, host=f"v{number % 9}") for number in range(2_000)]
    written(place / "jobtui" / FILE_NAME, *bad, *good)
    return {**PLACES["docker"](place), "XDG_DATA_HOME": str(place)}


PLACES: Mapping[str, Callable[[Path], Mapping[str, str]]] = {
    **{name: linked(told) for name, told in table("excerpts").items()},
    "demo": demo("waiting-for-slot"), "waiting": waiting, "gone": gone, "memory": memory,
}  # fmt: skip
"""What commands of pages are run on."""


def run(place: Path, settings: Mapping[str, str], words: Sequence[str]) -> Ran:
    ran = jobtui(*words, cwd=place, env=environment(**settings))
    return ran._replace(out=ran.out.replace(str(place), HERE))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        ran = run(place, PLACES[sys.argv[1]](place), sys.argv[2:])
    sys.stdout.write(ran.out)
    sys.stderr.write(ran.err)
    return ran.code


if __name__ == "__main__":
    sys.exit(main())

"""The live demo: history at once, then on in real time, in files as a real site has them."""

import json
import re
import time
from pathlib import Path

import pytest

from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import HISTORY_S, LiveDemo
from jobtui.demo.messages import Record
from jobtui.demo.programs import Disk, RealDisk
from jobtui.model.clock import SECOND, FixedClock, Nanos, to_seconds
from jobtui.model.ids import split_jid
from tests.waiting import LONG_S

NOW = Nanos(1_795_206_870 * SECOND)


def _demo(directory: Path, **options: object) -> tuple[LiveDemo, FixedClock]:
    clock = FixedClock(NOW)
    demo = LiveDemo(directory, clock=clock, **options)  # type: ignore[arg-type]
    demo.prepare()
    return demo, clock


def _records(demo: LiveDemo) -> list[Record]:
    files = sorted((demo.sources.srdb / "supervisor-job").iterdir())
    return [json.loads(file.read_bytes()) for file in files]


def _let_pass(demo: LiveDemo, clock: FixedClock, seconds: float) -> None:
    for _ in range(int(seconds / 0.5)):
        clock.advance(0.5)
        demo.step()


def _files(directory: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()
    }


def test_history_is_there_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    demo, _ = _demo(tmp_path)
    took_s = time.monotonic() - began

    records = _records(demo)
    ended = [r for r in records if r["status"] in {"completed", "error", "canceled"}]
    assert len(ended) >= 24
    assert len({r["status"] for r in records}) >= 4
    assert len({r["simulationType"] for r in records}) >= 5
    now = to_seconds(NOW)
    assert all(now - HISTORY_S <= r["computeJobQueued"] <= now for r in ended)
    assert any(r["status"] == "running" for r in records)
    assert took_s < LONG_S


def test_files_are_where_a_site_has_them(tmp_path: Path) -> None:
    demo, _ = _demo(tmp_path)

    assert [role for role, _ in demo.sources.logs] == ["supervisor", "server"]
    assert all(path.stat().st_size > 100_000 for _, path in demo.sources.logs)
    for record in _records(demo):
        assert split_jid(record["computeJid"]) is not None
    ran = [r for r in _records(demo) if r["status"] == "completed" and r["jobRunMode"] != "sbatch"]
    for record in ran:
        run_dir = (
            demo.sources.srdb / "user" / record["uid"] / record["simulationType"] / record["simulationId"]
        )
        names = {path.name for path in (run_dir / record["computeModel"]).iterdir()}
        assert {"in.json", "parameters.py", "run.log"} <= names


def test_record_files_bear_the_time_of_their_writing(tmp_path: Path) -> None:
    demo, _ = _demo(tmp_path)

    for file in (demo.sources.srdb / "supervisor-job").iterdir():
        written = json.loads(file.read_bytes())["dbUpdateTime"]
        assert abs(file.stat().st_mtime - written) < 5


def test_life_goes_on(tmp_path: Path) -> None:
    demo, clock = _demo(tmp_path)
    before = _records(demo)
    sizes = [path.stat().st_size for _, path in demo.sources.logs]

    _let_pass(demo, clock, 180)

    after = _records(demo)
    assert len(after) >= len(before) + 5
    assert all(path.stat().st_size > size for (_, path), size in zip(demo.sources.logs, sizes, strict=True))
    newest = max(r["dbUpdateTime"] for r in after)
    assert to_seconds(clock.now()) - 20 < newest <= to_seconds(clock.now()) + 1


def test_progress_and_the_programs_log_grow(tmp_path: Path) -> None:
    demo, clock = _demo(tmp_path)
    seen: dict[str, set[float]] = {}
    for _ in range(40):
        _let_pass(demo, clock, 5)
        for record in _records(demo):
            if record["status"] == "running" and record["isParallel"]:
                seen.setdefault(record["computeJid"], set()).add(record["parallelStatus"]["percentComplete"])
    assert any(len(values) > 3 for values in seen.values())
    logs = [path for path in demo.sources.srdb.rglob("run.log") if path.stat().st_size > 500]
    assert logs


def test_same_seed_and_start_give_the_same_files(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        directory = tmp_path / "site"
        directory.mkdir()
        demo, clock = _demo(directory, seed=3)
        _let_pass(demo, clock, 30)
        found.append(_files(directory))
        directory.rename(tmp_path / f"kept-{len(found)}")
    assert found[0] == found[1]


def test_names_that_would_drive_a_terminal_are_among_them(tmp_path: Path) -> None:
    demo, clock = _demo(tmp_path, seed=1)
    _let_pass(demo, clock, 300)

    names = [r["simName"] or "" for r in _records(demo)]
    hostile = [
        name for name in names if re.search(r"[\x00-\x1f\u200b-\u202e]|\[/", name) or not name.isascii()
    ]
    assert hostile
    assert len(hostile) < len(names) / 5


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_seen_soon_after_the_start(tmp_path: Path, name: str) -> None:
    demo, clock = _demo(tmp_path, incident=name)
    _let_pass(demo, clock, 20)

    assert demo.scenario is not None
    assert demo.scenario.jid in {r["computeJid"] for r in _records(demo)}


def test_an_unknown_incident_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        LiveDemo(tmp_path, incident="no-such-thing")


def test_a_real_disk_replaces_files_and_keeps_inside_its_directory(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    path = str(tmp_path / "a" / "b.json")
    disk.write(path, b"1")
    first = Path(path).stat().st_ino
    disk.write(path, b"2")
    disk.append(path, b"3")

    assert disk.read(path) == b"23"
    assert Path(path).stat().st_ino != first
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.json"]
    with pytest.raises(ValueError, match="not inside"):
        disk.write("/elsewhere/file", b"")
    disk.remove_tree(str(tmp_path / "a"))
    assert disk.read(path) is None
    disk.write(path, b"again")
    assert disk.read(path) == b"again"


def test_a_memory_disk_does_the_same() -> None:
    disk = Disk()
    disk.write("/a/b", b"1")
    disk.append("/a/b", b"2")
    assert disk.read("/a/b") == b"12"
    disk.remove_tree("/a")
    assert disk.read("/a/b") is None

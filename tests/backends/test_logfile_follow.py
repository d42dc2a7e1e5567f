"""Whatever happens to a file and whenever it is looked at: every byte is given once, in whole lines."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_follow import RETIRED_KEPT, Follower
from jobtui.backends.log_start import FromStart
from tests.backends.log_fakes import Parsers

LIMITS = Limits(block=16, line=64, batch=100, batch_records=5, hold_s=1000, retire_s=1e9, gone_s=1000)
CHUNKS = st.sampled_from([b"", b"\n", b"ab", b"ab\n", b"a\nb", b"a longer line\nand another\n", b"\r\n"])


class Written:
    """One file behind the name, and what should be given of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.due = b""
        self._let_go = False

    def append(self, data: bytes) -> None:
        """Write to the end."""
        with self.path.open("ab") as file:
            file.write(data)
        if self._let_go and data:
            # The newline of a line that was given without it is no line of its own.
            data = data.removeprefix(b"\n")
            self._let_go = False
        self.due += data

    def let_go(self) -> None:
        """The unfinished last line has been waited for long enough."""
        if self.due and not self.due.endswith(b"\n"):
            self.due += b"\n"
            self._let_go = True

    def lose_unfinished(self) -> None:
        """What has no newline is cut off."""
        self.due = self.due[: self.due.rfind(b"\n") + 1]


class FollowedFile(RuleBasedStateMachine):
    """Things done to a file in any order, with polls between them that stop anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "log"
        self.path.touch()
        self.now = 0.0
        self.parsers = Parsers()
        self.follower = Follower(
            self.path, lambda: self.parsers("log", "auto"), FromStart(), LIMITS, lambda: self.now
        )
        self.cursor: str | None = None
        self.files = [Written(self.path)]
        self.renamed: list[Written] = []
        self.serial = 0
        self.drain()

    def drain(self) -> None:
        while self.poll():
            pass

    def piece(self, data: bytes) -> bytes:
        """Every piece differs from all others, as times make lines of a real log differ."""
        self.serial += 1
        return data.replace(b"a", b"%d:" % self.serial)

    def poll(self) -> bool:
        batch = self.follower.poll(self.cursor)
        self.cursor = batch.cursor
        assert batch.count < LIMITS.batch_records + LIMITS.block
        return batch.more

    @rule()
    def one_poll(self) -> None:
        self.poll()

    @rule(data=CHUNKS)
    def append(self, data: bytes) -> None:
        self.files[-1].append(self.piece(data))

    @precondition(lambda self: len(self.renamed) < RETIRED_KEPT)
    @rule(data=CHUNKS)
    def rotate(self, data: bytes) -> None:
        aside = self.folder / f"log.{len(self.renamed)}"
        self.path.rename(aside)
        self.files[-1].path = aside
        self.renamed.append(self.files[-1])
        self.path.touch()
        self.files.append(Written(self.path))
        self.append(data)
        self.poll()

    @precondition(lambda self: self.renamed)
    @rule(data=CHUNKS)
    def write_to_a_renamed_one(self, data: bytes) -> None:
        self.renamed[-1].append(self.piece(data))

    @rule()
    def truncate(self) -> None:
        self.drain()
        os.truncate(self.path, 0)
        self.drain()
        self.files[-1].lose_unfinished()
        if self.files[-1].due:
            self.files.append(Written(self.path))

    @rule()
    def wait(self) -> None:
        self.drain()
        self.now += LIMITS.hold_s
        self.drain()
        for file in (*self.renamed, self.files[-1]):
            file.let_go()

    def teardown(self) -> None:
        self.wait()
        self.follower.close()
        shutil.rmtree(self.folder)
        # The first parser was asked for times only.
        assert [parser.text for parser in self.parsers.made[1:]] == [file.due for file in self.files]


FollowedFile.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestFollowedFile = FollowedFile.TestCase


@given(st.lists(st.tuples(CHUNKS, st.booleans())))
@settings(max_examples=60, deadline=None)
def test_batches_lost_on_the_way_are_given_again(steps: list[tuple[bytes, bool]]) -> None:
    parsers = Parsers()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.touch()
        follower = Follower(path, lambda: parsers("log", "auto"), FromStart(), LIMITS)
        cursor = follower.poll(None).cursor
        texts: list[str] = []
        written = b""
        for data, is_lost in [*steps, (b"\n", False)]:
            written += data
            with path.open("ab") as file:
                file.write(data)
            if is_lost:
                follower.poll(cursor)
                continue
            while (batch := follower.poll(cursor)).more or batch.records:
                cursor = batch.cursor
                texts += [record.text for record in batch.records]
        follower.close()
    assert texts == written.decode().split("\n")[:-1]

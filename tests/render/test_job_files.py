"""A script as lines: in colour as far as that is affordable, and told where it ends."""

from hypothesis import given
from hypothesis import strategies as st

from jobtui.model.clock import Nanos
from jobtui.model.job_reader import FileKind, FilePart, RunFile
from jobtui.render import job_files
from jobtui.render.columns import TimeLook
from tests.builders import ago
from tests.conftest import NOW


def a_file(name: str, age_s: float = 60, kind: FileKind = FileKind.FILE) -> RunFile:
    return RunFile(name, kind, 4_096, ago(age_s))


def a_part(name: str, text: str, **fields: object) -> FilePart:
    values: dict[str, object] = {"begin": 0, "size": len(text), "written_at": Nanos(0)}
    return FilePart(name=name, text=text, **(values | fields))  # type: ignore[arg-type]


def said(part: FilePart, most: int = 100) -> list[str]:
    return [span.text for span in job_files.part_lines(part, most)]


@given(st.integers(min_value=0, max_value=1 << 62))
def test_every_size_fits(size: int) -> None:
    assert len(job_files.size_text(size)) <= 5


def test_files_have_a_row_each_the_well_known_first_then_the_newest() -> None:
    files = [a_file("a.h5", 100), a_file("b.h5", 1), a_file("in.json"), a_file("run.log", 900)]
    assert [file.name for file in job_files.in_order(files)] == ["run.log", "in.json", "b.h5", "a.h5"]

    def cells(file: RunFile) -> list[str]:
        return [column.cell(file, TimeLook(NOW)) for column in job_files.FILE_COLUMNS]

    assert cells(a_file("run.log")) == ["run.log", "4.1k", "1m"]
    assert cells(a_file("out", kind=FileKind.LINK))[1] == "link"
    for kind, word in ((FileKind.MISSING, "missing"), (FileKind.UNLISTED, "unknown")):
        assert cells(job_files.in_order(files, ["job.out"], kind)[0]) == ["job.out", word, ""]


def test_json_is_formatted_and_masked_also_a_secret_over_two_lines() -> None:
    lines = said(a_part("in.json", '{"models":{"b":[1,NaN],"secretKey":"hunter2"}}'))
    assert lines[:2] == ["{", '  "models": {']
    assert not any("hunter2" in line for line in lines)
    assert said(a_part("in.json", '{"a": ')) == ['{"a": ']
    assert said(a_part("in.json", '{"a": 1}', is_to_end=False))[0] == '{"a": 1}'
    text = "env password=hunter2 \n{'token': 'abcdefgh'}\n"
    assert not any("hunter2" in line or "abcdefgh" in line for line in said(a_part("run.log", text)))


def test_a_part_of_a_file_says_where_lines_are_left_out() -> None:
    text = "".join(f"{number}\n" for number in range(10))
    assert said(a_part("run.log", text, begin=50), 3) == [
        "… 50 bytes before this are not shown",
        "… lines before this, not shown: 7",
        *"789",
    ]
    assert said(a_part("parameters.py", text, is_to_end=False), 2) == [
        *"01",
        "… 8 more lines",
        "… what follows was not read",
    ]
    assert said(a_part("run.log", "")) == ["empty"]
    assert said(a_part("frame.h5", "", size=7, is_binary=True)) == ["not text; nothing of it is shown"]


def test_documents_of_any_depth() -> None:
    assert job_files.formatted("[" * 100_000) is None
    deep = "[" * 500 + "]" * 500
    assert job_files.formatted(deep) is not None
    assert list(job_files.document_lines(list(range(20)), 5))[-1] == "… 17 more lines"

"""Links below an archive: followed as long as they stay there."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.backends.archive.kept_files import NotRead, opened_root, read_kept
from jobtui.model.scripts import Outcome
from tests.backends.archive.captured import DAY, SUBMITTED, archive_in, look, script_of

LINKS = {
    "here": "job.2_script",
    "up and down": "../20261020/job.2_script",
    "through a link": "../latest/job.2_script",
    "absolute": "{archive}/20261020/job.2_script",
}


@pytest.mark.parametrize("target", LINKS.values(), ids=LINKS)
def test_a_link_that_stays_in_the_archive_is_followed(tmp_path: Path, target: str) -> None:
    archive = archive_in(tmp_path / "archive", DAY)
    archive_in(archive, "20261020")
    (archive / "latest").symlink_to("20261020")
    path = archive / DAY / "job.1_script"
    path.unlink()
    path.symlink_to(target.format(archive=archive))
    (tmp_path / "link").symlink_to(archive)
    for place in (archive, tmp_path / "link"):
        assert look(place, "1", submitted_at=SUBMITTED).script.script == script_of("2")  # type: ignore[union-attr]


def test_a_linked_directory_of_a_date_is_followed_only_within(tmp_path: Path) -> None:
    archive = archive_in(tmp_path / "archive", "kept")
    (archive / DAY).symlink_to("kept")
    assert look(archive, "1", submitted_at=SUBMITTED).script is not None
    archive_in(tmp_path / "elsewhere", DAY)
    (archive / DAY).unlink()
    (archive / DAY).symlink_to(tmp_path / "elsewhere" / DAY)
    (tried,) = look(archive, "1", submitted_at=SUBMITTED).tried
    assert tried.outcome is Outcome.REFUSED
    assert "out of the archive" in tried.note


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "link", "back", "out", "{root}/a", "{root}"]), max_size=6),
    st.lists(st.sampled_from(["..", "a", "b", "/", "link"]), max_size=4),
)
@settings(max_examples=60)
def test_no_links_lead_out(names: list[str], target: list[str]) -> None:
    with tempfile.TemporaryDirectory() as outside:
        root = Path(outside, "root")
        (root / "a" / "b").mkdir(parents=True)
        for directory in (Path(outside), root, root / "a", root / "a" / "b"):
            (directory / "f").write_text(str(directory))
        (root / "link").symlink_to("/".join(target) or ".")
        (root / "a" / "back").symlink_to("..")
        (root / "a" / "out").symlink_to("../..")
        with opened_root(str(root)) as descriptor, suppress(NotRead):
            kept = read_kept(descriptor, "/".join([*names, "f"]).format(root=root))
            assert Path(kept.data.decode()).is_relative_to(root)

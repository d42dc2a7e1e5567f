import pytest

from jobtui.widgets.job_facts import ends_of


@pytest.mark.parametrize(
    ("job_id", "ends"),
    [
        ("EPRSqtUW-1Tt2Wk2N-heightWeightReport", "EPRSqtUW…heightWeightReport"),
        ("balsam/166", "balsam/166"),
        ("slurm/70455_3", "slurm/70455_3"),
        ("-", "-"),
        ("a-b", "a-b"),
        ("", ""),
    ],
)
def test_only_what_is_left_out_is_marked(job_id: str, ends: str) -> None:
    assert ends_of(job_id) == ends

import pytest

from jobtui.analysis.run_dirs import run_dirs_of
from jobtui.model.ids import JobId
from tests.builders import a_job, an_op

JID = JobId("EPRSqtUW-IVh7w74d-heightWeightReport")
RECORD = f"/srv/db/supervisor-job/{JID}.json"
BESIDE = "/srv/db/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"


def test_what_the_logs_say_comes_first() -> None:
    logged = "/data/user/EPRSqtUW/myapp/IVh7w74d/heightWeightReport"
    ops = [an_op(jid=JID, run_dir=logged), an_op(jid=JID, run_dir=f"{logged}/"), an_op(jid=JID)]
    assert run_dirs_of(a_job(id=JID), RECORD, ops) == (logged, BESIDE)
    assert run_dirs_of(None, None, ops) == (logged,)


@pytest.mark.parametrize("path", ["/etc", "/srv/user/XXXXXXXX/myapp/IVh7w74d/heightWeightReport", ""])
def test_a_path_that_is_not_of_this_job_is_not_looked_at(path: str) -> None:
    assert run_dirs_of(a_job(id=JID), None, [an_op(jid=JID, run_dir=path)]) == ()


@pytest.mark.parametrize(
    "fields",
    [{"mode": "sbatch"}, {"app": ""}, {"app": ".."}, {"app": "a/b"}, {"is_quasi": True}, {"id": JobId("x")}],
)
def test_some_jobs_have_none_beside_their_record(fields: dict[str, object]) -> None:
    assert run_dirs_of(a_job(**{"id": JID} | fields), RECORD, ()) == ()

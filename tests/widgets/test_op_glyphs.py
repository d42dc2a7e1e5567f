import pytest

from jobtui.model.ops import OpStatus
from jobtui.widgets.op_list import op_glyph
from tests.builders import an_op


@pytest.mark.parametrize(
    ("status", "result", "error", "sign"),
    [
        (OpStatus.ENDED, "ok", None, "✓"),
        (OpStatus.ENDED, "completed", None, "✓"),
        (OpStatus.ENDED, None, None, "✓"),
        (OpStatus.ENDED, "canceled", None, "⊘"),
        (OpStatus.ENDED, "error", None, "✗"),
        (OpStatus.ENDED, "ok", "no reply", "✗"),
        (OpStatus.ENDED, "a word of next year", None, "?"),
        (OpStatus.DESTROYED, None, None, "✗"),
        (OpStatus.LOST, None, None, "?"),
        (OpStatus.LOST, "canceled", None, "⊘"),
        (OpStatus.REPLIED, "ok", None, "●"),
        (OpStatus.SENT, None, None, "●"),
    ],
)
def test_an_op_is_drawn_by_how_it_ended(
    status: OpStatus, result: str | None, error: str | None, sign: str
) -> None:
    assert op_glyph(an_op(status=status, result=result, error=error))[0] == sign

import pytest

from jobtui.analysis.traces.axis import TraceWindow
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.layout import ServiceMarks, lay_out
from jobtui.model.traces import Resource
from jobtui.render.spans import width_of
from jobtui.render.waterfall import WAIT_CELLS, View, columns_in, heading_line
from tests.tracing import a_span, a_trace


def legend(cells: int, *services: str) -> str:
    spans = [a_span(at, service=Resource(service, {})) for at, service in enumerate(services, 1)]
    found = study_trace(a_trace(*spans))
    columns = columns_in(cells)
    axis = TraceWindow().axis(max(1, columns.bar), (), WAIT_CELLS)
    heading = heading_line(View(found.tree, lay_out(found), axis, {}, ServiceMarks().of), columns)
    assert width_of(heading) <= cells
    return "".join(span.text for span in heading)[: columns.name].strip()


SIREPO = ("sirepo-server", "sirepo-supervisor", "sirepo-agent")


@pytest.mark.parametrize(
    ("cells", "services", "text"),
    [
        (160, SIREPO, "S sirepo-server  U sirepo-supervisor  A sirepo-agent"),
        (120, SIREPO, "S server  U supervisor  A agent"),
        (80, SIREPO, "S server  U supervisor  A agent"),
        (80, ("web", "worker", "web-cache"), "W web  O worker  C web-cache"),
        (80, ("workflow", "worker-0", "worker-1"), "W workflow  0 worker-0"),
        (62, ("sirepo-", "sirepo-supervisor"), "S sirepo-"),
        (62, ("one", "two", "three", "four", "five"), "O one  T two  H three"),
        (80, ("a-service-of-a-very-long-name-indeed",), ""),
        (80, ("",), "A –"),
    ],
)
def test_the_legend_names_as_many_services_as_there_is_room_for(
    cells: int, services: tuple[str, ...], text: str
) -> None:
    assert legend(cells, *services) == text

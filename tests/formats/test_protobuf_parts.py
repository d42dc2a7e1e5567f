import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from jobtui.formats.otlp_protobuf import TRACES_DATA, count_parts

MOST = 1_000


def spans(count: int, attributes: int) -> bytes:
    message = TracesData()
    scope = message.resource_spans.add().scope_spans.add()
    for _ in range(count):
        span = scope.spans.add()
        for number in range(attributes):
            span.attributes.add(key="k").value.array_value.values.add().int_value = number
    return message.SerializeToString()


@pytest.mark.parametrize(("count", "attributes"), [(2_000, 0), (1, 2_000), (300, 3)])
def test_parts_at_any_depth_are_counted(count: int, attributes: int) -> None:
    assert count_parts(spans(count, attributes), TRACES_DATA, MOST) > MOST


def test_what_has_few_parts_is_counted_exactly_where_it_could_have_many() -> None:
    # resource spans, scope spans; of each span: itself, and of its attribute key, value, array and element
    assert count_parts(spans(10, 2), TRACES_DATA, 130) == 2 + 10 * (1 + 2 * 5)
    assert count_parts(spans(1, 0), TRACES_DATA, MOST) == 0
    assert 0 <= count_parts(b"\x0a" + b"\xff" * 20, TRACES_DATA, 1) <= 2, "a number without an end"

"""Recent traces, one a row."""

from jobtui.analysis.traces.standing import ListedTrace
from jobtui.model.trace_ids import TraceId
from jobtui.render.trace_columns import TRACE_COLUMNS
from jobtui.widgets.record_table import RecordTable


class TraceTable(RecordTable[ListedTrace]):
    """Traces in the order they are handed over."""

    COLUMNS = TRACE_COLUMNS

    def key_of(self, record: ListedTrace) -> TraceId:
        """Its id."""
        return record.told.trace_id

"""Links the log records of every source to ops, agents and jobs. See `correlator.py`."""

from jobtui.model.ops import Correlation


class EmptyCorrelation(Correlation):
    """No records yet. The correlator is imported with the first: that takes a tenth of a first paint."""

    def begun(self) -> Correlation:
        from jobtui.analysis.correlation.correlator import Correlator

        return Correlator()

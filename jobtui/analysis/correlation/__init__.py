"""Log records of every source tied to ops, agents and jobs. See `correlator.py`."""

from jobtui.model.ops import Correlation


class NothingRead(Correlation):
    """No records yet. Importing what correlates takes a tenth of a first paint, so it waits for the first."""

    def begun(self) -> Correlation:
        from jobtui.analysis.correlation.correlator import Correlator

        return Correlator()

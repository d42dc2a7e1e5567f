"""What is the matter with a job: a verdict from its record, its ops and what could be read."""

from jobtui.analysis.explain.case import Case, Coverage
from jobtui.analysis.explain.verdict import explain

__all__ = ["Case", "Coverage", "explain"]

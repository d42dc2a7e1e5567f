"""jobtui: follow one scientific compute job through every system that knows about it."""

__version__ = "0.1.0"

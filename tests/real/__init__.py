"""Tests against real systems, started on this machine by `scripts/real`; not part of `scripts/test`."""

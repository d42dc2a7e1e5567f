"""Pure functions and state machines over records: correlation, timelines, filters. No I/O, no terminal."""

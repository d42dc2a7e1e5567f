"""Terminal driver and output: all code that depends on private parts of the pinned Textual (8.2.8)."""

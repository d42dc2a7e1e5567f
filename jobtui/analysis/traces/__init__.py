"""What the spans of a trace mean: their tree, what failed, what took the time."""

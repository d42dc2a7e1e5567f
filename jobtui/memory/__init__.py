"""The memory of finished runs, over weeks and systems."""

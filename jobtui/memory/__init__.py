"""Runs that are over, remembered over weeks and systems."""

"""Slurm as a source, on commands that stand in for its own."""

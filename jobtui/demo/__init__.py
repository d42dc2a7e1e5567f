"""A simulated job system that writes the real formats."""

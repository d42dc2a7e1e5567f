"""A simulated Sirepo job system that writes the real formats; its truth is known."""

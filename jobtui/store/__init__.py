"""State: which jobs there are, what is known of them, and how the sources are. No I/O, no terminal."""

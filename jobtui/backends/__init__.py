"""One module for each kind of source. They read, decode and report; they decide and display nothing."""

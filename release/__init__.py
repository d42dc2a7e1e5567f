"""What a release is made of beside the program: man page, completions, locks, bill of materials, zipapp."""

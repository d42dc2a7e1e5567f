"""What sources delivered, kept in a file, and delivered again from there."""

"""The one-shot commands: one file each, all thin users of a session."""

"""Logs to be read on a screen: one paged log over files, journals and lists."""

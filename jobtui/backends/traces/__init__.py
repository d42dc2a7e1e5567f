"""Servers of traces, and the receiver of what is sent to us."""

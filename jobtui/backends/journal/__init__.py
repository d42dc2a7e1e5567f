"""Journals of systemd, wherever they are: one contract, several transports."""

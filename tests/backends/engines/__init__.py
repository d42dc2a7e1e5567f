"""Engines that keep logs: Elasticsearch, Loki, fetchlog."""

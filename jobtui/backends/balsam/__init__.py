"""Balsam through its REST API: jobs, their events, allocations and sites. Only ever asks."""

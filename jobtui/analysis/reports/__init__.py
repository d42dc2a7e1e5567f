"""Reports and charts on jobs: rates, utilization, time in states. Pure."""

"""What is counted and timed, for Prometheus."""

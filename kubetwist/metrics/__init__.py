"""Metrics: counters, gauges and histograms, and their exposition for Prometheus."""

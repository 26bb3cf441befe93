"""Tracing: spans of requests, propagation of trace context, and export."""

"""Traces: spans of requests, what is passed on of them, where they go."""

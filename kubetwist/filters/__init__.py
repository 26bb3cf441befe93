"""Filters of requests in front of the routing, one module per filter."""

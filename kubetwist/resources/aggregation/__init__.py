"""Aggregation: routes to the API servers behind APIServices, and what is read from them."""

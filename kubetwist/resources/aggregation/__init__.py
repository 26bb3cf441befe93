"""Aggregation: routes to the API servers behind APIServices, and clients of their discovery and OpenAPI documents."""

"""OpenAPI: C{/openapi/v2}, C{/openapi/v3}, and the documents that are served there."""

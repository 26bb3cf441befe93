"""OpenAPI: the documents of C{/openapi/v2} and C{/openapi/v3}, and their endpoints."""

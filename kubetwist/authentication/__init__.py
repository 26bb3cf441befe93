"""Who sends a request: the built-in authenticators."""

"""The rules of resources: the generic store, its strategies, the table of built-in kinds. Knows nothing of HTTP."""

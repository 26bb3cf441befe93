"""Storage and rules of resources: the generic store, strategies, and the table of built-in kinds, without HTTP."""

"""The types of the API: loaded for built-in kinds, compiled to closures. No I/O, nothing of Twisted."""

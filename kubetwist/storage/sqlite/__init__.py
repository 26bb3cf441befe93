"""The store in one SQLite file, for one server."""

from ._storage import SQLiteStorage

__all__ = ["SQLiteStorage"]

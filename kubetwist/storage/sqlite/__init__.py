"""The store in one SQLite file, for one server."""

from .storage import SQLiteStorage

__all__ = ["SQLiteStorage"]

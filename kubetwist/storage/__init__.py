"""Bytes and revisions: the storage backends and the watch cache. Knows nothing of HTTP or kinds."""

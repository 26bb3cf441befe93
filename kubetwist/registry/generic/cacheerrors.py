"""Mapping of errors of watch caches to API errors."""

from __future__ import annotations

from ...api.errors import APIStatusError
from ...storage.errors import RevisionCompacted, StorageError, WatchInterrupted


def translate_cache_error(error: StorageError) -> APIStatusError:
    """Return the API error for a failed read of a watch cache, or for a watch that the cache ends."""
    if isinstance(error, RevisionCompacted):
        return APIStatusError.expired(f"too old resource version: {error.revision} ({error.oldest})")
    if isinstance(error, WatchInterrupted):
        return APIStatusError.expired("The watch was interrupted; list again.")
    return APIStatusError.internal(str(error))

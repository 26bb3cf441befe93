"""Tests of L{kubetwist.registry.generic.cacheerrors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.cacheerrors import translate_cache_error
from kubetwist.storage.errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    RevisionCompacted,
    WatchFailed,
    WatchInterrupted,
)


class CacheErrorTests(SynchronousTestCase):
    """Tests of the errors of watch caches for clients."""

    def test_watches(self) -> None:
        """A watch that can be continued after a new list ends with 410, any other with 500."""
        for error, code, message in (
            (WatchInterrupted(), 410, "The watch was interrupted; list again."),
            (RevisionCompacted(7, 9), 410, "too old resource version: 7 (9)"),
            (WatchFailed(), 500, "Internal error occurred: the watch could not go on"),
        ):
            translated = translate_cache_error(error)
            self.assertEqual((translated.code, translated.message), (code, message))

    def test_unreadable(self) -> None:
        """A value that cannot be read is an internal error that names the key and the reason."""
        for error, message in (
            (CorruptObjectError("/registry/a", "damaged"), 'unable to transform key "/registry/a": damaged'),
            (DecryptionUnavailable("no answer"), "no answer"),
        ):
            translated = translate_cache_error(error)
            self.assertEqual((translated.code, translated.reason), (500, "InternalError"))
            self.assertEqual(translated.message, f"Internal error occurred: {message}")

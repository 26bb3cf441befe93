"""Tests for L{kubetwist.storage.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import ReportedError
from kubetwist.storage.errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    OutcomeUnknown,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
    StorageUnwritable,
)


class ErrorTests(SynchronousTestCase):
    """Tests for what can go wrong in a store."""

    def test_file_is_not_told(self) -> None:
        """The log has the name of the file that cannot be written, clients have not."""
        error = StorageUnwritable("/var/lib/x.db", "No space left on device")
        self.assertIn("/var/lib/x.db", str(error))
        self.assertEqual(error.client_message, "storage cannot be written at present: No space left on device")

    def test_key_is_quoted(self) -> None:
        """A key that clients chose is quoted in the reference's words."""
        error = CorruptObjectError('/registry/"a\n', "it is damaged", 7)
        self.assertEqual(str(error), 'unable to transform key "/registry/\\"a\\n": it is damaged')
        self.assertEqual((error.key, error.revision), ('/registry/"a\n', 7))

    def test_reported(self) -> None:
        """What clients are told of is an error that is reported; a conflict is the store's own affair."""
        for error in (StorageUnavailable("x"), DecryptionUnavailable("x"), OutcomeUnknown("x")):
            self.assertIsInstance(error, ReportedError)
        self.assertNotIsInstance(RevisionConflict("k", 1), ReportedError)

    def test_nothing_written(self) -> None:
        """Whoever handles an unavailable store handles a full disk and missing keys, but no unknown outcome."""
        self.assertIsInstance(StorageUnwritable("f", "w"), StorageUnavailable)
        self.assertIsInstance(DecryptionUnavailable("x"), StorageUnavailable)
        self.assertNotIsInstance(OutcomeUnknown("x"), StorageUnavailable)
        self.assertIsInstance(OutcomeUnknown("x"), StorageError)

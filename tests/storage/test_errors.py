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
    """Errors of stores."""

    def test_client_message(self) -> None:
        """The message of an unwritable store names the file, the message for clients does not."""
        error = StorageUnwritable("/var/lib/x.db", "No space left on device")
        self.assertIn("/var/lib/x.db", str(error))
        self.assertEqual(error.client_message, "storage cannot be written at present: No space left on device")

    def test_key_is_quoted(self) -> None:
        """A key is quoted in the reference's words."""
        error = CorruptObjectError('/registry/"a\n', "it is damaged", 7)
        self.assertEqual(str(error), 'unable to transform key "/registry/\\"a\\n": it is damaged')
        self.assertEqual((error.key, error.revision), ('/registry/"a\n', 7))

    def test_reported(self) -> None:
        """Errors that clients receive are reported errors; a conflict is internal."""
        for error in (StorageUnavailable("x"), DecryptionUnavailable("x"), OutcomeUnknown("x")):
            self.assertIsInstance(error, ReportedError)
        self.assertNotIsInstance(RevisionConflict("k", 1), ReportedError)

    def test_nothing_written(self) -> None:
        """StorageUnavailable includes a full disk and unavailable keys, but not an unknown outcome."""
        self.assertIsInstance(StorageUnwritable("f", "w"), StorageUnavailable)
        self.assertIsInstance(DecryptionUnavailable("x"), StorageUnavailable)
        self.assertNotIsInstance(OutcomeUnknown("x"), StorageUnavailable)
        self.assertIsInstance(OutcomeUnknown("x"), StorageError)

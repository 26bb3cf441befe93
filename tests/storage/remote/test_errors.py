"""Tests for L{kubetwist.storage.remote._errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage import errors
from kubetwist.storage.etcd.client import NoMemberReachable
from kubetwist.storage.remote._errors import (
    MAX_ERROR_TEXT,
    ErrorFields,
    error_fields,
    make_error,
)
from kubetwist.storage.remote._frames import ProtocolError

_ERRORS: tuple[Exception, ...] = (
    errors.KeyNotFound("/r/a", 7),
    errors.KeyExists("/r/a", 7),
    errors.RevisionConflict("/r/a", 7),
    errors.RevisionCompacted(3, 7),
    errors.FutureRevision(9, 7),
    errors.InvalidArgument("no keys"),
    errors.WatchInterrupted(),
    errors.WatchFailed(),
    errors.StorageUnavailable("not now"),
    errors.StorageUnwritable("/data/store", "the disk is full"),
    errors.OutcomeUnknown("no answer"),
    errors.StorageCorrupt("damaged"),
    errors.DecryptionUnavailable("no key"),
    errors.CorruptObjectError("/r/a", "no JSON", 7),
    errors.UnknownFormatError("format 9"),
    errors.TransformToStorageError("/r/a", "no key"),
    errors.StorageError("other"),
    MemoryError("full"),
)


class ErrorTests(SynchronousTestCase):
    """Errors in the other process."""

    def test_same_errors(self) -> None:
        """Each error has its type, its text and its attributes."""
        for error in _ERRORS:
            fields = error_fields(error)
            assert fields is not None
            found = make_error(fields)
            self.assertIs(type(found), type(error))
            self.assertEqual((str(found), vars(found)), (str(error), vars(error)))

    def test_all_errors(self) -> None:
        """Every error of storage has a code."""
        classes = {
            kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.StorageError)
        }
        self.assertEqual(classes - {type(error) for error in _ERRORS}, set())

    def test_derived_error(self) -> None:
        """An error of a backend's module has the type of its base class."""
        fields = error_fields(NoMemberReachable("no member"))
        assert fields is not None
        self.assertIs(type(make_error(fields)), errors.StorageUnavailable)

    def test_bug(self) -> None:
        """Another exception has no code."""
        self.assertIsNone(error_fields(ZeroDivisionError()))

    def test_unknown_code(self) -> None:
        """An unknown code is refused."""
        for code in (0, len(_ERRORS) + 1, 255):
            with self.assertRaises(ProtocolError):
                make_error(ErrorFields(code))

    def test_long_text(self) -> None:
        """The text of an error is limited."""
        fields = error_fields(errors.StorageUnavailable("x" * (MAX_ERROR_TEXT + 1)))
        assert fields is not None
        self.assertEqual(len(fields.reason), MAX_ERROR_TEXT)

"""Tests for L{kubetwist.storage.etcd._errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import (
    Write,
)
from kubetwist.storage.errors import KeyExists, KeyNotFound, RevisionConflict, StorageUnavailable
from kubetwist.storage.etcd._commit import conflict_error
from kubetwist.storage.etcd._compaction import parse_compact_revision


class ErrorTests(SynchronousTestCase):
    """Errors from responses of etcd."""

    def test_refusals(self) -> None:
        """The first write whose precondition fails is reported with the existing revision."""
        for write, there, kind in (
            (Write("/k", b"v", 0), 4, KeyExists),
            (Write("/k", None, 0), 4, KeyExists),
            (Write("/k", b"v", 3), 4, RevisionConflict),
            (Write("/k", None, 3), 4, RevisionConflict),
            (Write("/k", b"v", 3), 0, KeyNotFound),
            (Write("/k", None, None), 0, KeyNotFound),
            (Write("/k", b"v", 4), 4, StorageUnavailable),
        ):
            self.assertIsInstance(conflict_error([write], [there], 9), kind)
        error = conflict_error([Write("/a", b"", 4), Write("/b", b"", 5)], [4, 6], 9)
        self.assertEqual(str(error), "/b is at revision 6")

    def test_compacted_to(self) -> None:
        """The value of kube-apiserver's compaction key is a number, or is ignored."""
        self.assertEqual(
            [parse_compact_revision(value) for value in (b"12", b"", b"x", None, b"9" * 40)], [12, 0, 0, 0, 0]
        )

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
    """What is made of what etcd says."""

    def test_refusals(self) -> None:
        """The first write that is not as expected is named, with what is there instead."""
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
        """What kube-apiserver's key says is a number, or nothing."""
        self.assertEqual(
            [parse_compact_revision(value) for value in (b"12", b"", b"x", None, b"9" * 40)], [12, 0, 0, 0, 0]
        )

"""Tests for L{kubetwist.api.record}."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
    StaleFormatRecord,
    without_kind,
)

OBJECT = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"x": [1]}}


class RecordTests(SynchronousTestCase):
    """Tests for L{Record}."""

    def record(self, revision: int = 7) -> Record:
        """Return the record of an object."""
        return Record.from_draft("ns/a", revision, Draft(without_kind(OBJECT), {"l": "v"}, {"f": "w"}))

    def test_names(self) -> None:
        """The key has namespace and name; the key of a cluster-scoped object has no namespace."""
        record = self.record()
        self.assertEqual((record.namespace, record.name), ("ns", "a"))
        record = Record("node", 1, b"", {}, {})
        self.assertEqual((record.namespace, record.name), ("", "node"))

    @given(st.integers(1, 2**63 - 1))
    def test_revision(self, revision: int) -> None:
        """The revision is first in the metadata, and is removed for the body."""
        record = self.record(revision)
        self.assertTrue(record.item.startswith(b'{"metadata":{"resourceVersion":"%d",' % revision))
        self.assertEqual(orjson.loads(record.item)["metadata"], {"resourceVersion": str(revision), "name": "a"})
        self.assertEqual(record.body(), without_kind(OBJECT))

    def test_deleted(self) -> None:
        """A deleted object has its last state, at the revision of the deletion."""
        deleted = self.record(7).deleted_at(100)
        self.assertEqual((deleted.revision, deleted.labels, deleted.fields), (100, {"l": "v"}, {"f": "w"}))
        self.assertEqual(orjson.loads(deleted.item)["metadata"]["resourceVersion"], "100")
        self.assertEqual(deleted.body(), self.record().body())

    def test_other_form(self) -> None:
        """Only a record in another encoding is rewritten."""
        self.assertFalse(self.record().stale_format)
        self.assertTrue(StaleFormatRecord("a", 1, b"", {}, {}).stale_format)


class EncodingTests(SynchronousTestCase):
    """Tests for L{without_kind}."""

    def test_order(self) -> None:
        """Metadata is first, with its resourceVersion first; kind and apiVersion are omitted."""
        self.assertEqual(without_kind(OBJECT), b'{"metadata":{"name":"a"},"spec":{"x":[1]}}')
        obj = {"spec": {}, "metadata": {"name": "a", "resourceVersion": "3"}, "kind": "Pod"}
        self.assertEqual(without_kind(obj), b'{"metadata":{"resourceVersion":"3","name":"a"},"spec":{}}')

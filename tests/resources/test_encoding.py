"""Tests for L{kubetwist.resources.encoding}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
    without_kind,
)
from kubetwist.http.responses import Body
from kubetwist.registry.printers import AgeCell
from kubetwist.resources.encoding import list_body
from kubetwist.resources.tables import cell_pieces


class PieceTests(SynchronousTestCase):
    """Parts of responses."""

    def test_cells(self) -> None:
        """The JSON of a row is cut at its ages, so that the rest can be cached."""
        self.assertEqual(cell_pieces(("a", 1, None)), (b'"a",1,null', None, b"", []))
        one = ("a", AgeCell(5.0), 1)
        before, stamp, after, more = cell_pieces(one)
        self.assertEqual((before + b"3m" + after, stamp, more), (b'"a","3m",1', 5.0, []))
        before, stamp, after, more = cell_pieces((AgeCell(5.0), "b", AgeCell(7.0, "(", ")")))
        self.assertEqual(before + b"1s" + after + b"2s" + more[0][1], b'"1s","b","(2s)"')
        self.assertEqual((stamp, more[0][0]), (5.0, 7.0))

    def test_list_body(self) -> None:
        """The items of a list are joined with commas."""
        for items in ([], [b"1"], [b"1", b"2", b"3"]):
            body = list_body(b"[", list(items), b"]")
            self.assertEqual(body.joined(), b"[" + b",".join(items) + b"]")
            self.assertEqual(body.length, len(body.joined()))
        self.assertEqual(Body([]).joined(), b"")

    def test_without_kind(self) -> None:
        """An object is stored with its metadata first, and its resourceVersion first in the metadata."""
        obj = {"kind": "X", "spec": 1, "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": "7"}}
        item = without_kind(obj)
        self.assertEqual(item, b'{"metadata":{"resourceVersion":"7","name":"a"},"spec":1}')
        record = Record.from_draft("a", 7, Draft(b'{"metadata":{"name":"a"},"spec":1}', {}, {}))
        self.assertEqual(record.item, item)

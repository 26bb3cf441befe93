"""Tests for L{kubetwist.resources.encoding}."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
    without_kind,
)
from kubetwist.http.responses import Body
from kubetwist.registry.printers import AgeCell
from kubetwist.resources.encoding import list_body
from kubetwist.resources.tables import KeptRows, cell_pieces


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

    @given(st.lists(st.lists(st.one_of(st.text(max_size=3), st.integers(0, 3)), max_size=4), max_size=5))
    def test_kept_rows(self, table: list[list[str | int]]) -> None:
        """Joined rows are cut at their ages, too; here, an integer is the time of an age."""
        rows, expected = KeptRows(), []
        for number, row in enumerate(table):
            cells = tuple(AgeCell(float(cell), "(", ")") if isinstance(cell, int) else cell for cell in row)
            rows.append((*cell_pieces(cells), b'],"object":', 0), b"%d}" % number)
            shown = [f"({100 - cell}s)" if isinstance(cell, int) else cell for cell in row]
            expected.append(b'{"cells":%b,"object":%d}' % (orjson.dumps(shown), number))
        for _ in range(2):
            self.assertEqual(rows.joined({2.0: b"98s"}, 100.0), b",".join(expected))

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

"""Tests for lists that are built in slices."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Record
from kubetwist.flowcontrol.scheduler import CooperativeScheduler
from kubetwist.resources import slices as module
from kubetwist.resources import tables
from kubetwist.resources.slices import MAX_SLICE_COST, encode_at_once, first_slice, joined_slices, slices
from kubetwist.storage.cache.blocks import Block, FormBudget, FormCache
from tests.resources.server import Server, config_map
from tests.resources.slicesvalues import TABLE

MAPS = "/api/v1/namespaces/default/configmaps"


PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class SliceTests(SynchronousTestCase):
    """L{slices}."""

    @given(st.lists(st.integers(1, 3 * MAX_SLICE_COST), max_size=30))
    def test_cost(self, costs: list[int]) -> None:
        """No slice exceeds its cost except by its last record, and together they contain all records in order."""
        records = [Record(str(number), 1, b"{}", {}, {}) for number in range(len(costs))]
        spent: list[list[int]] = [[]]

        def show(record: Record) -> bytes:
            spent[-1].append(costs[int(record.key)])
            return record.key.encode()

        making = slices(records, show, lambda record: costs[int(record.key)])
        while (created := first_slice(making)) is None:
            spent.append([])
        self.assertEqual(created, [record.key.encode() for record in records])
        self.assertEqual([cost for slice_ in spent for cost in slice_], costs)
        for slice_ in spent:
            self.assertLess(sum(slice_[:-1]), MAX_SLICE_COST)

    @given(st.lists(st.lists(st.integers(1, 3 * MAX_SLICE_COST), min_size=1, max_size=5), max_size=6))
    def test_joined(self, costs: list[list[int]]) -> None:
        """The items of a block are encoded in slices twice, and then kept as one item."""
        forms = FormCache(Clock(), FormBudget())
        records = [
            [Record(f"{place}{number}", cost, b"{}", {}, {}) for number, cost in enumerate(block)]
            for place, block in enumerate(costs)
        ]
        blocks = [Block(block, forms) for block in records]
        keys = ",".join(record.key for block in records for record in block)
        spent: list[int] = []

        def show(record: Record) -> bytes:
            spent.append(record.revision)
            return record.key.encode()

        for encoded in (True, True, False):
            making = joined_slices(blocks, "form", show, lambda record: record.revision)
            created = first_slice(making)
            while created is None:
                self.assertLess(sum(spent[:-1]), MAX_SLICE_COST)
                spent.clear()
                created = first_slice(making)
            if not encoded:
                self.assertEqual((spent, len(created)), ([], len(blocks)))
            spent.clear()
            self.assertEqual(b",".join(created).decode(), keys)

    def test_at_once(self) -> None:
        """Without scheduler, all slices are built at once."""
        records = [Record(str(number), 1, b"{}", {}, {}) for number in range(3)]
        self.assertEqual(
            encode_at_once(slices(records, lambda record: b"x", lambda record: MAX_SLICE_COST)), [b"x"] * 3
        )


class ListTests(SynchronousTestCase):
    """Lists over HTTP."""

    def setUp(self) -> None:
        """Create twenty ConfigMaps, four per slice; iterations of the reactor take no time."""
        self.server = Server("configmaps", "namespaces")
        self.client = self.server.client()
        for number in range(20):
            self.client.ask("POST", MAPS, config_map(f"c{number:02}", x="x" * 1000))
        self.turning = Clock()
        self.server.site.scheduler = self.scheduler = CooperativeScheduler(self.turning)
        record = next(iter(self.server.stores.get("", "configmaps").cache.list("").records))
        self.patch(module, "MAX_SLICE_COST", 4 * len(record.item))
        self.patch(slices, "__defaults__", (4 * len(record.item),))

    def _begun(self, accept: str) -> Any:
        other = self.server.client()
        other.send(f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n".encode())
        return other

    def _finished(self, client: Any) -> tuple[int, Any]:
        """Return the number of iterations before the response, and the response."""
        waited: list[Any] = []
        due = self.scheduler.wait_for_slot
        with patch.object(self.scheduler, "wait_for_slot", lambda: waited.append(due()) or waited[-1]):
            while not (data := client.taken()):
                self.turning.advance(0)
        return len(waited), orjson.loads(data.partition(b"\r\n\r\n")[2])

    def test_iterations(self) -> None:
        """A list of rows or metadata that are not cached is built over several iterations of the reactor."""
        for accept, items in ((TABLE, "rows"), (PARTIALS, "items")):
            waited, found = self._finished(self._begun(accept))
            # The first of five slices is built immediately, and the turn for the second is requested then.
            self.assertEqual(waited, 3)
            self.assertEqual(len(found[items]), 20)

    def test_concurrent_requests(self) -> None:
        """Other requests are answered while a list is being built."""
        listing = self._begun(TABLE)
        self.assertEqual(listing.taken(), b"")
        self.assertEqual(self.client.ask("GET", f"{MAPS}/c01")[0], 200)
        self.assertEqual(listing.taken(), b"")
        self.assertEqual(len(self._finished(listing)[1]["rows"]), 20)

    def test_cached(self) -> None:
        """Cached rows are sent immediately."""
        first = self._finished(self._begun(TABLE))[1]
        waited, again = self._finished(self._begun(TABLE))
        self.assertEqual((waited, again), (0, first))

    def test_client_disconnects(self) -> None:
        """The list of a disconnected client is not continued."""
        created: list[str] = []
        show = tables.TableEncoder._joined

        def row(encoder: Any, record: Record, *how: Any) -> bytes:
            created.append(record.key)
            return show(encoder, record, *how)

        self.patch(tables.TableEncoder, "_joined", row)
        listing = self._begun(TABLE)
        before = len(created)
        listing.disconnect()
        for _ in range(20):
            self.turning.advance(0)
        self.assertEqual((before, len(created)), (4, 4))

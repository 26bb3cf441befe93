"""Tests of L{kubetwist.flowcontrol.workestimator}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.query import parse_query
from kubetwist.flowcontrol.controller import PriorityLevelState
from kubetwist.flowcontrol.workestimator import seats
from kubetwist.http.requestinfo import request_info_of

WIDE = PriorityLevelState("wide", "", False, {}, max_seats_per_request=8)
EXEMPT = PriorityLevelState("exempt", "", True, {})


def seats_of(path: str, count: int = 100, size: int = 10_000, level: PriorityLevelState = WIDE) -> int:
    """Return the number of seats of a GET, given number and size of the objects."""
    uri = path.encode()
    _, _, query = uri.partition(b"?")
    request: Any = SimpleNamespace(info=request_info_of(b"GET", uri), uri=uri, query=parse_query(query))
    return seats(request, level, lambda group, resource: (count, size) if resource == "pods" else None)


class SeatTests(SynchronousTestCase):
    """L{seats}."""

    def test_lists(self) -> None:
        """A list needs a seat per 100,000 bytes, rounded up, up to the maximum of its level."""
        for count, expected in ((0, 1), (1, 1), (10, 1), (11, 2), (40, 4), (10_000, 8)):
            self.assertEqual(seats_of("/api/v1/pods", count), expected, count)

    def test_exempt(self) -> None:
        """A list of an exempt level needs at most ten seats, for a megabyte in memory."""
        self.assertEqual(seats_of("/api/v1/pods", 10_000, level=EXEMPT), 10)

    def test_limit(self) -> None:
        """A valid limit below the number of objects reduces the seats."""
        for limit, expected in (("1", 1), ("25", 3), ("0", 8), ("", 8), ("x", 8), ("1000", 8), ("9" * 50, 8)):
            self.assertEqual(seats_of(f"/api/v1/pods?limit={limit}"), expected, limit)

    def test_one_object(self) -> None:
        """A request for one object or for a resource that is not stored needs one seat."""
        self.assertEqual(seats_of("/api/v1/namespaces/n/pods/p"), 1)
        self.assertEqual(seats_of("/api/v1/pods?fieldSelector=metadata.name%3Dp"), 1)
        self.assertEqual(seats_of("/api/v1/nodes"), 1)

    def test_watches(self) -> None:
        """A watch that begins with the existing objects needs as many seats as a list."""
        for query, expected in (
            ("resourceVersion=5", 1),
            ("", 8),
            ("resourceVersion=0", 8),
            ("resourceVersion=5&sendInitialEvents=true", 8),
            ("resourceVersion=5&sendInitialEvents=false", 1),
        ):
            self.assertEqual(seats_of(f"/api/v1/pods?watch=true&{query}"), expected, query)

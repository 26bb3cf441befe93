"""Tests for L{kubetwist.api.requestscope}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.requestscope import MAX_SIZE_IN_REACTOR, RequestScope


class ScopeTests(SynchronousTestCase):
    """Tests for L{RequestScope}."""

    def setUp(self) -> None:
        """Set up a computation thread that computes at once."""
        self.computed: list[Callable[..., Any]] = []

    def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Compute, and record the function."""
        self.computed.append(function)
        return succeed(function(*arguments))

    def compute(self, scope: RequestScope, size: int = 0) -> list[Callable[..., Any]]:
        """Return the functions that were computed in the thread."""
        self.computed.clear()
        self.assertEqual(self.successResultOf(ensureDeferred(scope.compute(size, max, 1, 2))), 2)
        return self.computed

    def test_large(self) -> None:
        """Computations on large bodies or objects run in the thread; the weight of the kind counts."""
        for size, other, weight, large in (
            (MAX_SIZE_IN_REACTOR, 0, 1, False),
            (MAX_SIZE_IN_REACTOR + 1, 0, 1, True),
            (0, MAX_SIZE_IN_REACTOR + 1, 1, True),
            (MAX_SIZE_IN_REACTOR // 2 + 1, 0, 2, True),
        ):
            scope = RequestScope(size=size, weight=weight, in_thread=self.in_thread)
            self.assertIs(scope.is_large(other), large)
            self.assertEqual(self.compute(scope, other), [max] if large else [])

    def test_no_thread(self) -> None:
        """Without a thread, computations run immediately."""
        scope = RequestScope(size=MAX_SIZE_IN_REACTOR * 2)
        self.assertFalse(scope.is_large())
        self.assertEqual(self.compute(scope), [])

    def test_derived(self) -> None:
        """Derived scopes do not change the original."""
        scope = RequestScope("a", sent=b"{}", floats={})
        self.assertEqual(scope.within("b").namespace, "b")
        self.assertTrue(scope.of_collection().collection)
        carried = scope.without_admission()
        self.assertEqual((carried.admitted, carried.sent, carried.floats), (True, None, None))
        self.assertEqual((scope.namespace, scope.collection, scope.admitted, scope.sent), ("a", False, False, b"{}"))

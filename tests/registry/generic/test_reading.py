"""Tests of L{kubetwist.registry.generic.reading}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from attrs import evolve

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.listoptions import parse_list_options
from kubetwist.api.record import (
    Listing,
    Record,
)
from kubetwist.api.requestscope import RequestScope
from kubetwist.registry.generic import reading
from kubetwist.registry.generic.reading import (
    MAX_CACHED_SELECTOR_LENGTH,
    SelectionPredicate,
    read_list,
    selection_predicate,
)
from tests.registry.storetools import StoreTestCase


def selected(namespace: str = "default", **query: str) -> SelectionPredicate:
    """Return the selection predicate of a query for namespaced objects."""
    store: Any = SimpleNamespace(info=SimpleNamespace(namespaced=True))
    options = parse_list_options({name: [value] for name, value in query.items()})
    return selection_predicate(store, RequestScope(namespace=namespace), options)


class SelectTests(SynchronousTestCase):
    """Tests of L{selection_predicate}."""

    def test_one_matcher(self) -> None:
        """Equal selectors have the same matcher, which a cache calls once."""
        query = {"labelSelector": "app=a,tier!=b", "fieldSelector": "status.phase=Running"}
        self.assertIs(selected(**query).match, selected(**query).match)
        self.assertIsNot(selected(**query).match, selected(labelSelector="app=a,tier!=b").match)
        self.assertEqual(selected("", fieldSelector="metadata.namespace=other").prefix, "other/")

    def test_long(self) -> None:
        """Predicates of long selectors are not cached."""
        long = "x" * (MAX_CACHED_SELECTOR_LENGTH + 1)
        for how in (
            {"fieldSelector": f"spec.nodeName={long}"},
            {"namespace": long, "fieldSelector": "spec.nodeName=a"},
        ):
            self.assertIsNot(selected(**how).match, selected(**how).match)

    def test_excluded_values(self) -> None:
        """Any number of excluded values of a field is one comparison."""
        terms = [f"metadata.name!=n{number}" for number in range(500)] + ["metadata.namespace!=a", "spec.x!=1"]
        found = selected("", fieldSelector=",".join(terms))
        self.assertEqual(found.tests, 3)
        assert found.match is not None
        for key, fields, expected in (
            ("b/m", {}, True),
            ("b/n499", {}, False),
            ("a/m", {}, False),
            ("b/m", {"spec.x": "1"}, False),
        ):
            self.assertEqual(found.match(Record(key, 1, b"{}", {}, fields)), expected, key)


class SliceTests(StoreTestCase):
    """Tests of lists with expensive selectors."""

    resources = ("configmaps",)

    def setUp(self) -> None:
        """Create fifty ConfigMaps, and count pauses."""
        super().setUp()
        self.store_of_maps = self.store("configmaps")
        for number in range(50):
            self.made(self.store_of_maps, {"metadata": {"name": f"c{number:02}", "labels": {"n": str(number % 10)}}})
        self.turns: list[Deferred[None]] = []

    def _pause(self) -> Deferred[None]:
        self.turns.append(Deferred())
        return self.turns[-1]

    def _listed(self, pause: Any, **query: str) -> tuple[list[str], str]:
        """Return the names that a query selects, and the key after which the next page begins."""
        options = parse_list_options({name: [value] for name, value in query.items()})
        found = read_list(self.store_of_maps, evolve(self.scope, pause=pause), options)
        if isinstance(found, Listing):
            return [record.name for record in found.records], found.next_key
        listing = Deferred.fromCoroutine(found)
        while not listing.called:
            self.turns[-1].callback(None)
        result = self.successResultOf(listing)
        return [record.name for record in result.records], result.next_key

    def test_turns(self) -> None:
        """With many requirements in a selector, a list compares a limited number of labels in a slice."""
        self.patch(reading, "COMPARISONS_PER_SLICE", 100)
        selector = ",".join(["n!=3", *(f"!a{number}" for number in range(9))])
        names, _ = self._listed(self._pause, labelSelector=selector)
        self.assertEqual(len(names), 45)
        # Ten requirements, ten records per slice; the first slice runs without waiting.
        self.assertEqual(len(self.turns), 4)

    def test_same(self) -> None:
        """The result of a list and the beginning of the next page do not depend on slices."""
        self.patch(reading, "COMPARISONS_PER_SLICE", 7)
        for selector in ("n=3", "n in (1,2,3)", "n!=3,!x", "n=11", "n notin (3),n!=4,n!=5"):
            for limit in ("0", "1", "5", "7", "50"):
                query = {"labelSelector": selector, "limit": limit}
                self.assertEqual(self._listed(self._pause, **query), self._listed(None, **query), query)
        self.assertTrue(self.turns)

    def test_sets(self) -> None:
        """The values of a set are one lookup, and do not slow down a list."""
        selector = f"n in ({','.join(map(str, range(1000)))})"
        self.assertEqual(len(self._listed(self._pause, labelSelector=selector)[0]), 50)
        self.assertEqual(self.turns, [])

"""Tests for L{kubetwist.registry.reading}: what selectors select."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.listoptions import list_options
from kubetwist.registry.reading import REMEMBERED_LENGTH, Selection, select
from kubetwist.registry.scope import RequestScope


def selected(namespace: str = "default", **query: str) -> Selection:
    """What a query selects among objects in namespaces."""
    store: Any = SimpleNamespace(info=SimpleNamespace(namespaced=True))
    options = list_options({name: [value] for name, value in query.items()})
    return select(store, RequestScope(namespace=namespace), options)


class SelectTests(SynchronousTestCase):
    """L{select}."""

    def test_one_matcher(self) -> None:
        """Who selects the same has the same matcher, by which a cache knows that it need not be asked twice."""
        query = {"labelSelector": "app=a,tier!=b", "fieldSelector": "status.phase=Running"}
        self.assertIs(selected(**query).match, selected(**query).match)
        self.assertIsNot(selected(**query).match, selected(labelSelector="app=a,tier!=b").match)
        self.assertEqual(selected("", fieldSelector="metadata.namespace=other").prefix, "other/")

    def test_long(self) -> None:
        """What is long is not kept."""
        long = "x" * (REMEMBERED_LENGTH + 1)
        for how in (
            {"fieldSelector": f"spec.nodeName={long}"},
            {"namespace": long, "fieldSelector": "spec.nodeName=a"},
        ):
            self.assertIsNot(selected(**how).match, selected(**how).match)

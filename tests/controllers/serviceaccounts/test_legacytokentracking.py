"""Tests for L{kubetwist.controllers.serviceaccounts.legacytokentracking}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.options import DeleteOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.controllers.serviceaccounts import legacytokentracking as legacytokens
from kubetwist.controllers.serviceaccounts.legacytokentracking import (
    CREATE_INTERVAL,
    NAME,
    LegacyTokenTracking,
)
from tests.registry.storetools import StoreTestCase

SCOPE = RequestScope("kube-system")


class LegacyTokenTrackingTests(StoreTestCase):
    """Tests for L{LegacyTokenTracking}."""

    resources = ("configmaps", "namespaces")

    def setUp(self) -> None:
        """Create a server with a fixed time."""
        super().setUp()
        self.patch(legacytokens, "_today", lambda: "2026-11-22")
        self.clock = self.server.clock
        self.tracking = LegacyTokenTracking(self.store("configmaps"), self.clock)

    def start(self) -> None:
        """Start the reconciler."""
        self.successResultOf(Deferred.fromCoroutine(self.tracking.start()))
        self.addCleanup(self.tracking.stop)

    def since(self) -> Any:
        """Return the data of the config map, or L{None}."""
        found = self.stores.get_copy("", "configmaps", "kube-system", NAME)
        return found and found["data"].get("since")

    def put(self, since: str) -> None:
        """Write the config map as another client."""
        obj = {"metadata": {"name": NAME}, "data": {"since": since, "other": "x"}}
        if self.since() is None:
            self.made(self.store("configmaps"), obj, SCOPE)
        else:
            obj = self.stores.get_copy("", "configmaps", "kube-system", NAME)
            obj["data"] = {"since": since, "other": "x"}
            update = self.store("configmaps").update(SCOPE, NAME, lambda stored: obj, legacytokens.UpdateOptions())
            self.successResultOf(update)

    def test_created(self) -> None:
        """The config map contains the date of its creation."""
        self.start()
        self.assertEqual(self.since(), "2026-11-22")

    def test_kept(self) -> None:
        """An existing config map is not changed."""
        self.put("2020-02-29")
        self.start()
        self.assertEqual(self.since(), "2020-02-29")

    def test_no_date(self) -> None:
        """An invalid date is corrected at any time. Other data is kept."""
        self.put("yesterday")
        self.start()
        self.assertEqual(self.since(), "2026-11-22")
        for text in ("2026-02-30", "2026-2-3", ""):
            self.put(text)
            self.clock.advance(0)
            self.assertEqual(self.since(), "2026-11-22")
        self.assertEqual(self.stores.get_copy("", "configmaps", "kube-system", NAME)["data"]["other"], "x")

    def test_deleted(self) -> None:
        """A deleted config map is created again, at least half an hour after the last creation."""
        self.start()
        self.successResultOf(self.store("configmaps").delete(SCOPE, NAME, DeleteOptions()))
        self.clock.advance(0)
        self.assertIsNone(self.since())
        self.clock.advance(CREATE_INTERVAL)
        self.assertEqual(self.since(), "2026-11-22")

    def test_stop(self) -> None:
        """After stop nothing is created."""
        self.start()
        self.tracking.stop()
        self.successResultOf(self.store("configmaps").delete(SCOPE, NAME, DeleteOptions()))
        self.clock.advance(CREATE_INTERVAL)
        self.assertIsNone(self.since())
        self.assertEqual(self.clock.getDelayedCalls()[1:], [])

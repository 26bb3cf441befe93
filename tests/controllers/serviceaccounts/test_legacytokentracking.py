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


class TokenTrackingTests(StoreTestCase):
    """Tests for L{LegacyTokenTracking}."""

    resources = ("configmaps", "namespaces")

    def setUp(self) -> None:
        """A server in its first minute, on some day."""
        super().setUp()
        self.patch(legacytokens, "_today", lambda: "2026-11-22")
        self.clock = self.server.clock
        self.tracking = LegacyTokenTracking(self.store("configmaps"), self.clock)

    def start(self) -> None:
        """Begin."""
        self.successResultOf(Deferred.fromCoroutine(self.tracking.start()))
        self.addCleanup(self.tracking.stop)

    def since(self) -> Any:
        """Return the data of the config map; L{None} without it."""
        found = self.stores.get_copy("", "configmaps", "kube-system", NAME)
        return found and found["data"].get("since")

    def put(self, since: str) -> None:
        """Write it as another client."""
        obj = {"metadata": {"name": NAME}, "data": {"since": since, "other": "x"}}
        if self.since() is None:
            self.made(self.store("configmaps"), obj, SCOPE)
        else:
            obj = self.stores.get_copy("", "configmaps", "kube-system", NAME)
            obj["data"] = {"since": since, "other": "x"}
            update = self.store("configmaps").update(SCOPE, NAME, lambda stored: obj, legacytokens.UpdateOptions())
            self.successResultOf(update)

    def test_made(self) -> None:
        """it has the date of its creation."""
        self.start()
        self.assertEqual(self.since(), "2026-11-22")

    def test_kept(self) -> None:
        """One that is there is left alone."""
        self.put("2020-02-29")
        self.start()
        self.assertEqual(self.since(), "2020-02-29")

    def test_no_date(self) -> None:
        """What is no date is made one, whenever that happens; the rest of it stays."""
        self.put("yesterday")
        self.start()
        self.assertEqual(self.since(), "2026-11-22")
        for text in ("2026-02-30", "2026-2-3", ""):
            self.put(text)
            self.clock.advance(0)
            self.assertEqual(self.since(), "2026-11-22")
        self.assertEqual(self.stores.get_copy("", "configmaps", "kube-system", NAME)["data"]["other"], "x")

    def test_deleted(self) -> None:
        """One that is deleted is made again, half an hour after the last one was."""
        self.start()
        self.successResultOf(self.store("configmaps").delete(SCOPE, NAME, DeleteOptions()))
        self.clock.advance(0)
        self.assertIsNone(self.since())
        self.clock.advance(CREATE_INTERVAL)
        self.assertEqual(self.since(), "2026-11-22")

    def test_stop(self) -> None:
        """After the end nothing is made any more."""
        self.start()
        self.tracking.stop()
        self.successResultOf(self.store("configmaps").delete(SCOPE, NAME, DeleteOptions()))
        self.clock.advance(CREATE_INTERVAL)
        self.assertIsNone(self.since())
        self.assertEqual(self.clock.getDelayedCalls()[1:], [])

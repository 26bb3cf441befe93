"""Tests for L{kubetwist.registry.customresources.sink}, over HTTP in memory."""

from __future__ import annotations

from tests.resources.hostandport import NEW, OLD, ConversionTestCase, old
from tests.resources.server import events


class SinkTests(ConversionTestCase):
    """Tests for watches in a version that is not the storage version."""

    def test_watch(self) -> None:
        """Events are sent in order, converted in few calls, also while a conversion is running."""
        self.define()
        self.ask("POST", OLD, old("a"))
        self.plugin.waiting = []
        watcher = self.server.client()
        watcher.begin(f"{NEW}?watch=1&resourceVersion=0")
        self.server.settle()
        self.assertEqual(watcher.taken(), b"")
        for name in ("b", "c"):
            self.ask("POST", OLD, old(name))
        self.ask("DELETE", f"{OLD}/b")
        self.plugin.waiting.pop().callback(None)
        self.server.settle()
        self.plugin.waiting.pop().callback(None)
        self.server.settle()
        result = events(watcher.taken().partition(b"\r\n\r\n")[2])
        shown = [(one["type"], one["object"]["metadata"]["name"], one["object"]["spec"]["host"]) for one in result]
        self.assertEqual(
            shown,
            [("ADDED", "a", "here"), ("ADDED", "b", "here"), ("ADDED", "c", "here"), ("DELETED", "b", "here")],
        )

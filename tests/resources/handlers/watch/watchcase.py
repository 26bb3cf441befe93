"""Test case of a server whose objects are watched."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.watchcache import WatchCache
from tests.resources.server import JSONClient, Server, config_map, events

MAPS = "/api/v1/namespaces/default/configmaps"


END = b"0\r\n\r\n"


def summary(found: list[Any]) -> list[tuple[str, str]]:
    """Return the types of events and the names of their objects."""
    return [(one["type"], one["object"]["metadata"].get("name", "")) for one in found]


class WatchTestCase(SynchronousTestCase):
    """Test case with a server, a client that writes and a client that watches."""

    def setUp(self) -> None:
        """Create two ConfigMaps."""
        self.server = Server("configmaps", "pods", "namespaces")
        self.writer, self.client = self.server.client(), self.server.client()
        for name in "ab":
            self.create(name)

    def cache(self) -> WatchCache:
        """Return the cache of ConfigMaps."""
        return self.server.stores.get("", "configmaps").cache

    def create(self, name: str, **labels: str) -> None:
        """Create a ConfigMap."""
        obj = config_map(name)
        obj["metadata"]["labels"] = labels
        self.assertEqual(self.writer.ask("POST", MAPS, obj)[0], 201)

    def relabel(self, name: str, **labels: str) -> None:
        """Change the labels of a ConfigMap."""
        patch = {"metadata": {"labels": labels}}
        answer = self.writer.answer("PATCH", f"{MAPS}/{name}", patch, Content_Type="application/merge-patch+json")
        self.assertEqual(answer.code, 200)

    def revision(self) -> int:
        """Return the current revision."""
        revision: int = self.server.backend.revision
        return revision

    def watch(self, query: str, client: JSONClient | None = None, path: str = MAPS) -> list[Any]:
        """Begin a watch; return the events that arrive immediately."""
        client = client or self.client
        head, separator, body = client.begin(f"{path}?watch=1&{query}").partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        self.assertTrue(separator)
        return events(body) + self.more(client)

    def more(self, client: JSONClient | None = None) -> list[Any]:
        """Return the events since the last call."""
        self.server.clock.advance(0)
        return events((client or self.client).taken())

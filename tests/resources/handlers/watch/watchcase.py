"""A server whose objects are watched."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.watchcache import WatchCache
from tests.resources.server import JSONClient, Server, config_map, events

MAPS = "/api/v1/namespaces/default/configmaps"


END = b"0\r\n\r\n"


def summary(found: list[Any]) -> list[tuple[str, str]]:
    """The kinds of events, and the names they are about."""
    return [(one["type"], one["object"]["metadata"].get("name", "")) for one in found]


class WatchTestCase(SynchronousTestCase):
    """A test with a server, one who writes and one who watches."""

    def setUp(self) -> None:
        """Two ConfigMaps."""
        self.server = Server("configmaps", "pods", "namespaces")
        self.writer, self.client = self.server.client(), self.server.client()
        for name in "ab":
            self.create(name)

    def cache(self) -> WatchCache:
        """That of ConfigMaps."""
        return self.server.stores.get("", "configmaps").cache

    def create(self, name: str, **labels: str) -> None:
        """Write a new one."""
        obj = config_map(name)
        obj["metadata"]["labels"] = labels
        self.assertEqual(self.writer.ask("POST", MAPS, obj)[0], 201)

    def relabel(self, name: str, **labels: str) -> None:
        """Write labels."""
        patch = {"metadata": {"labels": labels}}
        answer = self.writer.answer("PATCH", f"{MAPS}/{name}", patch, Content_Type="application/merge-patch+json")
        self.assertEqual(answer.code, 200)

    def revision(self) -> int:
        """The newest."""
        revision: int = self.server.backend.revision
        return revision

    def watch(self, query: str, client: JSONClient | None = None, path: str = MAPS) -> list[Any]:
        """Begin a watch; give the events that come at once."""
        client = client or self.client
        head, separator, body = client.begin(f"{path}?watch=1&{query}").partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        self.assertTrue(separator)
        return events(body) + self.more(client)

    def more(self, client: JSONClient | None = None) -> list[Any]:
        """The events that have come since."""
        self.server.clock.advance(0)
        return events((client or self.client).taken())

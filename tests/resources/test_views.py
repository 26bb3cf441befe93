"""Tests for L{kubetwist.resources.views}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server, config_map, events
from tests.resources.tabletools import MAPS

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


class PartialTests(SynchronousTestCase):
    """Metadata instead of objects."""

    def setUp(self) -> None:
        """Create a ConfigMap."""
        self.server = Server("configmaps")
        self.client = self.server.client()
        self.client.ask("POST", MAPS, config_map("a", x="1"))

    def test_partial(self) -> None:
        """The metadata of an object and of a list can be requested."""
        _, found = self.client.ask("GET", f"{MAPS}/a", Accept=PARTIAL)
        self.assertEqual((found["kind"], set(found)), ("PartialObjectMetadata", {"kind", "apiVersion", "metadata"}))
        _, found = self.client.ask("GET", MAPS, Accept=PARTIALS)
        self.assertEqual(found["kind"], "PartialObjectMetadataList")
        self.assertEqual(found["items"][0]["kind"], "PartialObjectMetadata")
        _, found = self.client.ask("GET", "/api/v1/namespaces/none/configmaps", Accept=PARTIALS)
        self.assertIsNone(found["items"])

    def test_partial_watch(self) -> None:
        """A watch of metadata sends only metadata."""
        data = self.client.begin(f"{MAPS}?watch=1", Accept=PARTIAL).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        (event,) = events(data + self.client.taken())
        self.assertEqual((event["object"]["kind"], "data" in event["object"]), ("PartialObjectMetadata", False))

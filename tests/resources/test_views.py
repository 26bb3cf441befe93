"""Tests for L{kubetwist.resources.views}."""

from __future__ import annotations

from typing import Any

import orjson
import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import decode_cbor
from kubetwist.schema.protobuf.codec import read_envelope
from tests.http.harness import Answer
from tests.resources.server import Server, all_kinds, config_map, events
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


MATRIX = {
    "application/json": "application/json",
    "application/json, application/cbor": "application/json",
    "application/yaml": "application/yaml",
    "application/cbor": "application/cbor",
    "application/cbor;q=0.5, application/yaml": "application/yaml",
    "application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf,application/json": "application/vnd.kubernetes.protobuf",
    "*/*": "application/json",
}


class MatrixTests(SynchronousTestCase):
    """Every kind, media type and verb."""

    def kind_of(self, answer: Answer) -> str:
        """Return the kind of a response in any media type."""
        media = answer.header("content-type")
        if media == "application/vnd.kubernetes.protobuf":
            return read_envelope(answer.body).kind
        if media == "application/cbor":
            value: Any = decode_cbor(answer.body).value
        elif media == "application/yaml":
            value = yaml.safe_load(answer.body)
        else:
            value = orjson.loads(answer.body)
        kind: str = value["kind"]
        return kind

    def test_reads(self) -> None:
        """All resources have lists, missing objects and watches in each media type."""
        infos = [info for info in all_kinds() if info.stored]
        server = Server(*{info.resource for info in infos})
        server.site.serves_cbor = True
        client = server.client()
        for info in infos:
            version = info.versions[0]
            root = f"/apis/{info.group}/{version}" if info.group else f"/api/{version}"
            path = f"{root}/namespaces/default/{info.resource}" if info.namespaced else f"{root}/{info.resource}"
            for accept, media in MATRIX.items():
                for address, code, kind in ((path, 200, f"{info.kind}List"), (f"{path}/missing", 404, "Status")):
                    answer = client.answer("GET", address, Accept=accept)
                    found = answer.code, answer.header("content-type"), self.kind_of(answer)
                    self.assertEqual(found, (code, media, kind), (address, accept))
            for accept, media in (
                ("application/json", b"application/json"),
                ("application/cbor,application/json", b"application/cbor-seq"),
                ("application/vnd.kubernetes.protobuf,*/*", b"application/vnd.kubernetes.protobuf;stream=watch"),
            ):
                head = server.client().begin(f"{path}?watch=1", Accept=accept)
                self.assertIn(b"\r\nContent-Type: " + media + b"\r\n", head, path)

    def test_writes(self) -> None:
        """Responses to all verbs that write are available in each media type."""
        server = Server("configmaps", "serviceaccounts")
        server.site.serves_cbor = True
        client = server.client()
        patch = {"Content_Type": "application/merge-patch+json"}
        for number, (accept, media) in enumerate(MATRIX.items()):
            path = f"{MAPS}/m{number}"
            for method, address, body, headers, code, kind in (
                ("POST", MAPS, config_map(f"m{number}", x="1"), {}, 201, "ConfigMap"),
                ("POST", MAPS, config_map(f"m{number}", x="1"), {}, 409, "Status"),
                ("PUT", path, config_map(f"m{number}", x="2"), {}, 200, "ConfigMap"),
                ("PATCH", path, {"data": {"x": "3"}}, patch, 200, "ConfigMap"),
                ("DELETE", path, None, {}, 200, "Status"),
                ("DELETE", MAPS, None, {}, 200, "ConfigMapList"),
                ("POST", MAPS, b"{", {}, 400, "Status"),
            ):
                answer = client.answer(method, address, body, Accept=accept, **headers)
                found = answer.code, answer.header("content-type"), self.kind_of(answer)
                self.assertEqual(found, (code, media, kind), (method, address, accept))

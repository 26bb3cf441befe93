"""Tests for L{kubetwist.resources.cborencoding}: requests and responses in CBOR."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import cbor2
import orjson
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.cbor import base64_later, decode_cbor, encode_cbor
from kubetwist.api.documents import CBOR_MAGIC
from kubetwist.api.requestscope import MAX_SIZE_IN_REACTOR
from kubetwist.api.storage import Write
from kubetwist.api.times import temporary_clock
from kubetwist.resources.handlers import bodies
from tests.http.harness import Answer
from tests.resources.customserver import KITES, CustomServer, definition
from tests.resources.handlers.test_websocketwatch import ASKED
from tests.resources.server import Server, config_map
from tests.resources.tabletools import MAPS

CBOR = "application/cbor"
SEQUENCE = "application/cbor-seq"
APPLY = "application/apply-patch+cbor"
PARTIAL = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


def items(data: bytes) -> list[Any]:
    """Decode a sequence of documents, each of which begins with the tag of CBOR."""
    found = []
    while data:
        assert data.startswith(CBOR_MAGIC), data
        cbor2.CBORDecoder(stream := BytesIO(data)).decode()
        rest = stream.read()
        found.append(decode_cbor(data[: len(data) - len(rest)]).value)
        data = rest
    return found


class CBORTestCase(SynchronousTestCase):
    """Test case with a server that serves CBOR."""

    serves_cbor = True

    def setUp(self) -> None:
        """Create a server with some kinds and two ConfigMaps."""
        self.server = Server("configmaps", "secrets", "pods", "deployments", "serviceaccounts", "selfsubjectreviews")
        self.server.site.serves_cbor = self.serves_cbor
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", MAPS, config_map(name, x="1"))

    def answer(self, method: str, path: str, body: Any = None, accept: str = CBOR, media: str = CBOR) -> Answer:
        """Send a request with a body in CBOR; bytes are sent unchanged."""
        data = body if isinstance(body, bytes) else b"" if body is None else encode_cbor(body)
        headers = {"Content-Type": media} if data else {}
        return self.client.request(method, path, data, Accept=accept, **headers)

    def ask(self, method: str, path: str, body: Any = None, accept: str = CBOR, media: str = CBOR) -> tuple[int, Any]:
        """Send a request, and return the status and the document of a response in CBOR."""
        answer = self.answer(method, path, body, accept, media)
        self.assertEqual(answer.header("content-type"), CBOR, answer.body)
        self.assertTrue(answer.body.startswith(CBOR_MAGIC))
        return answer.code, decode_cbor(answer.body).value


class ObjectTests(CBORTestCase):
    """Single objects and lists."""

    def test_reads(self) -> None:
        """Objects, lists, pages and metadata equal those in JSON, at the first and at later requests."""
        for path in (f"{MAPS}/a", MAPS, f"{MAPS}?limit=1", "/api/v1/pods"):
            partial = PARTIAL if path.endswith("/a") else PARTIAL.replace("Metadata;", "MetadataList;")
            for accept in ("", partial):
                expected = self.client.ask("GET", path, Accept=f"application/json{accept}")
                for _ in range(2):
                    self.assertEqual(self.ask("GET", path, accept=CBOR + accept), expected, (path, accept))

    def test_tables(self) -> None:
        """Tables are available, for objects, lists and watches."""
        table = ";as=Table;v=v1;g=meta.k8s.io"
        for path in (f"{MAPS}/a", MAPS):
            # Rows contain ages.
            with temporary_clock(lambda: 2e9):
                expected = self.client.ask("GET", path, Accept=f"application/json{table}")
                self.assertEqual(self.ask("GET", path, accept=CBOR + table), expected)
        data = self.client.begin(f"{MAPS}?watch=1", Accept=CBOR + table).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        events = items(b"".join(pieces(data + self.client.taken())))
        self.assertEqual([one["object"]["kind"] for one in events], ["Table", "Table"])

    def test_writes(self) -> None:
        """Objects are created, updated, patched and deleted."""
        code, created = self.ask("POST", MAPS, config_map("c", x="1"))
        self.assertEqual((code, created["data"]), (201, {"x": "1"}))
        created["data"]["y"] = "2"
        code, updated = self.ask("PUT", f"{MAPS}/c", created)
        self.assertEqual((code, updated["data"]), (200, {"x": "1", "y": "2"}))
        code, patched = self.ask("PATCH", f"{MAPS}/c", b'{"data":{"x":null}}', media="application/merge-patch+json")
        self.assertEqual((code, patched["data"]), (200, {"y": "2"}))
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": created["metadata"]["uid"]}}
        code, status = self.ask("DELETE", f"{MAPS}/c", options)
        self.assertEqual((code, status["status"]), (200, "Success"))
        self.assertEqual(self.ask("DELETE", MAPS)[1]["kind"], "ConfigMapList")

    def test_apply(self) -> None:
        """An applied configuration in CBOR creates and changes an object."""
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"k": "1"}}
        self.assertEqual(self.ask("PATCH", f"{MAPS}/n?fieldManager=m", applied, media=APPLY)[0], 201)
        code, found = self.ask("PATCH", f"{MAPS}/n?fieldManager=m", {**applied, "data": {"l": "2"}}, media=APPLY)
        self.assertEqual((code, found["data"]), (200, {"l": "2"}))
        self.assertEqual(found["metadata"]["managedFields"][0]["operation"], "Apply")
        for data, message in (
            (b"\xa1", "error decoding patch: cbor: unexpected EOF"),
            (
                b"\x80",
                "error decoding patch: cbor: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (b"\xa2\x41a\x01\x41a\x02", "error decoding patch: cbor: "),
        ):
            code, status = self.ask("PATCH", f"{MAPS}/n?fieldManager=m", data, media=APPLY)
            self.assertEqual((code, status["message"][: len(message)]), (400, message))
        code, status = self.ask("PATCH", f"{MAPS}/n", applied, media=APPLY)
        self.assertIn("fieldManager", status["message"])

    def test_bytes(self) -> None:
        """Fields of bytes are tagged byte strings; they are accepted with the tag, and as base64."""
        path = "/api/v1/namespaces/default/secrets"
        for name, value in (("a", base64_later(b"\xff\xfe")), ("b", "//4=")):
            sent = cbor2.dumps({"metadata": {"name": name}, "data": {"k": value}})
            code, created = self.ask("POST", path, sent)
            self.assertEqual((code, created["data"]), (201, {"k": "//4="}))
        for one in (f"{path}/a", path):
            self.assertIn(b"\x44data\xa1\x41k\xd6\x42\xff\xfe", self.answer("GET", one).body)
        self.assertEqual(self.client.ask("GET", f"{path}/b")[1]["data"], {"k": "//4="})

    def test_subresources_and_reviews(self) -> None:
        """Status, scale and reviews have a form in CBOR."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        self.assertEqual(self.ask("POST", path, {"metadata": {"name": "d"}, "spec": spec})[0], 201)
        code, scale = self.ask("GET", f"{path}/d/scale")
        self.assertEqual((code, scale["kind"], scale["spec"]), (200, "Scale", {"replicas": 1}))
        code, scale = self.ask("PUT", f"{path}/d/scale", {**scale, "spec": {"replicas": 3}})
        self.assertEqual((code, scale["spec"]), (200, {"replicas": 3}))
        self.assertEqual(self.ask("GET", f"{path}/d/status")[1]["spec"]["replicas"], 3)
        code, review = self.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        self.assertEqual((code, review["status"]["userInfo"]["username"]), (201, "admin"))

    def test_invalid_bodies(self) -> None:
        """An invalid body is a bad request, whose Status is in CBOR."""
        reason = "unable to determine group/version/kind: cbor: "
        for data, message in (
            (b"\xa1\x41a", "unexpected EOF"),
            (b"\xa0\x00", "1 bytes of extraneous data"),
            (b"\x81" * 1000, ""),
            (b"\x5b" + b"\x7f" * 8, "unexpected EOF"),
            (b"\xa2\x41a\x00\x41a\x00", ""),
            (b"\xa1\x41a\x61\xff", "invalid UTF-8 string"),
            (b"\xa1\x41a\xf7", ""),
        ):
            code, status = self.ask("POST", MAPS, data)
            self.assertEqual((code, status["kind"]), (400, "Status"), data)
            self.assertIn(f"(must be of type ConfigMap): {reason}{message}", status["message"])
        code, status = self.ask("POST", MAPS, {"metadata": {"name": "x"}, "data": {"k": 1.5}})
        self.assertEqual(code, 400)
        code, status = self.ask("POST", f"{MAPS}?fieldValidation=Strict", {**config_map("x"), "other": 1})
        self.assertIn('unknown field "other"', status["message"])
        code, status = self.ask("DELETE", f"{MAPS}/a", b"\xa1")
        self.assertEqual(code, 400)

    def test_large(self) -> None:
        """A large body is decoded in a thread."""
        code, _ = self.ask("POST", MAPS, config_map("large", x="y" * bodies.CBOR_IN_REACTOR))
        self.assertEqual(code, 201)
        self.assertIn("_cbor_as_json", [one.__name__ for one in self.server.done_in_threads])

    def test_kept(self) -> None:
        """A record keeps its forms in CBOR and in protobuf side by side."""
        for _ in range(2):
            for accept in (CBOR, "application/vnd.kubernetes.protobuf"):
                self.answer("GET", MAPS, accept=accept)
        (store,) = [one for one in self.server.registry.stores if one.info.resource == "configmaps"]
        record = store.cache.get("default/a")
        assert record is not None and record.encodings is not None
        self.assertEqual(sorted(key[0] for key in record.encodings if isinstance(key, tuple)), ["cbor", "protobuf"])


def pieces(data: bytes) -> list[bytes]:
    """Return the chunks of a response."""
    found = []
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        found.append(data[:length])
        data = data[length + 2 :]
    return found


class WatchTests(CBORTestCase):
    """Watches."""

    def begin(self, query: str, accept: str = CBOR) -> list[Any]:
        """Start a watch, and return its first events."""
        self.watcher = self.server.client()
        head, _, data = self.watcher.begin(f"{MAPS}?watch=1&{query}", Accept=accept).partition(b"\r\n\r\n")
        self.assertIn(b"application/cbor-seq", head)
        self.server.clock.advance(0)
        return items(b"".join(pieces(data + self.watcher.taken())))

    def more(self) -> list[Any]:
        """Return further events."""
        self.server.clock.advance(0)
        return items(b"".join(pieces(self.watcher.taken())))

    def test_events(self) -> None:
        """A watch is a sequence of events, each with a document."""
        first = self.begin("")
        self.assertEqual(
            [(one["type"], one["object"]["metadata"]["name"]) for one in first], [("ADDED", "a"), ("ADDED", "b")]
        )
        self.assertEqual(first[0]["object"], self.client.ask("GET", f"{MAPS}/a")[1])
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="2"))
        self.client.ask("DELETE", f"{MAPS}/b")
        self.assertEqual([one["type"] for one in self.more()], ["MODIFIED", "DELETED"])

    def test_bytes(self) -> None:
        """The object of an event is tagged as CBOR, too."""
        client = self.server.client()
        body = client.begin(f"{MAPS}?watch=1", Accept=CBOR).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        data = b"".join(pieces(body + client.taken()))
        start = CBOR_MAGIC + b"\xa2\x44type\x45ADDED\x46object" + CBOR_MAGIC
        self.assertEqual(data[: len(start)], start)

    def test_bookmarks(self) -> None:
        """A bookmark ends the initial events."""
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        *_, bookmark = self.begin(query)
        self.assertEqual((bookmark["type"], bookmark["object"]["kind"]), ("BOOKMARK", "ConfigMap"))
        self.assertEqual(bookmark["object"]["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})

    def test_errors(self) -> None:
        """A watch that cannot begin at its revision sends an ERROR event, and ends."""
        self.successResultOf(self.server.backend.compact(self.server.backend.revision))
        (error,) = self.begin("resourceVersion=1")
        self.assertEqual((error["type"], error["object"]["kind"], error["object"]["code"]), ("ERROR", "Status", 410))

    def test_socket(self) -> None:
        """Over WebSocket each event is a binary message."""
        client = self.server.client()
        frames = Connection(ConnectionType.CLIENT)
        rest = client.begin(f"{MAPS}?watch=1", Accept=CBOR, **ASKED).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        frames.receive_data(rest + client.taken())
        found = []
        for event in frames.events():
            assert isinstance(event, BytesMessage), event
            found += items(bytes(event.data))
        self.assertEqual([one["object"]["metadata"]["name"] for one in found], ["a", "b"])

    def test_partial(self) -> None:
        """The metadata of objects can be watched."""
        first = self.begin("", CBOR + PARTIAL)
        self.assertEqual(first[0]["object"]["kind"], "PartialObjectMetadata")
        self.assertEqual({*first[0]["object"]}, {"kind", "apiVersion", "metadata"})


class CustomResourceTests(CBORTestCase):
    """Custom resources, which have a form in CBOR, but none in protobuf."""

    def setUp(self) -> None:
        """Create a custom resource."""
        self.server: Any = CustomServer()
        self.server.site.serves_cbor = True
        self.client = self.server.client()
        self.server.define(self.client, definition(subresources={"status": {}}))
        self.kite = {"kind": "Kite", "apiVersion": "example.com/v1", "metadata": {"name": "a"}, "spec": {"tail": 2}}
        self.assertEqual(self.ask("POST", KITES, self.kite)[0], 201)

    def test_reads(self) -> None:
        """Objects and lists, whose items repeat their kind, equal those in JSON."""
        for path in (f"{KITES}/a", KITES, f"{KITES}/a/status"):
            expected = self.client.ask("GET", path)
            for _ in range(2):
                self.assertEqual(self.ask("GET", path), expected)

    def test_apply(self) -> None:
        """A configuration is applied."""
        applied = {**self.kite, "spec": {"tail": 3}}
        code, found = self.ask("PATCH", f"{KITES}/a?fieldManager=m&force=true", applied, media=APPLY)
        self.assertEqual((code, found["spec"]), (200, {"tail": 3, "colour": "red"}))

    def test_numbers(self) -> None:
        """A body in CBOR is decoded with the type of its numbers."""
        code, status = self.ask("PUT", f"{KITES}/a", {**self.kite, "spec": {"tail": "2"}})
        self.assertEqual((code, status["reason"]), (422, "Invalid"))

    def test_stored(self) -> None:
        """An object that another server has stored as CBOR is read, and its next update stores it as JSON."""
        key = "/registry/example.com/kites/default/b"
        stored = {**self.kite, "metadata": {"name": "b", "namespace": "default", "uid": "1"}}
        self.server.site.serves_cbor = False
        self.successResultOf(self.server.backend.commit([Write(key, encode_cbor(stored), 0)]))
        self.server.clock.advance(0)
        code, found = self.client.ask("GET", f"{KITES}/b")
        self.assertEqual((code, found["spec"]["tail"]), (200, 2))
        self.assertEqual(self.client.ask("PUT", f"{KITES}/b", found)[0], 200)
        self.assertTrue(self.successResultOf(self.server.backend.read(key)).value.startswith(b"{"))

    def test_stored_as_cbor(self) -> None:
        """Custom resources are stored as CBOR if the server is configured so; those in JSON by their next update."""
        server = CustomServer(cbor=True)
        server.define(client := server.client(), definition())

        def stored(name: str) -> bytes:
            return self.successResultOf(server.backend.read(f"/registry/example.com/kites/default/{name}")).value

        self.assertEqual(client.ask("POST", KITES, self.kite)[0], 201)
        value = stored("a")
        self.assertTrue(value.startswith(CBOR_MAGIC))
        content: Any = decode_cbor(value).value
        code, found = client.ask("GET", f"{KITES}/a")
        self.assertEqual((content["kind"], content["apiVersion"]), ("Kite", "example.com/v1"))
        self.assertEqual((code, found["spec"]), (200, content["spec"]))
        self.assertNotIn("resourceVersion", content["metadata"])
        revision = found["metadata"]["resourceVersion"]
        self.assertEqual(client.ask("PUT", f"{KITES}/a", found)[1]["metadata"]["resourceVersion"], revision)
        json = {**self.kite, "metadata": {"name": "b", "namespace": "default", "uid": "1"}}
        key = "/registry/example.com/kites/default/b"
        self.successResultOf(server.backend.commit([Write(key, orjson.dumps(json), 0)]))
        server.clock.advance(0)
        code, found = client.ask("GET", f"{KITES}/b")
        self.assertEqual(client.ask("PUT", f"{KITES}/b", found)[0], 200)
        self.assertTrue(stored("b").startswith(CBOR_MAGIC))
        self.assertNotIn("encode", [one.__name__ for one in server.done_in_threads])
        found = client.ask("GET", f"{KITES}/b")[1]
        found["metadata"]["annotations"] = {"a": "x" * MAX_SIZE_IN_REACTOR}
        self.assertEqual(client.ask("PUT", f"{KITES}/b", {**found, "spec": {"tail": 3}})[0], 200)
        self.assertIn("encode", [one.__name__ for one in server.done_in_threads])
        large: Any = decode_cbor(stored("b")).value
        self.assertEqual((large["spec"]["tail"], len(large["metadata"]["annotations"]["a"])), (3, MAX_SIZE_IN_REACTOR))
        definitions = "/registry/apiextensions.k8s.io/customresourcedefinitions/kites.example.com"
        self.assertTrue(self.successResultOf(server.backend.read(definitions)).value.startswith(b"{"))

    def test_watch(self) -> None:
        """A watch is a sequence of events."""
        data = self.client.begin(f"{KITES}?watch=1", Accept=CBOR).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        (event,) = items(b"".join(pieces(data + self.client.taken())))
        self.assertEqual((event["type"], event["object"]["kind"]), ("ADDED", "Kite"))

    def test_negotiation(self) -> None:
        """Protobuf is not available, so that the next accepted media type is chosen."""
        protobuf = "application/vnd.kubernetes.protobuf"
        for accept, media in ((f"{protobuf},{CBOR}", CBOR), (f"{protobuf},application/json", "application/json")):
            self.assertEqual(self.answer("GET", f"{KITES}/a", accept=accept).header("content-type"), media)
        answer = self.answer("GET", f"{KITES}/a", accept=protobuf)
        self.assertEqual(answer.code, 406)
        self.assertIn(f"{MEDIA_TYPES}, {CBOR}".encode(), answer.body)


class NegotiationTests(CBORTestCase):
    """Negotiation with CBOR."""

    def test_order(self) -> None:
        """Of media types that are accepted equally, the first one is chosen."""
        for accept, media in (
            (f"{CBOR},application/json", CBOR),
            (f"application/json,{CBOR}", "application/json"),
            (f"{CBOR};q=0.5,application/json", "application/json"),
            (f"text/html,{CBOR}", CBOR),
            ("*/*", "application/json"),
        ):
            self.assertEqual(self.answer("GET", f"{MAPS}/a", accept=accept).header("content-type"), media, accept)

    def test_texts(self) -> None:
        """The errors for other media types list CBOR."""
        answer = self.answer("GET", f"{MAPS}/a", accept="text/html")
        self.assertIn(f"{MEDIA_TYPES}, {CBOR}", orjson.loads(answer.body)["message"])
        answer = self.answer("GET", MAPS, accept="text/html")
        self.assertIn(f"protobuf;stream=watch, {SEQUENCE}", orjson.loads(answer.body)["message"])
        code, status = self.ask("POST", MAPS, b"x", media="text/html")
        self.assertEqual(code, 415)
        self.assertIn(f"{MEDIA_TYPES}, {CBOR}", status["message"])

    def test_sequences(self) -> None:
        """A sequence is the form of a watch, but not a media type that clients can request."""
        answer = self.answer("GET", f"{MAPS}?watch=1", accept=SEQUENCE)
        self.assertEqual((answer.code, answer.header("content-type")), (406, "application/json"))

    def test_errors(self) -> None:
        """Errors before the handler are in CBOR, too."""
        for path in ("/api/v1/nothing", f"{MAPS}/a/nothing"):
            code, status = self.ask("GET", path)
            self.assertEqual((code, status["reason"]), (404, "NotFound"))


class DisabledTests(CBORTestCase):
    """A server without CBOR, which is the default."""

    serves_cbor = False

    def test_refused(self) -> None:
        """CBOR is neither accepted nor listed."""
        answer = self.answer("GET", f"{MAPS}/a")
        self.assertEqual(answer.code, 406)
        self.assertNotIn(b"cbor", answer.body)
        answer = self.answer("POST", MAPS, config_map("c"), accept="application/json")
        self.assertEqual(answer.code, 415)
        self.assertNotIn(b"cbor", answer.body)
        applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}}
        answer = self.answer("PATCH", f"{MAPS}/n?fieldManager=m", applied, "application/json", APPLY)
        self.assertEqual(answer.code, 415)

    def test_other_types(self) -> None:
        """A client that accepts another media type, too, gets that."""
        answer = self.answer("GET", f"{MAPS}/a", accept=f"{CBOR},application/json")
        self.assertEqual(answer.header("content-type"), "application/json")

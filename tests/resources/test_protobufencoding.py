"""Tests for L{kubetwist.resources.protobufencoding}: objects, lists and watches in protobuf, over HTTP in memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.audit.auditedrequest import audited_request
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.failures import Counts
from kubetwist.audit.policy import read_policy
from kubetwist.filters.stack import with_filters
from kubetwist.flowcontrol.turns import Turns
from kubetwist.http.site import traverse
from kubetwist.resources.handlers import read as reads
from kubetwist.resources.protobufencoding import AT_ONCE
from kubetwist.schema.protobuf.codec import read_envelope
from kubetwist.schema.protobuf.encoding import envelope
from kubetwist.schema.protobuf.wire import WireError
from tests.audit.events import Kept
from tests.http.harness import Allow, Everyone, make_site
from tests.resources.handlers.test_watch import END
from tests.resources.handlers.test_websocketwatch import ASKED
from tests.resources.server import ADMIN, JSONClient, Server, chunks, config_map, definitions, pod

PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAM = f"{PROTOBUF};stream=watch"
PARTIAL = f"{PROTOBUF};g=meta.k8s.io;v=v1;as=PartialObjectMetadata"
MAPS = "/api/v1/namespaces/default/configmaps"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"


def foreign_event() -> Any:
    """A C{WatchEvent} with an object in its envelope, as another implementation of protobuf reads it."""
    file = descriptor_pb2.FileDescriptorProto(name="watch.proto", package="w", syntax="proto2")
    for name, fields in (
        ("Event", (("type", 9, ""), ("object", 11, ".w.Raw"))),
        ("Raw", (("raw", 12, ""),)),
        ("Unknown", (("meta", 11, ".w.Meta"), ("raw", 12, ""), ("encoding", 9, ""), ("type", 9, ""))),
        ("Meta", (("version", 9, ""), ("kind", 9, ""))),
    ):
        message = file.message_type.add(name=name)
        for number, (field, kind, of) in enumerate(fields, 1):
            message.field.add(name=field, number=number, label=1, type=kind, type_name=of or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"w.{name}"))()


FOREIGN: Callable[[str], Any] = foreign_event()


class Opened(NamedTuple):
    """An answer, taken out of its envelope."""

    api_version: str
    kind: str
    value: Any


def opened(body: bytes, definition: str = "") -> Opened:
    """
    What an answer is, read twice.

    @param definition: What it is a message of, if it does not say so.
    """
    said = read_envelope(body)
    unknown = FOREIGN("Unknown")
    unknown.ParseFromString(body[4:])
    assert (unknown.meta.version, unknown.meta.kind, unknown.raw) == said
    assert (unknown.HasField("encoding"), unknown.HasField("type")) == (True, True)
    group_version = GroupVersion.parse(said.api_version)
    definition = definition or definitions().definition_of(GroupVersionKind(*group_version, said.kind))
    return Opened(said.api_version, said.kind, definitions().protobuf.decode(definition, said.raw))


class AnswerTestCase(SynchronousTestCase):
    """A test with a server and one who takes protobuf."""

    def setUp(self) -> None:
        """Serve some kinds; two ConfigMaps are there."""
        self.server = Server("configmaps", "pods", "deployments", "horizontalpodautoscalers", "selfsubjectreviews")
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", MAPS, config_map(name, x="1"))

    def ask(self, method: str, path: str, body: Any = None, accept: str = PROTOBUF, **headers: str) -> Any:
        """Ask for protobuf; give the status and what is in the answer."""
        answer = self.client.answer(method, path, body, Accept=accept, **headers)
        self.assertEqual(answer.header("content-type"), PROTOBUF, answer.body)
        return answer.code, opened(answer.body)

    def same(self, path: str) -> None:
        """In protobuf an object is what it is in JSON."""
        code, found = self.ask("GET", path)
        expected = self.client.ask("GET", path)[1]
        self.assertEqual((code, found.api_version, found.kind), (200, expected["apiVersion"], expected["kind"]))
        gvk = GroupVersionKind(*GroupVersion.parse(found.api_version), found.kind)
        shown = definitions().type_for(gvk).decode(found.value, [])
        self.assertEqual({**shown, "kind": found.kind, "apiVersion": found.api_version}, expected)


class ObjectTests(AnswerTestCase):
    """Single objects."""

    def test_get(self) -> None:
        """An object is the one that JSON shows, in its envelope."""
        self.same(f"{MAPS}/a")
        self.client.ask("POST", "/api/v1/namespaces/default/pods", pod("p", labels={"b": "1", "a": "2"}))
        self.same("/api/v1/namespaces/default/pods/p")

    def test_writes(self) -> None:
        """What is created, updated, patched and deleted is answered in protobuf, whatever the body was."""
        code, found = self.ask("POST", MAPS, config_map("c", y="2"))
        self.assertEqual((code, found.kind, found.value["data"]), (201, "ConfigMap", {"y": "2"}))
        raw = definitions().protobuf.encode("io.k8s.api.core.v1.ConfigMap", {**config_map("c"), "data": {"y": "3"}})
        code, found = self.ask("PUT", f"{MAPS}/c", envelope("v1", "ConfigMap", raw), Content_Type=PROTOBUF)
        self.assertEqual((code, found.value["data"]), (200, {"y": "3"}))
        patch = {"data": {"z": "4"}}
        code, found = self.ask("PATCH", f"{MAPS}/c", patch, Content_Type="application/merge-patch+json")
        self.assertEqual((code, found.value["data"]), (200, {"y": "3", "z": "4"}))
        code, found = self.ask("DELETE", f"{MAPS}/c")
        self.assertEqual((code, found.kind, found.value["status"]), (200, "Status", "Success"))
        self.assertEqual(found.value["details"]["name"], "c")

    def test_deletecollection(self) -> None:
        """What is deleted together is a list."""
        code, found = self.ask("DELETE", MAPS)
        self.assertEqual((code, found.kind), (200, "ConfigMapList"))
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["a", "b"])

    def test_subresources(self) -> None:
        """Subresources of other kinds are answered, too, and what is not stored."""
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        self.assertEqual(self.client.ask("POST", path, {"metadata": {"name": "d"}, "spec": spec})[0], 201)
        self.same(f"{path}/d")
        self.same(f"{path}/d/status")
        self.same(f"{path}/d/scale")
        code, found = self.ask("GET", f"{path}/d/scale")
        self.assertEqual((found.kind, found.value["spec"]), ("Scale", {"replicas": 2}))
        code, found = self.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        self.assertEqual(
            (code, found.kind, found.value["status"]["userInfo"]["username"]), (201, "SelfSubjectReview", "admin")
        )

    def test_versions(self) -> None:
        """An object is in the version that is asked for."""
        spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
        path = "autoscaling/{}/namespaces/default/horizontalpodautoscalers"
        made = self.client.ask("POST", f"/apis/{path.format('v1')}", {"metadata": {"name": "h"}, "spec": spec})
        self.assertEqual(made[0], 201, made)
        for version in ("v1", "v2"):
            self.same(f"/apis/{path.format(version)}/h")

    def test_large(self) -> None:
        """What is large is encoded in a thread."""
        self.patch(reads, "PROTOBUF_IN_REACTOR", 100)
        self.same(f"{MAPS}/a")
        self.assertEqual([one.__name__ for one in self.server.done_in_threads], ["of_document"])

    def test_audit(self) -> None:
        """The audit tells what is answered in protobuf as it tells what is answered in JSON."""
        content = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
        kept = Kept()
        auditor = Auditor(read_policy(json.dumps(content).encode()), [kept], False, Counts())
        handler = with_filters(
            traverse(self.server.installer.layer),
            reactor=self.server.clock,
            authenticator=Everyone(ADMIN),
            authorizer=Allow(),
            auditor=auditor,
        )
        site = make_site(handler, self.server.clock)
        site.requestFactory = audited_request(auditor)  # type: ignore[assignment]
        client = JSONClient(site)
        for limit in (1 << 20, 100):
            self.patch(reads, "PROTOBUF_IN_REACTOR", limit)
            for path in (f"{MAPS}/a", MAPS):
                expected = self.client.ask("GET", path)[1]
                kept.events.clear()
                self.assertEqual(client.answer("GET", path, Accept=PROTOBUF).code, 200)
                self.assertEqual(json.loads(kept.events[-1].json())["responseObject"], expected)

    def test_errors(self) -> None:
        """What is wrong is told in protobuf."""
        code, found = self.ask("GET", f"{MAPS}/nothing")
        self.assertEqual((code, found.kind, found.value["reason"]), (404, "Status", "NotFound"))

    def test_json_as_gladly(self) -> None:
        """Who takes JSON as gladly gets JSON."""
        for accept in (f"{PROTOBUF},application/json", f"application/json,{PROTOBUF}", f"{PROTOBUF},*/*"):
            self.assertEqual(self.client.ask("GET", f"{MAPS}/a", Accept=accept)[1]["kind"], "ConfigMap")

    def test_tables(self) -> None:
        """There are no Tables in protobuf; who takes others gets those."""
        table = ";as=Table;v=v1;g=meta.k8s.io"
        answer = self.client.answer("GET", MAPS, Accept=PROTOBUF + table)
        self.assertEqual(answer.code, 406)
        found = self.client.ask("GET", MAPS, Accept=f"{PROTOBUF}{table},application/json{table}")[1]
        self.assertEqual(found["kind"], "Table")

    def test_partial(self) -> None:
        """Metadata can be had alone, of an object and of a list."""
        expected = self.client.ask("GET", f"{MAPS}/a")[1]["metadata"]
        answer = self.client.answer("GET", f"{MAPS}/a", Accept=PARTIAL)
        found = opened(answer.body, "io.k8s.api.core.v1.ConfigMap")
        self.assertEqual(found[:2], ("meta.k8s.io/v1", "PartialObjectMetadata"))
        self.assertEqual((found.value["metadata"]["uid"], found.value.keys()), (expected["uid"], {"metadata"}))
        answer = self.client.answer("GET", MAPS, Accept=f"{PARTIAL}List")
        found = opened(answer.body, "io.k8s.api.core.v1.ConfigMapList")
        self.assertEqual(found.kind, "PartialObjectMetadataList")
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["a", "b"])
        self.assertEqual({*found.value["items"][0]}, {"metadata"})


class ListTests(AnswerTestCase):
    """Lists."""

    def test_list(self) -> None:
        """A list tells its revision, and its items are those that JSON shows."""
        _, found = self.ask("GET", MAPS)
        expected = self.client.ask("GET", MAPS)[1]
        self.assertEqual((found.api_version, found.kind), ("v1", "ConfigMapList"))
        self.assertEqual(found.value["metadata"]["resourceVersion"], expected["metadata"]["resourceVersion"])
        known = definitions().type_for(GroupVersionKind("", "v1", "ConfigMap"))
        self.assertEqual([known.decode(one, []) for one in found.value["items"]], expected["items"])

    def test_parts(self) -> None:
        """A list in parts tells how many remain, and where to go on."""
        _, found = self.ask("GET", f"{MAPS}?limit=1")
        self.assertEqual(found.value["metadata"]["remainingItemCount"], 1)
        _, found = self.ask("GET", f"{MAPS}?limit=1&continue={found.value['metadata']['continue']}")
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["b"])

    def test_empty(self) -> None:
        """Of nothing there is a list, too."""
        _, found = self.ask("GET", "/api/v1/pods")
        self.assertEqual((found.kind, "items" in found.value), ("PodList", False))

    def begin_long(self, *names: str) -> JSONClient:
        """Request a list whose items each have the size of a slice; C{at_once} has the first part."""
        for name in names:
            self.client.ask("POST", MAPS, config_map(name, x="y" * AT_ONCE))
        self.turning = Clock()
        self.server.site.turns = Turns(self.turning)
        client = self.server.client()
        self.at_once = client.begin(MAPS, Accept=PROTOBUF)
        return client

    def test_long(self) -> None:
        """A long list is encoded bit by bit, in turns of the reactor."""
        work: list[Deferred[None]] = []

        def due(turns: Turns) -> Deferred[None]:
            work.append(Deferred())
            return work[-1]

        self.patch(Turns, "due", due)
        client = self.begin_long(*"cdefgh")
        pieces, data = 0, b""
        while work:
            self.assertEqual((len(work), data), (1, b""))
            work.pop().callback(None)
            pieces += 1
            data = client.taken()
        self.assertEqual(pieces, 5)
        head, _, body = data.partition(b"\r\n\r\n")
        self.assertIn(PROTOBUF.encode(), head)
        found = opened(body)
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], list("abcdefgh"))

    def test_gone(self) -> None:
        """For who leaves before a long list is there nothing more is encoded."""
        client = self.begin_long(*"cdefgh")
        client.gone()
        encoded = []
        types = definitions().protobuf
        encode = types.encode
        self.patch(types, "encode", lambda *of: encoded.append(of) or encode(*of))
        for _ in range(20):
            self.turning.advance(0)
        self.assertLess(len(encoded), 2)
        self.assertEqual(client.taken(), b"")

    def test_unshowable(self) -> None:
        """A list with an item that can not be encoded is an error, even if that is found late."""
        types = definitions().protobuf
        encode = types.encode

        def refuse(definition: str, value: Any) -> bytes:
            if value.get("metadata", {}).get("name") == "h":
                raise WireError("exceeded max depth")
            return encode(definition, value)

        self.patch(types, "encode", refuse)
        client = self.begin_long(*"cdefgh")
        data = self.at_once
        for _ in range(50):
            self.turning.advance(0)
            data += client.taken()
        self.assertTrue(data.startswith(b"HTTP/1.1 500 "), data)
        self.assertIn(b"exceeded max depth", data)


class WatchTests(AnswerTestCase):
    """Watches."""

    def watch(self, query: str, accept: str = STREAM) -> list[tuple[str, Opened]]:
        """Begin a watch; give the events that come at once."""
        self.watcher = self.server.client()
        head, _, body = self.watcher.begin(f"{MAPS}?watch=1&{query}", Accept=accept).partition(b"\r\n\r\n")
        self.assertIn(b"content-type: " + STREAM.encode(), head.lower())
        return self.events(body) + self.more()

    def more(self) -> list[tuple[str, Opened]]:
        """The events that have come since."""
        self.server.clock.advance(0)
        return self.events(self.watcher.taken())

    def events(self, body: bytes) -> list[tuple[str, Opened]]:
        """The events in a chunked body."""
        data, found = b"".join(chunks(body)), []
        while data:
            (size,) = struct.unpack_from(">I", data)
            found.append(event_of(data[4 : 4 + size]))
            self.assertGreaterEqual(len(data), 4 + size)
            data = data[4 + size :]
        return found

    def test_events(self) -> None:
        """Events come behind their lengths, each object in its envelope."""
        found = self.watch("")
        self.assertEqual(
            [(kind, one.value["metadata"]["name"]) for kind, one in found], [("ADDED", "a"), ("ADDED", "b")]
        )
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="2"))
        self.client.ask("DELETE", f"{MAPS}/b")
        (first, changed), (second, gone) = self.more()
        self.assertEqual((first, changed.kind, changed.value["data"]), ("MODIFIED", "ConfigMap", {"x": "2"}))
        self.assertEqual((second, gone.value["metadata"]["name"]), ("DELETED", "b"))

    def test_shared(self) -> None:
        """What is encoded for one who watches is what the others get."""
        watchers = [self.server.client() for _ in range(3)]
        for client in watchers:
            client.begin(f"{MAPS}?watch=1&resourceVersion={self.server.backend.revision}", Accept=STREAM)
        encoded = []
        types = definitions().protobuf
        encode = types.encode
        self.patch(types, "encode", lambda *of: encoded.append(of) or encode(*of))
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="2"))
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="3"))
        self.server.clock.advance(0)
        first, *others = (client.taken() for client in watchers)
        self.assertEqual(others, [first, first])
        self.assertEqual(len(encoded), 2)

    def test_bookmarks(self) -> None:
        """A bookmark is an object of nothing but its revision."""
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        *_, (kind, found) = self.watch(query)
        self.assertEqual((kind, found.kind), ("BOOKMARK", "ConfigMap"))
        meta = found.value["metadata"]
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})
        self.assertEqual(meta["resourceVersion"], str(self.server.backend.revision))

    def test_failures(self) -> None:
        """A watch that can not begin where it should says so in an event, and ends."""
        self.successResultOf(self.server.backend.compact(self.server.backend.revision))
        client = self.server.client()
        body = client.begin(f"{MAPS}?watch=1&resourceVersion=1", Accept=STREAM).partition(b"\r\n\r\n")[2]
        self.assertTrue(body.endswith(END))
        ((kind, found),) = self.events(body)
        self.assertEqual((kind, found.kind, found.value["code"]), ("ERROR", "Status", 410))

    def test_unshowable(self) -> None:
        """An object that can not be encoded is told of as an error, and what comes behind it is shown."""
        self.watch(f"resourceVersion={self.server.backend.revision}")
        types = definitions().protobuf
        encode = types.encode

        def refuse(definition: str, value: Any) -> bytes:
            if value["metadata"].get("name") == "a":
                raise WireError("exceeded max depth")
            return encode(definition, value)

        self.patch(types, "encode", refuse)
        for name in "ab":
            self.client.ask("PUT", f"{MAPS}/{name}", config_map(name, x="2"))
        (first, error), (second, found) = self.more()
        self.assertEqual((first, error.kind, error.value["code"]), ("ERROR", "Status", 500))
        self.assertEqual((second, found.value["metadata"]["name"]), ("MODIFIED", "b"))
        code, found = self.ask("GET", f"{MAPS}/a")
        self.assertEqual((code, found.value["reason"]), (500, "InternalError"))

    def test_partial(self) -> None:
        """Of objects metadata alone can be watched."""
        client = self.server.client()
        body = client.begin(f"{MAPS}?watch=1", Accept=f"{STREAM};g=meta.k8s.io;v=v1;as=PartialObjectMetadata")
        self.server.clock.advance(0)
        data = b"".join(chunks(body.partition(b"\r\n\r\n")[2] + client.taken()))
        found = event_of(data[4 : 4 + struct.unpack_from(">I", data)[0]], "io.k8s.api.core.v1.ConfigMap")[1]
        self.assertEqual((found.kind, {*found.value}), ("PartialObjectMetadata", {"metadata"}))
        self.assertEqual(found.value["metadata"]["name"], "a")

    def test_socket(self) -> None:
        """Over WebSocket each event is a message of bytes, without its length."""
        client = self.server.client()
        frames = Connection(ConnectionType.CLIENT)
        rest = client.begin(f"{MAPS}?watch=1", Accept=STREAM, **ASKED).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        frames.receive_data(rest + client.taken())
        found = []
        for event in frames.events():
            assert isinstance(event, BytesMessage), event
            found.append(event_of(bytes(event.data)))
        self.assertEqual(
            [(kind, one.value["metadata"]["name"]) for kind, one in found], [("ADDED", "a"), ("ADDED", "b")]
        )


def event_of(data: bytes, definition: str = "") -> tuple[str, Opened]:
    """The kind of a watch event and its object; see L{opened}."""
    event = FOREIGN("Event")
    event.ParseFromString(data)
    return event.type, opened(event.object.raw, definition)

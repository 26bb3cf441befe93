"""Tests for L{kubetwist.resources.handlers.write} and L{kubetwist.resources.handlers.bodies}, over HTTP in memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import FrameType
from typing import Any

import orjson
import yaml

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import decode_yaml
from kubetwist.api.requestscope import MAX_SIZE_IN_REACTOR
from kubetwist.flowcontrol.computing import Computing
from kubetwist.http.connection.bodyshares import MAX_BODY
from kubetwist.resources import endpoint
from tests.resources.server import Answer, Server, config_map, pod

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
YAML = "application/yaml"
#: Size of large objects, above the limit of the reactor's thread.
KEYS = 2000


class InThreads(Server):
    """A server whose computations run on request, like those in the threads of a real server."""

    def __init__(self, *resources: str) -> None:
        self.calls: list[tuple[Deferred[Any], Callable[..., Any], tuple[Any, ...]]] = []
        super().__init__(*resources)
        self.computing = Computing(self._later, self.clock)

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        return self.computing(function, *arguments)

    def _later(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        self.calls.append((result, function, arguments))
        return result

    def work(self) -> int:
        """Run all computations and those that follow from them; return their number."""
        created = 0
        while self.calls:
            result, function, arguments = self.calls.pop(0)
            result.callback(function(*arguments))
            created += 1
        return created


class WriteTestCase(SynchronousTestCase):
    """Test case with an empty server."""

    def setUp(self) -> None:
        """Create the server."""
        self.server = Server(
            "configmaps",
            "pods",
            "namespaces",
            "leases",
            "selfsubjectreviews",
            "deployments",
            "endpointslices",
            "limitranges",
        )
        self.client = self.server.client()

    def names(self) -> list[str]:
        """Return the names of the existing ConfigMaps."""
        _, found = self.client.ask("GET", MAPS)
        return [item["metadata"]["name"] for item in found["items"]]

    def refused(self, answer: Answer) -> tuple[int, str]:
        """Return the status and message of an error response."""
        status = orjson.loads(answer.body)
        self.assertEqual((status["kind"], status["status"], status["code"]), ("Status", "Failure", answer.code))
        return answer.code, status["message"]


class CreateTests(WriteTestCase):
    """POST."""

    def test_create(self) -> None:
        """A POST returns 201 and the stored object."""
        code, created = self.client.ask("POST", MAPS, config_map("a", x="1"))
        self.assertEqual((code, created["data"]), (201, {"x": "1"}))
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[1], created)

    def test_identity_is_filled_in(self) -> None:
        """A body may omit its kind; a body of another kind is rejected."""
        self.assertEqual(self.client.ask("POST", MAPS, {"metadata": {"name": "a"}})[0], 201)
        obj = {**config_map("b"), "kind": "Secret"}
        code, message = self.refused(self.client.answer("POST", MAPS, obj))
        self.assertEqual(code, 400)
        self.assertIn("cannot be handled as a ConfigMap", message)
        obj = {**config_map("b"), "apiVersion": "v2"}
        self.assertEqual(self.client.ask("POST", MAPS, obj)[0], 400)

    def test_empty_list(self) -> None:
        """An empty list is omitted, but is owned by the manager that sent it."""
        path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        parts = {"addressType": "IPv4", "endpoints": []}
        code, created = self.client.ask("POST", path, {"metadata": {"name": "r"}, **parts})
        self.assertEqual((code, created["endpoints"]), (201, None))
        (entry,) = created["metadata"]["managedFields"]
        self.assertIn("f:endpoints", entry["fieldsV1"])
        created = self.client.ask("POST", path, {"metadata": {"name": "s"}, "addressType": "IPv4"})[1]
        self.assertNotIn("f:endpoints", created["metadata"]["managedFields"][0]["fieldsV1"])
        path_of_ranges = "/api/v1/namespaces/default/limitranges"
        created = self.client.ask("POST", path_of_ranges, {"metadata": {"name": "r"}, "spec": {"limits": []}})[1]
        self.assertEqual(created["metadata"]["managedFields"][0]["fieldsV1"], {"f:spec": {"f:limits": {}}})
        patch = [{"op": "add", "path": "/endpoints", "value": []}]
        answer = self.client.answer("PATCH", f"{path}/s", patch, Content_Type="application/json-patch+json")
        created = orjson.loads(answer.body)
        self.assertEqual((answer.code, created["endpoints"]), (200, None))
        self.assertIn("f:endpoints", created["metadata"]["managedFields"][0]["fieldsV1"])
        code, created = self.client.ask("PUT", f"{path}/s", {"metadata": {"name": "s"}, **parts})
        self.assertEqual((code, created["endpoints"]), (200, None))
        self.assertIn("f:endpoints", created["metadata"]["managedFields"][0]["fieldsV1"])

    def test_removed_version(self) -> None:
        """A version that is no longer served has another error than an unknown version."""
        path = "/apis/apps/v1/namespaces/default/deployments"
        for version, reason in (
            ("v1beta2", "the API version in the data (apps/v1beta2) does not match the expected API version (apps/v1)"),
            ("v7", 'Deployment in version "v7" cannot be handled as a Deployment: no kind "Deployment" is registered'),
        ):
            obj = {"apiVersion": f"apps/{version}", "kind": "Deployment", "metadata": {"name": "a"}}
            code, message = self.refused(self.client.answer("POST", path, obj))
            self.assertEqual(code, 400)
            self.assertTrue(message.startswith(reason), message)

    def test_malformed_bodies(self) -> None:
        """A malformed body is a 400 with the reason."""
        for body in (b"{", b"[]", b'"x"', b"1", b'{"kind": 1}', b'{"metadata": []}', b"\xff", b"{} {}"):
            code, message = self.refused(self.client.answer("POST", MAPS, body))
            self.assertEqual(code, 400, body)
            self.assertTrue(message, body)

    def test_unknown_fields(self) -> None:
        """Unknown fields are dropped with a warning, dropped silently, or rejected, depending on fieldValidation."""
        obj = {**config_map("a"), "colour": "red"}
        for name, validation, warned in (("a", "Warn", True), ("b", "Ignore", False), ("c", "", True)):
            obj["metadata"]["name"] = name
            answer = self.client.answer("POST", f"{MAPS}?fieldValidation={validation}", obj)
            self.assertEqual(answer.code, 201)
            self.assertNotIn("colour", orjson.loads(answer.body))
            self.assertEqual(answer.header("warning") is not None, warned, validation)
        obj["metadata"]["name"] = "d"
        code, message = self.refused(self.client.answer("POST", f"{MAPS}?fieldValidation=Strict", obj))
        self.assertEqual(code, 400)
        self.assertTrue(message.endswith('strict decoding error: unknown field "colour"'))
        self.assertEqual(self.names(), ["a", "b", "c"])

    def test_duplicate_fields(self) -> None:
        """The last one of duplicate fields is used, with a warning."""
        body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
        answer = self.client.answer("POST", MAPS, body)
        self.assertEqual(orjson.loads(answer.body)["data"], {"x": "2"})
        self.assertIn('duplicate field \\"data.x\\"', answer.header("warning") or "")

    def test_order_of_faulty_fields(self) -> None:
        """Unknown and duplicate fields are reported in document order; the content of unknown fields is not."""
        body = (
            b'{"bogus":{"x":1,"x":2},"metadata":{"name":"a","labels":{"l":"1","l":"2"},"colour":1},"immutable":null,'
            b'"immutable":true,"bogus":2,"data":{"x":"1"},"data":{"y":"2"},"DATA":{}}'
        )
        warnings = ['unknown field "bogus"', 'duplicate field "metadata.labels.l"', 'unknown field "metadata.colour"']
        warnings += ['duplicate field "immutable"', 'duplicate field "data"', 'unknown field "DATA"']
        _, message = self.refused(self.client.answer("POST", f"{MAPS}?fieldValidation=Strict", body))
        self.assertEqual(message.partition("strict decoding error: ")[2], ", ".join(warnings))
        answer = self.client.answer("POST", f"{MAPS}?fieldValidation=Warn", body)
        self.assertEqual(answer.code, 201)
        self.assertEqual(orjson.loads(answer.body)["data"], {"x": "1", "y": "2"})
        self.assertEqual(answer.headers["warning"], [f"299 - {orjson.dumps(text).decode()}" for text in warnings])

    def test_raw_values(self) -> None:
        """Raw JSON values, such as fieldsV1, may contain duplicate keys."""
        body = b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}},"time":null,"time":null}]}}'
        _, message = self.refused(self.client.answer("POST", f"{MAPS}?fieldValidation=Strict", body))
        found = message.partition("strict decoding error: ")[2]
        self.assertEqual(found, 'duplicate field "metadata.managedFields[0].time"')

    def test_replaced_value(self) -> None:
        """A value of a wrong type is an error even if a duplicate of its field follows."""
        body = b'{"metadata":{"name":"a"},"immutable":"yes","immutable":true}'
        code, message = self.refused(self.client.answer("POST", MAPS, body))
        self.assertEqual(code, 400)
        self.assertIn("cannot unmarshal string", message)

    def test_faulty_yaml(self) -> None:
        """Each duplicate key in YAML is reported with its line, and unknown fields with their paths."""
        body = b"metadata: {name: a}\nzebra: 1\ndata: {x: '1', x: '2'}\napple: 1\ndata: {}\n"
        answer = self.client.answer("POST", f"{MAPS}?fieldValidation=Warn", body, Content_Type=YAML)
        self.assertEqual(answer.code, 201)
        warnings = ['line 3: key "x" already set in map', 'line 5: key "data" already set in map']
        warnings += ['unknown field "apple"', 'unknown field "zebra"']
        self.assertEqual(answer.headers["warning"], [f"299 - {orjson.dumps(text).decode()}" for text in warnings])

    def test_yaml(self) -> None:
        """YAML is accepted like JSON; a large body is decoded in a thread."""
        body = yaml.safe_dump(config_map("a", x="1")).encode()
        self.assertEqual(self.client.ask("POST", MAPS, body, Content_Type=YAML)[1]["data"], {"x": "1"})
        self.assertEqual(self.server.done_in_threads, [])
        body = yaml.safe_dump(config_map("b", x="1" * 20000)).encode()
        self.assertEqual(self.client.ask("POST", MAPS, body, Content_Type=YAML)[0], 201)
        self.assertEqual(self.server.done_in_threads, [decode_yaml])
        self.assertEqual(self.client.ask("POST", MAPS, b"a: [", Content_Type=YAML)[0], 400)

    def test_large_objects(self) -> None:
        """Computations on a large object run in the computation thread, for every verb; those on a small one do not."""
        threads = self.server.done_in_threads
        merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
        for size, name in ((10, "small"), (MAX_SIZE_IN_REACTOR + 1, "large")):
            path, obj = f"{MAPS}/{name}", config_map(name, x="1" * size)
            for method, target, body, media in (
                ("POST", MAPS, obj, "application/json"),
                ("PUT", path, {**obj, "immutable": False}, "application/json"),
                ("PATCH", path, {"data": {"y": "1"}}, merge),
                ("PATCH", f"{path}?fieldManager=m&force=true", {**obj, "data": {"z": "1"}}, apply),
                ("DELETE", path, None, ""),
            ):
                threads.clear()
                code, _ = self.client.ask(method, target, body, **({"Content_Type": media} if media else {}))
                self.assertIn(code, (200, 201))
                done = {function.__name__ for function in threads}
                expected = {
                    "POST": {"decode_object", "defaulted", "_prepared_creation", "default_on_read"},
                    "DELETE": {"apply_change"},
                }
                self.assertLessEqual(
                    expected.get(method, {"apply_change", "_prepare_and_validate", "_default_and_compare"})
                    if name == "large"
                    else set(),
                    done,
                )
                if name == "small":
                    self.assertEqual(threads, [])

    def test_bodies_are_not_searched_for_floats(self) -> None:
        """
        The body of a built-in kind is not searched for whole floats, which are significant in custom resources only.
        """
        searched: list[bytes] = []
        self.patch(endpoint, "_whole_float", searched.append)
        for method, path, body, media in (
            ("POST", MAPS, config_map("a", x="1.0"), "application/json"),
            ("PUT", f"{MAPS}/a", config_map("a", x="2.0"), "application/json"),
            ("PATCH", f"{MAPS}/a", {"data": {"x": "3.0"}}, "application/merge-patch+json"),
        ):
            self.assertIn(self.client.ask(method, path, body, Content_Type=media)[0], (200, 201))
        self.assertEqual(searched, [])

    def test_refused_objects_are_freed(self) -> None:
        """No stack frame keeps a rejected object for the garbage collector."""
        self.server = InThreads("configmaps", "pods", "namespaces")
        self.client = self.server.client()
        self.client.ask("POST", MAPS, config_map("stored", x="1"))
        wrong = [{"name": f"C_{number}", "image": ""} for number in range(KEYS)]
        many = {f"k{number}": "1" * 40 for number in range(KEYS)}
        merge, patch, apply = (
            f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
        )
        stored, many_additions = f"{MAPS}/stored", [{"op": "add", "path": f"/data/{key}", "value": "1"} for key in many]
        gc.collect()
        gc.disable()
        self.addCleanup(gc.enable)
        gc.set_debug(gc.DEBUG_SAVEALL)
        self.addCleanup(gc.garbage.clear)
        self.addCleanup(gc.set_debug, 0)
        for code, method, path, body, media in (
            (422, "POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": wrong}}, "application/json"),
            (422, "POST", MAPS, config_map("A", **many), "application/json"),
            (400, "POST", f"{MAPS}?fieldValidation=Strict", {**config_map("a", **many), "more": 1}, "application/json"),
            (409, "POST", MAPS, config_map("stored", **many), "application/json"),
            (404, "PATCH", f"{MAPS}/missing", {"data": many}, merge),
            (422, "PUT", stored, config_map("stored", **many, **{"": "x"}), "application/json"),
            (
                409,
                "PUT",
                stored,
                {"metadata": {"name": "stored", "resourceVersion": "1"}, "data": many},
                "application/json",
            ),
            (422, "PATCH", stored, {"data": {**many, "": "x"}}, merge),
            (422, "PATCH", stored, [*many_additions, {"op": "remove", "path": "/missing"}], patch),
            (400, "PATCH", stored, {"data": many_additions}, patch),
            (500, "PATCH", f"{stored}?fieldManager=m", {**config_map("stored", **many), "immutable": "x"}, apply),
        ):
            data = orjson.dumps(body)
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nContent-Length: {len(data)}\r\n\r\n"
            )
            self.client.send(head.encode() + data)
            self.assertGreater(self.server.work(), 0)
            answers = self.client.answers()
            self.assertEqual([answer.code for answer in answers], [code], (method, path))
            gc.collect()
            left = [repr(one)[:80] for one in gc.garbage if isinstance(one, (FrameType, BaseException))]
            gc.garbage.clear()
            self.assertEqual(left, [], (method, path, code))

    def test_large_answers(self) -> None:
        """The computation thread encodes a large object as YAML or Table; its JSON is the stored bytes."""
        threads = self.server.done_in_threads
        for media, created in (
            (YAML, ["encode_object"]),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", ["encode_object"]),
            ("", []),
        ):
            threads.clear()
            obj = config_map(f"a{len(media)}", x="1" * (MAX_SIZE_IN_REACTOR + 1))
            answer = self.client.answer("POST", MAPS, obj, Accept=media or "application/json")
            self.assertEqual(answer.code, 201)
            self.assertEqual(
                [function.__name__ for function in threads if function.__name__ == "encode_object"], created
            )

    def test_yaml_bomb(self) -> None:
        """CVE-2019-11253: YAML whose aliases would expand beyond the limit is rejected quickly."""
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
        for body in ("\n".join(lines), "a: " + "[" * 50_000, "a: &a [*a]"):
            answer = self.client.answer("POST", MAPS, body.encode(), Content_Type=YAML)
            self.assertEqual(self.refused(answer)[0], 400)

    def test_nested_json(self) -> None:
        """JSON that is nested too deep is rejected."""
        body = b'{"metadata":{"name":"a"},"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        self.assertEqual(self.refused(self.client.answer("POST", MAPS, body))[0], 400)

    def test_too_large(self) -> None:
        """CVE-2019-11253: a body of more than 3 MiB is rejected before it is parsed."""
        body = b'{"metadata":{"name":"a"},"data":{"x":"' + b"x" * MAX_BODY + b'"}}'
        for media in ("application/json", YAML):
            self.client = self.server.client()
            code, message = self.refused(self.client.answer("POST", MAPS, body, Content_Type=media))
            self.assertEqual((code, message), (413, f"Request entity too large: limit is {MAX_BODY}"))
        self.client = self.server.client()
        self.assertEqual(self.names(), [])

    def test_media_types(self) -> None:
        """A body in an unsupported media type is 415."""
        for media in ("text/plain", "application/xml", "application/merge-patch+json", "x"):
            answer = self.client.answer("POST", MAPS, config_map("a"), Content_Type=media)
            self.assertEqual(self.refused(answer)[0], 415, media)
        for media in ("application/json; charset=utf-8", "Application/JSON", ""):
            answer = self.client.answer("POST", f"{MAPS}?dryRun=All", config_map("a"), Content_Type=media)
            self.assertEqual(answer.code, 201, media)

    def test_defaults(self) -> None:
        """Omitted fields are defaulted."""
        _, created = self.client.ask("POST", PODS, pod("p"))
        self.assertEqual(created["spec"]["restartPolicy"], "Always")
        self.assertEqual(created["status"]["phase"], "Pending")

    def test_dry_run(self) -> None:
        """A dry run is answered like the write; any other value of dryRun is rejected."""
        self.assertEqual(self.client.ask("POST", f"{MAPS}?dryRun=All", config_map("a"))[0], 201)
        self.assertEqual(self.client.ask("POST", f"{MAPS}?dryRun=Some", config_map("a"))[0], 422)
        self.assertEqual(self.names(), [])

    def test_views(self) -> None:
        """The response to a write is available in other formats."""
        accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        answer = self.client.answer("POST", MAPS, config_map("a", x="1"), Accept=accept)
        found = orjson.loads(answer.body)
        self.assertEqual((found["kind"], found["metadata"]["name"]), ("PartialObjectMetadata", "a"))
        self.assertNotIn("data", found)

    def test_review(self) -> None:
        """A review is answered with 201, and stores nothing."""
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        code, created = self.client.ask("POST", path, {})
        self.assertEqual((code, created["status"]["userInfo"]["username"]), (201, "admin"))
        self.assertEqual(self.client.ask("GET", path)[0], 405)

    def test_client_goes(self) -> None:
        """A write is not cancelled when its client disconnects during the commit."""
        store = self.server.stores.get("", "configmaps")
        waiting: Deferred[int] = Deferred()
        store.backend = WaitingBackend(self.server.backend, waiting)  # type: ignore[assignment]
        body = orjson.dumps(config_map("a"))
        head = (
            f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.client.send(head.encode() + body)
        self.client.disconnect()
        self.assertFalse(waiting.called)
        waiting.callback(None)  # type: ignore[arg-type]
        self.client = self.server.client()
        self.assertEqual(self.names(), ["a"])


class WaitingBackend:
    """A storage backend that commits when the test allows it."""

    def __init__(self, backend: Any, released: Deferred[Any]) -> None:
        self._backend = backend
        self._released = released

    def commit(self, writes: Any) -> Deferred[int]:
        """Wait, then commit."""
        self._released.addCallback(lambda _: self._backend.commit(writes))
        return self._released


class UpdateTests(WriteTestCase):
    """PUT."""

    def setUp(self) -> None:
        """Create a ConfigMap."""
        super().setUp()
        _, self.made = self.client.ask("POST", MAPS, config_map("a", x="1"))

    def test_replaces(self) -> None:
        """A PUT is answered with 200 and the new state."""
        code, new = self.client.ask("PUT", f"{MAPS}/a", {**self.made, "data": {"y": "2"}})
        self.assertEqual((code, new["data"]), (200, {"y": "2"}))
        self.assertEqual(self.client.ask("PUT", f"{MAPS}/a", self.made)[0], 409)

    def test_creates(self) -> None:
        """A PUT that creates an object is answered with 201."""
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
        lease = {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 9}}
        self.assertEqual(self.client.ask("PUT", path, lease)[0], 201)

    def test_name(self) -> None:
        """The name in the body must equal the name in the path."""
        for meta in ({}, {"name": "b"}):
            self.assertEqual(self.client.ask("PUT", f"{MAPS}/a", {"metadata": meta})[0], 400)

    def test_namespace(self) -> None:
        """A wrong namespace in the body is reported before a wrong name, also in a scale."""
        code, message = self.refused(
            self.client.answer("PUT", f"{MAPS}/a", {"metadata": {"name": "b", "namespace": "other"}})
        )
        text = "the namespace of the provided object does not match the namespace sent on the request"
        self.assertEqual((code, message), (400, text))
        scale = {"metadata": {"name": "d", "namespace": "other"}, "spec": {"replicas": 1}}
        path = "/apis/apps/v1/namespaces/default/deployments/d/scale"
        self.assertEqual(self.refused(self.client.answer("PUT", path, scale)), (400, text))

    def test_uid(self) -> None:
        """A uid in the body must equal the object's uid."""
        obj = config_map("a")
        obj["metadata"]["uid"] = "other"
        self.assertEqual(self.client.ask("PUT", f"{MAPS}/a", obj)[0], 409)

    def test_repeated(self) -> None:
        """A PUT without a resourceVersion is decoded and applied again after a concurrent write."""
        store = self.server.stores.get("", "configmaps")
        backend = self.server.backend

        class Overtaken:
            def commit(self, writes: Any) -> Any:
                store.backend = backend
                other.ask("PUT", f"{MAPS}/a", config_map("a", other="1"))
                return backend.commit(writes)

        other = self.server.client()
        store.backend = Overtaken()  # type: ignore[assignment]
        code, new = self.client.ask("PUT", f"{MAPS}/a", config_map("a", y="2"))
        self.assertEqual((code, new["data"]), (200, {"y": "2"}))

    def test_status(self) -> None:
        """A PUT of the status changes only the status."""
        path = "/apis/apps/v1/namespaces/default/deployments"
        obj = {
            "metadata": {"name": "d"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "example.org/c:1"}]},
                },
            },
        }
        _, created = self.client.ask("POST", path, obj)
        created["spec"]["replicas"] = 9
        created["status"] = {"replicas": 1, "observedGeneration": 1}
        code, new = self.client.ask("PUT", f"{path}/d/status", created)
        self.assertEqual((code, new["status"]["replicas"], new["spec"]["replicas"]), (200, 1, 1))

    def test_scale(self) -> None:
        """The scale has another kind, with its version."""
        self.test_status()
        path = "/apis/apps/v1/namespaces/default/deployments/d/scale"
        _, scale = self.client.ask("GET", path)
        self.assertEqual((scale["kind"], scale["apiVersion"]), ("Scale", "autoscaling/v1"))
        scale["spec"]["replicas"] = 4
        code, new = self.client.ask("PUT", path, scale)
        self.assertEqual((code, new["spec"]["replicas"]), (200, 4))
        patch = {"spec": {"replicas": 5}}
        answer = self.client.answer("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.assertEqual((answer.code, orjson.loads(answer.body)["spec"]), (200, {"replicas": 5}))


class DeleteTests(WriteTestCase):
    """DELETE."""

    def setUp(self) -> None:
        """Create three ConfigMaps."""
        super().setUp()
        for name in "abc":
            self.client.ask("POST", MAPS, config_map(name))

    def test_status(self) -> None:
        """A DELETE of most kinds returns a Status that names the deleted object."""
        _, created = self.client.ask("GET", f"{MAPS}/a")
        code, status = self.client.ask("DELETE", f"{MAPS}/a")
        self.assertEqual((code, status["status"]), (200, "Success"))
        self.assertEqual(status["details"], {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]})

    def test_status_in_other_forms(self) -> None:
        """That Status is not available as a Table, but is sent in YAML if the client accepts that."""
        answer = self.client.answer("DELETE", f"{MAPS}/a", Accept=f"{YAML};as=Table;v=v1;g=meta.k8s.io")
        self.assertEqual(yaml.safe_load(answer.body)["status"], "Success")
        self.assertEqual(answer.header("content-type"), YAML)
        partials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("DELETE", f"{MAPS}/b", Accept=partials).code, 200)

    def test_object(self) -> None:
        """A DELETE of a pod returns the pod, and so does a DELETE of an object that is only marked."""
        self.client.ask("POST", PODS, pod("p"))
        self.assertEqual(self.client.ask("DELETE", f"{PODS}/p")[1]["kind"], "Pod")
        held = config_map("d")
        held["metadata"]["finalizers"] = ["example.org/wait"]
        self.client.ask("POST", MAPS, held)
        code, found = self.client.ask("DELETE", f"{MAPS}/d")
        self.assertEqual((code, found["kind"]), (200, "ConfigMap"))
        self.assertIn("deletionTimestamp", found["metadata"])

    def test_options(self) -> None:
        """Options are read from the body, or without a body from the query."""
        self.client.ask("DELETE", f"{MAPS}/a?dryRun=All")
        self.client.ask("DELETE", f"{MAPS}/a", {"dryRun": ["All"]})
        body = b"dryRun: [All]"
        self.client.ask("DELETE", f"{MAPS}/a", body, Content_Type=YAML)
        self.assertEqual(self.names(), list("abc"))
        code, _ = self.client.ask("DELETE", f"{MAPS}/a", {"preconditions": {"uid": "other"}})
        self.assertEqual(code, 409)
        self.client.ask("DELETE", f"{MAPS}/a?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "v1"})
        self.assertEqual(self.names(), list("bc"))

    def test_bad_options(self) -> None:
        """A DELETE with malformed options deletes nothing."""
        for body, media, code in (
            (b"{", "application/json", 400),
            (b"x", "text/plain", 415),
            (b"a: [", YAML, 400),
            (b'{"propagationPolicy":"Maybe"}', "application/json", 422),
        ):
            self.assertEqual(self.client.answer("DELETE", f"{MAPS}/a", body, Content_Type=media).code, code, body)
        self.assertEqual(self.names(), list("abc"))

    def test_large_yaml(self) -> None:
        """CVE-2019-11254: large YAML in a DELETE is parsed in a thread, so that it does not block other requests."""
        body = b"dryRun: [All]\n" + b"# " + b"x" * 20000
        self.assertEqual(self.client.answer("DELETE", f"{MAPS}/a", body, Content_Type=YAML).code, 200)
        self.assertEqual(self.server.done_in_threads, [decode_yaml])

    def test_collection(self) -> None:
        """A DELETE of a collection deletes the selected objects, and returns the list of them."""
        code, found = self.client.ask("DELETE", f"{MAPS}?fieldSelector=metadata.name%3Db")
        self.assertEqual((code, found["kind"], len(found["items"])), (200, "ConfigMapList", 1))
        self.assertEqual(self.names(), ["a", "c"])
        answer = self.client.answer("DELETE", f"{MAPS}?pretty=1", Accept="application/json")
        self.assertIn(b"\n  ", answer.body)
        self.assertEqual(self.names(), [])

    def test_collection_as_yaml(self) -> None:
        """The list of deleted objects is available in YAML."""
        _, status = self.client.ask("DELETE", MAPS, Accept="text/html")
        self.assertEqual(
            status["message"],
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        )
        answer = self.client.answer("DELETE", MAPS, Accept=YAML)
        self.assertEqual(len(yaml.safe_load(answer.body)["items"]), 3)

    def test_missing(self) -> None:
        """A DELETE of a missing object is a 404."""
        self.assertEqual(self.client.ask("DELETE", f"{MAPS}/x")[0], 404)


class ActionTests(WriteTestCase):
    """POST on a subresource."""

    def test_binding(self) -> None:
        """A binding returns a Status, by both paths."""
        for name in "pq":
            self.client.ask("POST", PODS, pod(name))
        target = {"kind": "Node", "name": "n"}
        code, status = self.client.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": target})
        self.assertEqual((code, status["kind"], status["status"]), (201, "Status", "Success"))
        self.assertEqual(self.client.ask("GET", f"{PODS}/p")[1]["spec"]["nodeName"], "n")

    def test_name(self) -> None:
        """The name of the object is checked like any other."""
        self.assertEqual(self.client.ask("POST", f"{PODS}/a%25/binding", {"metadata": {"name": "a"}})[0], 400)

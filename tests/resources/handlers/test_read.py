"""Tests for L{kubetwist.resources.handlers.read}: GET and LIST, over HTTP in memory."""

from __future__ import annotations

import base64
import gzip
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import orjson
import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.client.restconfig import RESTConfig
from kubetwist.http import responses as respond
from kubetwist.registry.generic.printers.ages import human_age
from kubetwist.resources import encoding, tables
from kubetwist.resources.handlers.read import MAX_QUERY_IN_REACTOR
from kubetwist.storage.cache import _table, indexes
from tests.resources.server import Server, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
ALL = "/api/v1/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class ReadTestCase(SynchronousTestCase):
    """Test case with some ConfigMaps."""

    def setUp(self) -> None:
        """Create five ConfigMaps, and one in another namespace."""
        self.server = Server("configmaps", "secrets", "namespaces", "events", "componentstatuses")
        self.client = self.server.client()
        for name in "abcde":
            self.client.ask("POST", MAPS, config_map(name))
        self.client.ask("POST", "/api/v1/namespaces/other/configmaps", config_map("c", "other"))

    def names(self, path: str) -> list[str]:
        """Return the names in a list."""
        code, found = self.client.ask("GET", path)
        self.assertEqual(code, 200, found)
        return [item["metadata"]["name"] for item in found["items"]]

    def revision(self) -> int:
        """Return the current revision."""
        revision: int = self.server.backend.revision
        return revision

    def error(self, path: str) -> tuple[int, str, str]:
        """Return the error of a GET."""
        code, status = self.client.ask("GET", path)
        self.assertEqual((status["kind"], status["code"]), ("Status", code))
        return code, status.get("reason", ""), status["message"]


class RepeatedListTests(ReadTestCase):
    """Lists that are requested again, whose parts the server keeps."""

    def setUp(self) -> None:
        """Create more objects than a block has, with labels that an index selects."""
        super().setUp()
        self.patch(_table, "CHUNK", 4)
        self.patch(indexes, "MIN_INDEXED_RECORDS", 0)
        self.server = Server("configmaps")
        self.client = self.server.client()
        self.state: dict[str, dict[str, Any]] = {}
        for number in range(30):
            self.write("POST", number, {"app": f"a{number % 3}", "tier": "x"})

    def write(self, method: str, number: int, labels: dict[str, str]) -> None:
        """Create or update an object."""
        name = f"m{number:02}"
        path = MAPS if method == "POST" else f"{MAPS}/{name}"
        body = {**config_map(name), "data": {"n": str(number), "labels": ",".join(labels.values())}}
        body["metadata"]["labels"] = labels
        code, self.state[name] = self.client.ask(method, path, body)
        self.assertIn(code, (200, 201), self.state[name])

    def delete(self, number: int) -> None:
        """Delete an object."""
        self.client.ask("DELETE", f"{MAPS}/m{number:02}")
        del self.state[f"m{number:02}"]

    def expected(self, **labels: str) -> list[Any]:
        """Return the items of a list of the objects with these labels."""
        return [
            {key: value for key, value in self.state[name].items() if key not in ("kind", "apiVersion")}
            for name in sorted(self.state)
            if labels.items() <= self.state[name]["metadata"]["labels"].items()
        ]

    def pages(self, query: str, limit: int = 7) -> list[Any]:
        """Return the items of all pages of a list."""
        items, token = [], ""
        while True:
            code, found = self.client.ask("GET", f"{MAPS}?limit={limit}&{query}&continue={token}")
            self.assertEqual(code, 200, found)
            items += found["items"]
            token = found["metadata"].get("continue", "")
            if not token:
                return items

    def check(self) -> None:
        """All forms of lists have the present objects, whether their parts are kept or not."""
        for _ in range(3):
            for query, labels in (
                ("", {}),
                ("labelSelector=app%3Da1", {"app": "a1"}),
                ("labelSelector=app%3Da1,tier%3Dx", {"app": "a1", "tier": "x"}),
                ("labelSelector=tier%20in%20(y)", {"tier": "y"}),
            ):
                expected = self.expected(**labels)
                code, found = self.client.ask("GET", f"{MAPS}?{query}")
                self.assertEqual((code, found["items"]), (200, expected))
                self.assertEqual(self.pages(query), expected)
                names = [item["metadata"]["name"] for item in expected]
                for include in ("None", "Metadata", "Object"):
                    found = orjson.loads(
                        self.client.answer("GET", f"{MAPS}?includeObject={include}&{query}", Accept=TABLE).body
                    )
                    self.assertEqual([row["cells"][:2] for row in found["rows"]], [[name, 2] for name in names])
                    objects = [row["object"] for row in found["rows"]]
                    if include == "Metadata":
                        self.assertEqual([one["metadata"] for one in objects], [item["metadata"] for item in expected])
                answer = self.client.answer("GET", f"{MAPS}?{query}", Accept=PROTOBUF)
                self.assertEqual([name for name in sorted(self.state) if name.encode() in answer.body], names)
                answer = self.client.answer("GET", f"{MAPS}?{query}", Accept=METADATA)
                self.assertEqual(
                    [item["metadata"] for item in orjson.loads(answer.body)["items"] or ()],
                    [item["metadata"] for item in expected],
                )

    def test_changes(self) -> None:
        """Lists have the changes of objects since the former list, and are complete."""
        self.check()
        self.assertGreater(len(self.server.stores.get("", "configmaps").cache.forms), 0)
        self.assertIsNotNone(
            self.server.stores.get("", "configmaps").cache.find_candidates(
                [indexes.Equality(True, "app", "a1")], all_match=True
            )
        )
        self.write("PUT", 3, {"app": "a1", "tier": "x"})
        self.write("PUT", 4, {"app": "a2", "tier": "y"})
        self.write("PUT", 5, {"app": "a1", "tier": "y"})
        self.check()
        for number in (0, 7, 8, 9, 10, 29):
            self.delete(number)
        self.check()
        for number in (8, 30, 31):
            self.write("POST", number, {"app": "a1", "tier": "x"})
        self.check()

    def test_pages_of_the_past(self) -> None:
        """Later pages show the revision of the first one, although objects have changed since."""
        self.check()
        expected = self.expected(app="a1")
        for query, labels in (("", {}), ("labelSelector=app%3Da1", {"app": "a1"})):
            expected = self.expected(**labels)
            first = self.client.ask("GET", f"{MAPS}?limit=4&{query}")[1]
            self.write("PUT", 16, {"app": "a2", "tier": "x"})
            self.write("PUT", 17, {"app": "a1", "tier": "x"})
            self.delete(19)
            rest = self.client.ask("GET", f"{MAPS}?{query}&continue={first['metadata']['continue']}")[1]
            self.assertEqual(first["items"] + rest["items"], expected)
            self.write("PUT", 16, {"app": "a1", "tier": "x"})
            self.write("PUT", 17, {"app": "a2", "tier": "x"})
            self.write("POST", 19, {"app": "a1", "tier": "x"})

    def test_ages(self) -> None:
        """The ages in kept rows of a Table depend on the time of the request."""
        created = [
            datetime.fromisoformat(item["metadata"]["creationTimestamp"]).timestamp() for item in self.expected()
        ]
        for seconds in (90, 7200, 7205, 864_000):
            now = max(created) + seconds
            self.patch(tables, "posix_now", lambda now=now: now)
            expected = [[name, 2, human_age(at, now)] for name, at in zip(sorted(self.state), created, strict=True)]
            for _ in range(3):
                found = orjson.loads(self.client.answer("GET", MAPS, Accept=TABLE).body)
                self.assertEqual([row["cells"] for row in found["rows"]], expected)
        self.assertEqual({age for *_, age in expected}, {"10d"})

    def test_large_objects(self) -> None:
        """The items of large objects are not copied."""
        self.patch(encoding, "MAX_JOINED_ITEM", 10)
        self.check()
        self.patch(encoding, "MAX_JOINED_ITEM", 10_000)
        self.patch(encoding, "MAX_JOINED_PER_LIST", 1000)
        self.check()


class GetTests(ReadTestCase):
    """GET of one object."""

    def test_get(self) -> None:
        """An object is returned completely, with its kind."""
        code, found = self.client.ask("GET", f"{MAPS}/a")
        self.assertEqual((code, found["kind"], found["apiVersion"]), (200, "ConfigMap", "v1"))
        self.assertEqual(found["metadata"]["name"], "a")

    def test_not_found(self) -> None:
        """A missing object is a 404 that names it."""
        self.assertEqual(self.error(f"{MAPS}/x"), (404, "NotFound", 'configmaps "x" not found'))

    def test_revision(self) -> None:
        """A GET may require a minimum revision, and fails if it does not arrive."""
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a?resourceVersion={self.revision()}")[0], 200)
        self.client.send(f"GET {MAPS}/a?resourceVersion={self.revision() + 1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(self.client.answers(), [])
        self.client.send(b"")
        other = self.server.client()
        other.ask("POST", MAPS, config_map("z"))
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 200)
        self.client.send(f"GET {MAPS}/a?resourceVersion={self.revision() + 1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.server.clock.advance(3)
        (answer,) = self.client.answers()
        status = orjson.loads(answer.body)
        self.assertEqual((status["code"], status["reason"]), (504, "Timeout"))
        self.assertEqual(answer.header("retry-after"), "1")

    def test_hangs_up(self) -> None:
        """A GET that waits for a revision is cancelled when its client disconnects."""
        self.client.send(f"GET {MAPS}/a?resourceVersion={self.revision() + 1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waiters = self.server.stores.get("", "configmaps").cache._waiters
        self.assertEqual(len(waiters), 1)
        self.client.disconnect()
        self.assertEqual(waiters, [])

    def test_malformed_revision(self) -> None:
        """A resourceVersion that is no number is a 500 without a reason, as in the reference."""
        for text in ("x", "-1", "%20", str(1 << 64)):
            self.assertEqual(self.error(f"{MAPS}/a?resourceVersion={text}")[:2], (500, ""))

    def test_traversal(self) -> None:
        """
        CVE-2015-5305: names that could be parts of a path are rejected in any encoding; an escaped slash separates
        segments.
        """
        for name in (".", "..", "%2e", "%2E%2e", "a%25b", "%252e"):
            self.assertEqual(self.error(f"{MAPS}/{name}")[0], 400, name)
        self.client.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        for name in ("..%2Fsecrets%2Fs", "..%2F..%2Fsecrets%2Fdefault%2Fs", "a%2F..", "../secrets/s"):
            self.assertIn(self.client.answer("GET", f"{MAPS}/{name}").code, (400, 404), name)
        self.assertEqual(self.client.ask("GET", "/api/v1/namespaces%2Fdefault%2Fconfigmaps%2Fa")[0], 200)

    def test_other_type(self) -> None:
        """CVE-2022-3162: a name cannot address an object of another resource whose storage key has the same prefix."""
        backend = self.server.backend
        self.client.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "a"}, "type": "x"})
        prefixes = sorted({store.cache.prefix for store in self.server.stores})
        self.assertTrue(all(prefix.endswith("/") for prefix in prefixes))
        for store in self.server.stores:
            page = self.successResultOf(backend.read_page(store.cache.prefix))
            kinds = {orjson.loads(item.value)["kind"] for item in page.items}
            self.assertLessEqual(kinds, {store.info.kind})
        for name in ("../../secrets/default/a", "/secrets/default/a"):
            self.assertIsNone(self.server.stores.get_copy("", "configmaps", "default", name))

    def test_component_statuses(self) -> None:
        """Component statuses are checked when they are read, and selected like other objects."""
        paths: list[str] = []

        class Client:
            def __init__(self, url: str) -> None:
                self.url = url

            async def get(self, **options: Any) -> Response:
                paths.append(self.url)
                if "10259" in self.url:
                    raise CallError("GET", self.url, "connect: connection refused")
                return Response(200, {}, b"fine")

            def retire(self) -> None:
                pass

        def call(settings: RESTConfig) -> Client:
            self.assertTrue(settings.insecure)
            return Client(settings.url)

        self.client = Server("componentstatuses", outgoing=SimpleNamespace(client=call)).client()
        statuses = "/api/v1/componentstatuses"
        _, found = self.client.ask("GET", statuses)
        self.assertEqual(found["metadata"], {})
        self.assertEqual(
            [(one["metadata"]["name"], *one["conditions"][0].values()) for one in found["items"]],
            [
                ("scheduler", "Healthy", "False", 'Get "https://127.0.0.1:10259/healthz": connect: connection refused'),
                ("controller-manager", "Healthy", "True", "fine"),
                ("etcd-0", "Healthy", "True", "ok"),
            ],
        )
        self.assertEqual(self.client.ask("GET", f"{statuses}/controller-manager")[1]["conditions"][0]["status"], "True")
        paths.clear()
        for query, names in (
            ("fieldSelector=metadata.name%3Detcd-0", ["etcd-0"]),
            ("fieldSelector=metadata.namespace%3Dx", []),
            ("labelSelector=a", []),
        ):
            self.assertEqual(self.names(f"{statuses}?{query}"), names)
        self.assertEqual(paths, [])
        self.assertEqual(len(self.names(f"{statuses}?labelSelector=!a&fieldSelector=metadata.name!%3Detcd-0")), 2)

    def test_virtual_objects(self) -> None:
        """Component statuses are created for the response, and read like other objects."""
        code, found = self.client.ask("GET", "/api/v1/componentstatuses/etcd-0")
        self.assertEqual((code, found["conditions"][0]["status"]), (200, "True"))
        self.assertEqual(self.error("/api/v1/componentstatuses/x")[0], 404)
        code, reason, text = self.error("/api/v1/componentstatuses?watch=1")[:3]
        self.assertEqual((code, reason), (405, "MethodNotAllowed"))
        self.assertEqual(text, 'watch is not supported on resources of kind "componentstatuses"')


class ListTests(ReadTestCase):
    """GET of a collection."""

    def test_namespace(self) -> None:
        """A list is limited to a namespace, or contains all."""
        self.assertEqual(self.names(MAPS), list("abcde"))
        self.assertEqual(self.names(ALL), [*"abcde", "c"])
        self.assertEqual(self.names("/api/v1/namespaces/none/configmaps"), [])

    def test_document(self) -> None:
        """A list has its kind and revision; its items have no kind."""
        _, found = self.client.ask("GET", MAPS)
        self.assertEqual((found["kind"], found["apiVersion"]), ("ConfigMapList", "v1"))
        self.assertEqual(found["metadata"], {"resourceVersion": str(self.revision())})
        self.assertNotIn("kind", found["items"][0])

    def test_selectors(self) -> None:
        """Labels and fields select; terms that contradict each other, or the path, select nothing."""
        obj = config_map("l")
        obj["metadata"]["labels"] = {"tier": "front"}
        self.client.ask("POST", MAPS, obj)
        for query, expected in (
            ("labelSelector=tier%3Dfront", ["l"]),
            ("labelSelector=!tier", [*"abcde"]),
            ("fieldSelector=metadata.name%3Dc", ["c"]),
            ("fieldSelector=metadata.name!%3Dc", [*"abde", "l"]),
            ("fieldSelector=metadata.name%3Dc,metadata.name%3Dd", []),
            ("fieldSelector=metadata.namespace%3Dother", []),
            ("fieldSelector=metadata.name%3D", []),
            ("fieldSelector=%3D", [*"abcde", "l"]),
            ("fieldSelector=metadata.name%3Dl&labelSelector=!tier", []),
        ):
            self.assertEqual(self.names(f"{MAPS}?{query}"), expected, query)
        self.assertEqual(self.names(f"{ALL}?fieldSelector=metadata.name%3Dc"), ["c", "c"])
        self.assertEqual(self.names(f"{ALL}?fieldSelector=metadata.namespace%3Dother"), ["c"])
        self.assertEqual(self.names(f"{ALL}?fieldSelector=metadata.namespace!%3Dother"), [*"abcde", "l"])
        self.assertEqual(self.names(f"{ALL}?fieldSelector=metadata.namespace%3D"), [])
        self.assertEqual(self.error(f"{MAPS}?fieldSelector=data.x%3D1")[0], 400)
        self.assertEqual(self.error(f"{MAPS}?labelSelector=a%20b")[0], 400)

    def test_not_older(self) -> None:
        """A list waits for the requested minimum revision."""
        code, _ = self.client.ask("GET", f"{MAPS}?resourceVersion={self.revision()}")
        self.assertEqual(code, 200)
        self.client.send(f"GET {MAPS}?resourceVersion={self.revision() + 1} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(self.client.answers(), [])
        self.server.client().ask("POST", MAPS, config_map("z"))
        (answer,) = self.client.answers()
        self.assertEqual(len(orjson.loads(answer.body)["items"]), 6)

    def test_exact(self) -> None:
        """An exact list shows the state at a revision: without later objects, with objects that were deleted since."""
        then = self.revision()
        self.client.ask("DELETE", f"{MAPS}/b")
        self.client.ask("POST", MAPS, config_map("f"))
        self.client.ask("PUT", f"{MAPS}/c", config_map("c", x="1"))
        query = f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
        _, found = self.client.ask("GET", query)
        self.assertEqual([item["metadata"]["name"] for item in found["items"]], list("abcde"))
        self.assertTrue(all("data" not in item for item in found["items"]))
        self.assertEqual(found["metadata"]["resourceVersion"], str(then))
        self.assertEqual(self.names(MAPS), list("acdef"))

    def test_compacted(self) -> None:
        """A compacted revision is 410, reason Expired."""
        then = self.revision()
        self.client.ask("DELETE", f"{MAPS}/b")
        self.successResultOf(self.server.backend.compact(self.revision()))
        code, reason, _ = self.error(f"{MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
        self.assertEqual((code, reason), (410, "Expired"))

    def test_malformed_revision(self) -> None:
        """A resourceVersion that is no number is a 400."""
        self.assertEqual(self.error(f"{MAPS}?resourceVersion=x")[:2], (400, "BadRequest"))

    def test_future(self) -> None:
        """An exact list of a revision that does not arrive fails after a timeout."""
        path = f"{MAPS}?resourceVersion=999&resourceVersionMatch=Exact"
        self.client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.server.clock.advance(3)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 504)

    def test_head(self) -> None:
        """HEAD is not supported where GET is, as in kube-apiserver."""
        self.assertEqual(self.client.request("HEAD", MAPS).code, 405)


class PagingTests(ReadTestCase):
    """Paginated lists."""

    def pages(self, path: str, between: Any = lambda: None) -> list[str]:
        """Return the names of all pages of two items."""
        found: list[str] = []
        token = ""
        sep = "&" if "?" in path else "?"
        revisions = set()
        while True:
            more = f"&continue={token}" if token else ""
            code, page = self.client.ask("GET", f"{path}{sep}limit=2{more}")
            self.assertEqual(code, 200, page)
            revisions.add(page["metadata"]["resourceVersion"])
            found += [item["metadata"]["name"] for item in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                self.assertEqual(len(revisions), 1)
                return found
            between()

    def test_pages(self) -> None:
        """The pages together are the list, and contain the number of remaining items."""
        self.assertEqual(self.pages(MAPS), list("abcde"))
        self.assertEqual(self.pages(ALL), [*"abcde", "c"])
        _, page = self.client.ask("GET", f"{MAPS}?limit=2")
        self.assertEqual(page["metadata"]["remainingItemCount"], 3)
        _, page = self.client.ask("GET", f"{MAPS}?limit=2&labelSelector=!x")
        self.assertNotIn("remainingItemCount", page["metadata"])
        _, page = self.client.ask("GET", f"{MAPS}?limit=5")
        self.assertNotIn("continue", page["metadata"])

    def start(self, path: str) -> str:
        """Return the beginning of the next page of a list, from its token."""
        code, page = self.client.ask("GET", path)
        self.assertEqual(code, 200, page)
        token: str = page["metadata"]["continue"]
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        self.assertEqual(content["v"], "meta.k8s.io/v1")
        found: str = content["start"]
        return found

    def test_token(self) -> None:
        """The key in a token is relative to the path, with a slash as in tokens of the reference's cache."""
        self.assertEqual(self.start(f"{MAPS}?limit=2"), "/b\0")
        self.assertEqual(self.start(f"{MAPS}?limit=2&labelSelector=!x"), "/b\0")
        self.assertEqual(self.start(f"{ALL}?limit=2"), "/default/b\0")
        for name in "xy":
            self.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.assertEqual(self.start("/api/v1/namespaces?limit=1"), "/x\0")

    def test_token_of_the_backend(self) -> None:
        """Tokens of the backend have no slash: for events, without a cache, and in tokens of a 410."""
        events = "/api/v1/namespaces/default/events"
        for name in "xyz":
            event = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
            self.assertEqual(self.client.ask("POST", events, event)[0], 201)
        self.assertEqual(self.start(f"{events}?limit=2"), "y\0")
        self.assertEqual(self.start(f"{events}?limit=2&resourceVersion=0"), "y\0")
        _, page = self.client.ask("GET", f"{MAPS}?limit=2")
        self.client.ask("DELETE", f"{MAPS}/c")
        self.successResultOf(self.server.backend.compact(self.revision()))
        _, status = self.client.ask("GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}")
        token = status["metadata"]["continue"]
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        self.assertEqual(content, {"v": "meta.k8s.io/v1", "rv": -1, "start": "b\0"})
        self.server = Server("configmaps", default_cache_size=0)
        self.client = self.server.client()
        for name in "ab":
            self.client.ask("POST", MAPS, config_map(name))
        self.assertEqual(self.start(f"{MAPS}?limit=1"), "a\0")

    def test_both_forms(self) -> None:
        """A token with or without a slash is accepted, in a namespace and in all."""
        revision = self.revision()
        for path, key in ((MAPS, "b"), (ALL, "default/b")):
            for start in (f"/{key}\0", f"{key}\0"):
                content = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
                token = base64.urlsafe_b64encode(content).decode().rstrip("=")
                self.assertEqual(self.names(f"{path}?limit=2&continue={token}"), ["c", "d"])

    def test_any_state(self) -> None:
        """A list from version 0, which any state satisfies, is not cut into pages."""
        for query in ("limit=2", "limit=2&resourceVersionMatch=NotOlderThan", "limit=1&labelSelector=!x"):
            _, page = self.client.ask("GET", f"{MAPS}?resourceVersion=0&{query}")
            self.assertEqual([item["metadata"]["name"] for item in page["items"]], list("abcde"), query)
            self.assertNotIn("continue", page["metadata"])

    def test_concurrent_writes(self) -> None:
        """All pages show the state of the first page, regardless of writes in between."""
        steps = iter([("DELETE", "c", None), ("POST", "", config_map("bb")), ("DELETE", "e", None)])

        def write() -> None:
            method, name, body = next(steps)
            other = self.server.client()
            other.ask(method, f"{MAPS}/{name}" if name else MAPS, body)

        self.assertEqual(self.pages(MAPS, write), list("abcde"))
        self.assertEqual(self.names(MAPS), ["a", "b", "bb", "d", "e"])

    def test_namespace_in_a_selector(self) -> None:
        """A list of all namespaces that a selector limits to one can be paginated, too."""
        self.assertEqual(self.pages(f"{ALL}?fieldSelector=metadata.namespace%3Ddefault"), list("abcde"))
        self.assertEqual(self.pages(f"{ALL}?fieldSelector=metadata.name%3Dc"), ["c", "c"])

    def test_expired(self) -> None:
        """A token whose revision is compacted is 410, with a token that continues at the newest revision."""
        _, page = self.client.ask("GET", f"{MAPS}?limit=2")
        self.client.ask("DELETE", f"{MAPS}/c")
        self.successResultOf(self.server.backend.compact(self.revision()))
        code, status = self.client.ask("GET", f"{MAPS}?limit=2&continue={page['metadata']['continue']}")
        self.assertEqual((code, status["reason"]), (410, "Expired"))
        self.assertEqual(self.names(f"{MAPS}?limit=9&continue={status['metadata']['continue']}"), ["d", "e"])

    def test_tokens_stay_inside(self) -> None:
        """CVE-2022-3162: a modified token leads neither to another namespace nor to another resource."""
        for start in ("../other/a\0", "../../secrets/default/\0", "/a\0", "a/../../x\0", "./a\0"):
            content = orjson.dumps({"v": "meta.k8s.io/v1", "rv": -1, "start": start})
            token = base64.urlsafe_b64encode(content).decode().rstrip("=")
            code, status = self.client.ask("GET", f"{MAPS}?limit=2&continue={token}")
            found = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in status.get("items") or []]
            self.assertTrue(code == 400 or all(namespace == "default" for namespace, _ in found), start)

    def test_bad_tokens(self) -> None:
        """An invalid token is 400, and so is a token together with a resourceVersion."""
        self.assertEqual(self.error(f"{MAPS}?continue=!")[0], 400)
        _, page = self.client.ask("GET", f"{MAPS}?limit=2")
        token = page["metadata"]["continue"]
        for version in ("3", "x"):
            code, status = self.client.ask("GET", f"{MAPS}?continue={token}&resourceVersion={version}")
            self.assertEqual(code, 400)
            self.assertIn("not allowed when using continue", status["message"])


class FormTests(ReadTestCase):
    """The formats of responses."""

    def test_yaml(self) -> None:
        """Objects and lists are available in YAML; large ones are encoded in a thread."""
        answer = self.client.answer("GET", f"{MAPS}/a", Accept="application/yaml")
        self.assertEqual(answer.header("content-type"), "application/yaml")
        self.assertEqual(yaml.safe_load(answer.body)["metadata"]["name"], "a")
        answer = self.client.answer("GET", MAPS, Accept="application/yaml")
        self.assertEqual(len(yaml.safe_load(answer.body)["items"]), 5)
        self.assertEqual(self.server.done_in_threads, [])
        self.client.ask("POST", MAPS, config_map("big", x="x" * 20000))
        answer = self.client.answer("GET", MAPS, Accept="application/yaml")
        self.assertEqual(len(yaml.safe_load(answer.body)["items"]), 6)
        self.assertEqual([one.__name__ for one in self.server.done_in_threads], ["convert"])
        answer = self.client.answer("GET", f"{MAPS}/big", Accept="application/yaml")
        self.assertEqual(len(yaml.safe_load(answer.body)["data"]["x"]), 20000)
        self.assertEqual(len(self.server.done_in_threads), 2)

    def test_long_selectors(self) -> None:
        """A long selector is parsed in a thread, for lists, watches and deletions of collections."""
        threads = self.server.done_in_threads
        long = ",".join(f"n{number}" for number in range(MAX_QUERY_IN_REACTOR // 4))
        for values, wanted in (("a,b", []), (long, ["options"])):
            path = f"{MAPS}?labelSelector=x+notin+({values})"
            for method, query in (("GET", ""), ("DELETE", "&dryRun=All")):
                threads.clear()
                code, found = self.client.ask(method, path + query)
                self.assertEqual((code, len(found["items"])), (200, 5))
                self.assertEqual([function.__name__ for function in threads], wanted)
            threads.clear()
            self.server.client().begin(f"{path}&watch=1")
            self.assertEqual([function.__name__ for function in threads], wanted)
        self.assertEqual(self.client.ask("GET", f"{MAPS}?labelSelector=({long}")[0], 400)

    def test_pretty(self) -> None:
        """Clients that request it, or that look like browsers or curl, get indented JSON."""
        plain = self.client.answer("GET", MAPS)
        pretty = self.client.answer("GET", f"{MAPS}?pretty=true")
        curl = self.client.answer("GET", MAPS, User_Agent="curl/8.0")
        self.assertEqual(pretty.body, curl.body)
        self.assertEqual(orjson.loads(pretty.body), orjson.loads(plain.body))
        self.assertIn(b'\n  "kind": "ConfigMapList"', pretty.body)
        self.assertEqual(plain.body.index(b"\n"), len(plain.body) - 1)
        for path in (f"{MAPS}/a", MAPS, f"{MAPS}?labelSelector=none"):
            for accept in ("application/json", TABLE):
                self.assertTrue(self.client.answer("GET", path, Accept=accept).body.endswith(b"}\n"), path)
                shown = self.client.answer("GET", path, Accept=f"{accept};pretty=1").body
                self.assertTrue(shown.endswith(b"\n}"), path)

    def test_gzip(self) -> None:
        """Large responses are compressed for clients that accept gzip, small ones are not."""
        self.client.ask("POST", MAPS, config_map("big", x="x" * respond.GZIP_FROM))
        answer = self.client.answer("GET", MAPS, Accept_Encoding="deflate, gzip")
        self.assertEqual(answer.header("content-encoding"), "gzip")
        self.assertEqual(answer.header("vary"), "Accept-Encoding")
        self.assertLess(len(answer.body), respond.GZIP_FROM)
        plain = self.client.answer("GET", MAPS)
        self.assertIsNone(plain.header("content-encoding"))
        self.assertEqual(gzip.decompress(answer.body), plain.body)
        for path, encodings in ((f"{MAPS}?limit=1", "gzip"), (MAPS, "gzip;q=0.5"), (MAPS, "br, x-gzip"), (MAPS, "")):
            answer = self.client.answer("GET", path, Accept_Encoding=encodings)
            self.assertIsNone(answer.header("content-encoding"), encodings)

    def test_gzip_object(self) -> None:
        """Large single objects are compressed as responses to all verbs, in all media types."""
        big = config_map("big", x="x" * respond.GZIP_FROM)
        for method, path, code in (("POST", MAPS, 201), ("GET", f"{MAPS}/big", 200), ("PUT", f"{MAPS}/big", 200)):
            for accept in ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
                if method == "POST":
                    self.client.ask("DELETE", f"{MAPS}/big")
                body = None if method == "GET" else big
                answer = self.client.answer(method, path, body, Accept=accept, Accept_Encoding="gzip")
                self.assertEqual((answer.code, answer.header("content-encoding")), (code, "gzip"), (method, accept))
                self.assertEqual(answer.header("content-type"), accept)
                self.assertIn(b"x" * respond.GZIP_FROM, gzip.decompress(answer.body))

    def test_gzip_threshold(self) -> None:
        """A response of exactly 128 KiB is not compressed, a larger one is."""
        size = len(self.client.answer("GET", MAPS).body)
        for limit, coding in ((size, None), (size - 1, "gzip")):
            self.patch(respond, "GZIP_FROM", limit)
            answer = self.client.answer("GET", MAPS, Accept_Encoding="gzip")
            self.assertEqual(answer.header("content-encoding"), coding)

    def test_gzip_disabled(self) -> None:
        """A server without the feature gate does not compress."""
        self.server.site.compresses = False
        self.client.ask("POST", MAPS, config_map("big", x="x" * respond.GZIP_FROM))
        for path in (MAPS, f"{MAPS}/big"):
            self.assertIsNone(self.client.answer("GET", path, Accept_Encoding="gzip").header("content-encoding"))

    def test_gzip_watch(self) -> None:
        """Watches are never compressed."""
        self.client.ask("POST", MAPS, config_map("big", x="x" * respond.GZIP_FROM))
        head = self.server.client().begin(f"{MAPS}?watch=1", Accept_Encoding="gzip").partition(b"\r\n\r\n")[0]
        self.assertNotIn(b"encoding: gzip", head.lower())

    def test_not_acceptable(self) -> None:
        """The 406 lists the available media types; a single object is not available as a list."""
        for accept in ("text/html", "application/json;as=Table;v=v2;g=meta.k8s.io"):
            self.assertEqual(self.client.answer("GET", MAPS, Accept=accept).code, 406, accept)
        view = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("GET", MAPS, Accept=view).code, 406)
        view = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("GET", f"{MAPS}/a", Accept=view).code, 406)
        self.assertEqual(self.client.answer("GET", MAPS, Accept=view).code, 200)

    def test_other_errors_first(self) -> None:
        """An error of the format is reported only if the object exists."""
        view = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("GET", f"{MAPS}/none", Accept=view).code, 404)
        view = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("GET", f"{MAPS}?limit=x", Accept=view).code, 400)
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        self.assertEqual(self.client.answer("GET", f"{MAPS}/none?includeObject=Some", Accept=table).code, 404)

    def test_two_versions(self) -> None:
        """A stored object is returned in the version of the path."""
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "message": "hello",
        }
        self.assertEqual(self.client.ask("POST", "/api/v1/namespaces/default/events", event)[0], 201)
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        _, found = self.client.ask("GET", f"{path}/e")
        self.assertEqual((found["apiVersion"], found["note"]), ("events.k8s.io/v1", "hello"))
        self.assertEqual(found["regarding"]["name"], "p")
        _, listing = self.client.ask("GET", path)
        self.assertEqual(listing["items"][0]["note"], "hello")

    def test_deprecated_kind(self) -> None:
        """Every response about a deprecated kind has a warning, also a 404."""
        client = Server("endpoints", "configmaps").client()
        path = "/api/v1/namespaces/default"
        for place, code in (("endpoints", 200), ("endpoints/gone", 404)):
            answer = client.answer("GET", f"{path}/{place}")
            self.assertEqual(answer.code, code)
            self.assertIn("v1 Endpoints is deprecated in v1.33+", str(answer.headers))
        self.assertNotIn("deprecated", str(client.answer("GET", f"{path}/configmaps").headers))

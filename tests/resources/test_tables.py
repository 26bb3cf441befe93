"""Tests for L{kubetwist.resources.tables} and L{kubetwist.resources.encoding}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources import tables
from tests.resources.server import Server, config_map, events, pod
from tests.resources.tabletools import MAPS

PODS = "/api/v1/namespaces/default/pods"


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class TableTests(SynchronousTestCase):
    """Tables."""

    def setUp(self) -> None:
        """Create a ConfigMap and a Pod."""
        self.server = Server("configmaps", "pods", "namespaces", "events", "limitranges")
        self.client = self.server.client()
        self.client.ask("POST", MAPS, config_map("a", x="1"))
        self.client.ask("POST", PODS, pod("p"))

    def table(self, path: str, accept: str = TABLE) -> Any:
        """Return a Table."""
        code, found = self.client.ask("GET", path, Accept=accept)
        self.assertEqual((code, found["kind"], found["apiVersion"]), (200, "Table", "meta.k8s.io/v1"))
        return found

    def test_list(self) -> None:
        """A list becomes a row for each object, with the columns of the kind."""
        found = self.table(MAPS)
        self.assertEqual([one["name"] for one in found["columnDefinitions"]], ["Name", "Data", "Age"])
        (row,) = found["rows"]
        self.assertEqual(row["cells"][:2], ["a", 1])
        self.assertRegex(row["cells"][2], r"^\d+[smhdy]")
        self.assertEqual(row["object"]["kind"], "PartialObjectMetadata")
        self.assertEqual(set(row["object"]), {"kind", "apiVersion", "metadata"})
        self.assertEqual(found["metadata"]["resourceVersion"], str(self.server.backend.revision))

    def test_one(self) -> None:
        """A single object is a table of one row, at that object's resourceVersion."""
        found = self.table(f"{MAPS}/a")
        self.assertEqual(len(found["rows"]), 1)
        meta = self.client.ask("GET", f"{MAPS}/a")[1]["metadata"]
        self.assertEqual(found["rows"][0]["object"]["metadata"], meta)
        self.assertEqual(found["metadata"], {"resourceVersion": meta["resourceVersion"]})

    def test_include(self) -> None:
        """A row includes the requested part of its object."""
        self.assertIsNone(self.table(f"{MAPS}?includeObject=None")["rows"][0]["object"])
        whole = self.table(f"{MAPS}?includeObject=Object")["rows"][0]["object"]
        self.assertEqual((whole["kind"], whole["data"]), ("ConfigMap", {"x": "1"}))
        code, status = self.client.ask("GET", f"{MAPS}?includeObject=Some", Accept=TABLE)
        self.assertEqual(code, 400)
        self.assertIn("must be 'Metadata', 'Object', 'None', or empty", status["message"])

    def test_ages(self) -> None:
        """A row is cached, and its ages are computed for each request."""
        created = self.client.ask("GET", f"{MAPS}/a")[1]["metadata"]["creationTimestamp"]
        self.table(MAPS)
        now = tables.posix_now()
        for later, expected in ((5, "5s"), (600, "10m"), (4 * 86400, "4d")):
            self.patch(tables, "posix_now", lambda at=now + later: at)
            age = self.table(MAPS)["rows"][0]["cells"][2]
            self.assertIn(age, (expected, f"{later - 1}s", f"{later + 1}s"), created)

    def test_changes(self) -> None:
        """A cached row is not used for a later state of the object."""
        self.table(MAPS)
        self.client.ask("PUT", f"{MAPS}/a", config_map("a", x="1", y="2"))
        self.assertEqual(self.table(MAPS)["rows"][0]["cells"][1], 2)

    def test_conditions(self) -> None:
        """The row of a completed pod has a condition."""
        patch = {"status": {"phase": "Succeeded"}}
        self.client.answer("PATCH", f"{PODS}/p/status", patch, Content_Type="application/merge-patch+json")
        (row,) = self.table(PODS)["rows"]
        self.assertEqual(row["conditions"][0]["type"], "Completed")

    def test_other_version(self) -> None:
        """An object that is stored in another version has the row of the requested version."""
        event = {
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "message": "hello",
        }
        self.client.ask("POST", "/api/v1/namespaces/default/events", event)
        found = self.table("/apis/events.k8s.io/v1/namespaces/default/events")
        self.assertEqual(found["rows"][0]["object"]["metadata"]["name"], "e")
        self.assertIn("hello", found["rows"][0]["cells"])

    def test_no_rows(self) -> None:
        """A table without rows has an empty list of them, or null for kinds without printer columns."""
        for path, rows in ((MAPS, []), ("/api/v1/namespaces/default/limitranges", None)):
            self.assertEqual(self.table(f"{path}?labelSelector=none")["rows"], rows, path)

    def test_pages(self) -> None:
        """A table can be paginated."""
        self.client.ask("POST", MAPS, config_map("b"))
        found = self.table(f"{MAPS}?limit=1")
        self.assertEqual(found["metadata"]["remainingItemCount"], 1)
        found = self.table(f"{MAPS}?limit=1&continue={found['metadata']['continue']}")
        self.assertEqual(found["rows"][0]["cells"][0], "b")

    def test_write(self) -> None:
        """The response to a write can be a table, also in a dry run and for a scale."""
        for query in ("", "dryRun=All"):
            code, found = self.client.ask("POST", f"{MAPS}?{query}", config_map(f"t{len(query)}"), Accept=TABLE)
            self.assertEqual((code, found["kind"]), (201, "Table"))

    def test_watch(self) -> None:
        """Each event of a watch is a table; only the first has the columns. A bookmark is a row of blanks."""
        query = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        data = self.client.begin(f"{MAPS}?{query}", Accept=TABLE).partition(b"\r\n\r\n")[2]
        self.server.clock.advance(0)
        other = self.server.client()
        other.ask("POST", MAPS, config_map("b"))
        self.server.clock.advance(0)
        first, bookmark, second = events(data + self.client.taken())
        self.assertEqual([one["type"] for one in (first, bookmark, second)], ["ADDED", "BOOKMARK", "ADDED"])
        self.assertEqual(len(first["object"]["columnDefinitions"]), 3)
        self.assertIsNone(second["object"]["columnDefinitions"])
        self.assertEqual(bookmark["object"]["rows"][0]["cells"][0], "")
        meta = bookmark["object"]["rows"][0]["object"]["metadata"]
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})

    def test_no_table(self) -> None:
        """Actions have no rows: a client that accepts only Tables gets 406."""
        client = Server("serviceaccounts", "certificatesigningrequests", "selfsubjectaccessreviews").client()
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        code, found = client.ask("POST", path, review, Accept=f"{TABLE},application/json")
        self.assertEqual((code, found["kind"]), (201, "SelfSubjectAccessReview"))
        self.assertEqual(client.answer("POST", path, review, Accept=TABLE).code, 406)

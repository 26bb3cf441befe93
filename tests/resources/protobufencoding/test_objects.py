"""Tests for single objects in protobuf."""

from __future__ import annotations

import json

from kubetwist.audit.auditedrequest import audited_request
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.errors import Counts
from kubetwist.audit.policy import read_policy
from kubetwist.filters.handlerchain import build_handler_chain
from kubetwist.http.site import traverse
from kubetwist.resources.handlers import read as reads
from kubetwist.schema.protobuf.encoding import envelope
from tests.audit.events import RecordingBackend
from tests.http.harness import Allow, Everyone, make_site
from tests.resources.protobufcase import MAPS, PROTOBUF, AnswerTestCase, opened
from tests.resources.server import ADMIN, JSONClient, config_map, definitions, pod

PARTIAL = f"{PROTOBUF};g=meta.k8s.io;v=v1;as=PartialObjectMetadata"


class ObjectTests(AnswerTestCase):
    """Single objects."""

    def test_get(self) -> None:
        """An object equals the one in JSON, in an envelope."""
        self.same(f"{MAPS}/a")
        self.client.ask("POST", "/api/v1/namespaces/default/pods", pod("p", labels={"b": "1", "a": "2"}))
        self.same("/api/v1/namespaces/default/pods/p")

    def test_writes(self) -> None:
        """Create, update, patch and delete are answered in protobuf, regardless of the media type of the body."""
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
        """The response to a deletecollection is a list."""
        code, found = self.ask("DELETE", MAPS)
        self.assertEqual((code, found.kind), (200, "ConfigMapList"))
        self.assertEqual([one["metadata"]["name"] for one in found.value["items"]], ["a", "b"])

    def test_subresources(self) -> None:
        """Subresources of other kinds, and objects that are not stored, are encoded, too."""
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
        """An object is in the requested version."""
        spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}
        path = "autoscaling/{}/namespaces/default/horizontalpodautoscalers"
        created = self.client.ask("POST", f"/apis/{path.format('v1')}", {"metadata": {"name": "h"}, "spec": spec})
        self.assertEqual(created[0], 201, created)
        for version in ("v1", "v2"):
            self.same(f"/apis/{path.format(version)}/h")

    def test_large(self) -> None:
        """A large object is encoded in a thread, once."""
        self.patch(reads, "PROTOBUF_IN_REACTOR", 100)
        self.same(f"{MAPS}/a")
        self.assertEqual([one.__name__ for one in self.server.done_in_threads], ["encode_object"])
        self.same(f"{MAPS}/a")
        self.assertEqual(len(self.server.done_in_threads), 1)

    def test_audit(self) -> None:
        """Audit events contain responses in protobuf in the same form as those in JSON."""
        content = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "RequestResponse"}]}
        kept = RecordingBackend()
        auditor = Auditor(read_policy(json.dumps(content).encode()), [kept], False, Counts())
        handler = build_handler_chain(
            traverse(self.server.installer.mux),
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
        """Errors are encoded in protobuf."""
        code, found = self.ask("GET", f"{MAPS}/nothing")
        self.assertEqual((code, found.kind, found.value["reason"]), (404, "Status", "NotFound"))

    def test_order(self) -> None:
        """A client that accepts JSON and protobuf equally gets the media type that it names first."""
        for accept in (f"{PROTOBUF},application/json", f"{PROTOBUF},*/*", f"application/yaml;q=0.5,{PROTOBUF}"):
            self.assertEqual(self.ask("GET", f"{MAPS}/a", accept=accept)[1].kind, "ConfigMap")
        for accept in (f"application/json,{PROTOBUF}", f"{PROTOBUF};q=0.9,application/json"):
            self.assertEqual(self.client.ask("GET", f"{MAPS}/a", Accept=accept)[1]["kind"], "ConfigMap")

    def test_tables(self) -> None:
        """Tables are not available in protobuf; a client that also accepts JSON gets it."""
        table = ";as=Table;v=v1;g=meta.k8s.io"
        answer = self.client.answer("GET", MAPS, Accept=PROTOBUF + table)
        self.assertEqual(answer.code, 406)
        found = self.client.ask("GET", MAPS, Accept=f"{PROTOBUF}{table},application/json{table}")[1]
        self.assertEqual(found["kind"], "Table")

    def test_partial(self) -> None:
        """The metadata of an object and of a list are available in protobuf."""
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

"""Tests of L{kubetwist.registry.generic.internaltypes}, over HTTP in memory."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server, events, pod

APPS = "/apis/apps/v1/namespaces/default"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
GENERATION = "deprecated.daemonset.template.generation"
ROLLBACK = "deprecated.deployment.rollback.to"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
INIT = {
    "pod.beta.kubernetes.io/init-containers": "[]",
    "pod.alpha.kubernetes.io/init-containers": "[]",
    "pod.beta.kubernetes.io/init-container-statuses": "[]",
    "pod.alpha.kubernetes.io/init-container-statuses": "[]",
}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def workload(kind: str, name: str, annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Return a workload of apps/v1."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def scaler(version: str, annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Return a HorizontalPodAutoscaler C{h}."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    return {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": annotations},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec},
    }


class InternalTypeTests(SynchronousTestCase):
    """Tests of annotations that represent fields of the reference's internal types."""

    def setUp(self) -> None:
        """Create a server with workloads."""
        self.server = Server(
            "daemonsets", "deployments", "replicasets", "statefulsets", "horizontalpodautoscalers", "pods"
        )
        self.client = self.server.client()

    def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> tuple[int, Any]:
        """Return the response to a request."""
        return self.client.ask(method, path, body, Content_Type=media)

    def annotations(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        """Return the annotations in the response to a successful request."""
        code, obj = self.ask(method, path, body, media)
        self.assertLess(code, 300, obj)
        return obj["metadata"].get("annotations")

    def test_template_generation(self) -> None:
        """The template generation of a DaemonSet begins with the generation of its creation, at least 1."""
        for text, first in (("4", "4"), ("+4", "4"), ("0", "1"), ("-3", "1")):
            name = f"d{text.strip('+-')}{len(text)}{first}"
            created = self.annotations("POST", f"{APPS}/daemonsets", workload("DaemonSet", name, {GENERATION: text}))
            self.assertEqual(created, {GENERATION: first})

    def test_template_generation_is_the_servers(self) -> None:
        """The template generation of a DaemonSet is only incremented by changes of the template."""
        path = f"{APPS}/daemonsets/d"
        self.annotations("POST", f"{APPS}/daemonsets", workload("DaemonSet", "d", {GENERATION: "4"}))
        for media in (MERGE, STRATEGIC):
            for part in ("", "/status"):
                body = {"metadata": {"annotations": {GENERATION: "9"}}}
                self.assertEqual(self.annotations("PATCH", path + part, body, media), {GENERATION: "4"})
        body = {"metadata": {"annotations": None}}
        self.assertEqual(self.annotations("PATCH", path, body, MERGE), {GENERATION: "4"})
        changed = {"spec": {"template": {"spec": {"hostNetwork": True}}}}
        self.assertEqual(self.annotations("PATCH", path, changed, MERGE), {GENERATION: "5"})

    def test_no_number(self) -> None:
        """A generation that is not a number is a decoding error in any encoding, before unknown fields are reported."""
        bad = workload("DaemonSet", "d", {GENERATION: "zz"}, bogus=1)
        why = 'strconv.ParseInt: parsing "zz": invalid syntax'
        text = f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {why}'
        code, status = self.ask("POST", f"{APPS}/daemonsets?fieldValidation=Strict", bad)
        self.assertEqual((code, status["message"]), (400, text))
        path = f"{APPS}/daemonsets/d"
        self.ask("POST", f"{APPS}/daemonsets", workload("DaemonSet", "d", {}))
        self.assertEqual(self.ask("PUT", path, bad)[1]["message"], text)
        patch = {"metadata": {"annotations": {GENERATION: "zz"}}}
        code, status = self.ask("PATCH", path, patch, MERGE)
        self.assertEqual((code, status["reason"]), (422, "Invalid"))
        self.assertIn(why, status["message"])
        self.assertEqual(status["details"]["causes"][0]["field"], "patch")
        code, status = self.ask("PATCH", path, patch, STRATEGIC)
        self.assertEqual((code, status["message"]), (500, why))
        applied = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", **patch["metadata"]}}
        code, status = self.ask("PATCH", f"{path}?fieldManager=m&force=true", applied, APPLY)
        self.assertEqual(code, 500)
        prefix = "failed to convert to unversioned (/d; apps/v1, Kind=DaemonSet): "
        self.assertEqual(status["message"], prefix + why)

    def test_rollback(self) -> None:
        """The rollback revision of a Deployment is a number, which status updates do not change."""
        path = f"{APPS}/deployments"
        created = self.annotations("POST", path, workload("Deployment", "d", {ROLLBACK: "+3", "mine": "x"}))
        self.assertEqual(created, {ROLLBACK: "3", "mine": "x"})
        patch = {"metadata": {"annotations": {ROLLBACK: "7", "mine": "y"}}}
        self.assertEqual(self.annotations("PATCH", f"{path}/d/status", patch, MERGE), {ROLLBACK: "3", "mine": "y"})
        code, status = self.ask("POST", path, workload("Deployment", "e", {ROLLBACK: "x"}))
        self.assertEqual(code, 400)
        self.assertIn(
            f'failed to parse annotation[{ROLLBACK}]=x as int64: strconv.ParseInt: parsing "x"', status["message"]
        )
        code, status = self.ask("POST", path, workload("Deployment", "e", {ROLLBACK: "-1"}))
        self.assertEqual([one["field"] for one in status["details"]["causes"]], ["spec.rollback.version"])
        self.assertIsNone(self.annotations("POST", path, workload("Deployment", "e", {ROLLBACK: ""})))

    def test_hidden(self) -> None:
        """Rows of Tables and PartialObjectMetadata lack the annotations; whole objects in rows have them."""
        for kind, name in (("DaemonSet", GENERATION), ("Deployment", ROLLBACK)):
            path = f"{APPS}/{kind.lower()}s"
            self.ask("POST", path, workload(kind, "d", {name: "2", "mine": "x"}))
            for query, shown in (("", {"mine": "x"}), ("?includeObject=Object", {name: "2", "mine": "x"})):
                _, table = self.client.ask("GET", path + query, Accept=TABLE)
                self.assertEqual(table["rows"][0]["object"]["metadata"]["annotations"], shown)
            _, found = self.client.ask("GET", path, Accept=PARTIALS)
            self.assertEqual(found["items"][0]["metadata"]["annotations"], {"mine": "x"})

    def test_bookmark(self) -> None:
        """The object of a bookmark is the zero value of the internal type: no replicas, generation 0."""
        for kind in ("deployments", "replicasets", "statefulsets"):
            self.assertEqual(self.bookmark(kind)["spec"]["replicas"], 0)
        annotations = {GENERATION: "0", "k8s.io/initial-events-end": "true"}
        self.assertEqual(self.bookmark("daemonsets")["metadata"]["annotations"], annotations)

    def bookmark(self, resource: str) -> Any:
        """Return the object of the bookmark after the initial events of an empty resource."""
        client = self.server.client()
        query = "watch=1&allowWatchBookmarks=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        _, _, body = client.begin(f"{APPS}/{resource}?{query}").partition(b"\r\n\r\n")
        self.server.clock.advance(0)
        (event,) = events(body + client.taken())
        self.assertEqual(event["type"], "BOOKMARK")
        return event["object"]

    def test_init_containers(self) -> None:
        """Former annotations of init containers are removed from pods and templates, and have no owners."""
        obj = {**pod("p"), "metadata": {"name": "p", "annotations": {**INIT, "mine": "x"}}}
        path = "/api/v1/namespaces/default/pods"
        self.assertEqual(self.annotations("POST", path, obj), {"mine": "x"})
        patch = {"metadata": {"annotations": INIT}}
        for part in ("", "/status"):
            self.assertEqual(self.annotations("PATCH", f"{path}/p{part}", patch, MERGE), {"mine": "x"})
        deployment = workload("Deployment", "d", INIT)
        deployment["spec"]["template"]["metadata"]["annotations"] = INIT
        code, made = self.ask("POST", f"{APPS}/deployments", deployment)
        self.assertEqual(code, 201)
        self.assertEqual(made["metadata"]["annotations"], INIT)
        self.assertNotIn("annotations", made["spec"]["template"]["metadata"])
        (entry,) = made["metadata"]["managedFields"]
        self.assertNotIn("f:annotations", entry["fieldsV1"]["f:spec"]["f:template"]["f:metadata"])

    def test_scaler_v2(self) -> None:
        """Writes of autoscaling/v2 remove the annotations in which v1 has its additional fields."""
        path = SCALERS.format("v2")
        sent = {METRICS: "[]", BEHAVIOR: "{}", "autoscaling.alpha.kubernetes.io/scale-up-tolerance": "1", "mine": "x"}
        self.assertEqual(self.annotations("POST", path, scaler("v2", sent)), {"mine": "x"})
        self.assertEqual(self.annotations("PUT", f"{path}/h", scaler("v2", sent)), {"mine": "x"})
        for media in (MERGE, STRATEGIC):
            for part in ("", "/status"):
                patch = {"metadata": {"annotations": sent}}
                self.assertEqual(self.annotations("PATCH", f"{path}/h{part}", patch, media), {"mine": "x"})

    def test_scaler_v1(self) -> None:
        """Writes of autoscaling/v1 parse the annotations, and add no defaults to them before validation."""
        path = SCALERS.format("v1")
        incomplete = scaler("v1", {BEHAVIOR: json.dumps({"scaleup": {"selectPolicy": "Disabled"}})})
        code, status = self.ask("POST", path, incomplete)
        self.assertEqual(code, 422)
        self.assertEqual([one["field"] for one in status["details"]["causes"]], ["spec.behavior.scaleUp.policies"])
        rules = {"SCALEUP": {"policies": [{"type": "Pods", "value": 1, "periodseconds": 10}]}}
        self.annotations("POST", path, scaler("v1", {BEHAVIOR: json.dumps(rules)}))
        _, found = self.ask("GET", f"{SCALERS.format('v2')}/h")
        self.assertEqual(
            found["spec"]["behavior"]["scaleUp"]["policies"], [{"type": "Pods", "value": 1, "periodSeconds": 10}]
        )
        self.assertEqual(found["spec"]["behavior"]["scaleDown"]["selectPolicy"], "Max")
        self.assertNotIn("annotations", found["metadata"])

    def test_scaler_rows(self) -> None:
        """The row of an autoscaler is the same in every version, and lacks the annotations of conversion."""
        metrics = [{"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1000m"}}]
        self.annotations(
            "POST",
            SCALERS.format("v1"),
            scaler("v1", {METRICS: json.dumps(metrics), "mine": "x"}, targetCPUUtilizationPercentage=40),
        )
        for version in ("v1", "v2"):
            _, table = self.client.ask("GET", SCALERS.format(version), Accept=TABLE)
            (row,) = table["rows"]
            self.assertEqual(row["cells"][2], "memory: <unknown>/1, cpu: <unknown>/40%")
            self.assertEqual(row["object"]["metadata"]["annotations"], {"mine": "x"})

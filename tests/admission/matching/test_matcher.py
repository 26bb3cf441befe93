"""Tests for L{kubetwist.admission.matching.matcher}."""

from __future__ import annotations

from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, webhook
from tests.admission_plugins.webhooks.webhooktools import MAPS, rule


class SelectionTests(WebhookTestCase):
    """Tests for L{kubetwist.admission.matching.matcher}."""

    def test_operations(self) -> None:
        """Updates match the labels of the old and the new object, deletes of the old one; rules list operations."""
        self.configure(webhook(**rule("configmaps", operations=("UPDATE", "DELETE"))))
        self.config_map()
        self.assertEqual(self.requests, [])
        self.send_request("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, Content_Type="application/merge-patch+json")
        self.send_request("DELETE", f"{MAPS}/m?propagationPolicy=Background&gracePeriodSeconds=3")
        update, delete = self.requests
        self.assertEqual((update["operation"], update["object"]["data"]), ("UPDATE", {"a": "b"}))
        self.assertNotIn("data", update["oldObject"])
        self.assertEqual(update["oldObject"]["kind"], "ConfigMap")
        self.assertEqual(update["options"], {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})
        self.assertEqual((delete["operation"], delete["object"]), ("DELETE", None))
        self.assertEqual(delete["oldObject"]["data"], {"a": "b"})
        self.assertEqual(
            delete["options"],
            {
                "kind": "DeleteOptions",
                "apiVersion": "meta.k8s.io/v1",
                "gracePeriodSeconds": 3,
                "propagationPolicy": "Background",
            },
        )

    def test_scope(self) -> None:
        """Rules can match namespaced or cluster-scoped objects; namespaces are cluster-scoped."""
        self.configure(
            webhook("inside.example.org", **rule("*", scope="Namespaced")),
            webhook("outside.example.org", **rule("*", scope="Cluster")),
        )
        self.config_map()
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        reviewed = [(url.rpartition("/")[2], review["request"]["name"]) for url, review in self.outgoing.calls]
        self.assertEqual(reviewed, [("inside.example.org", "m"), ("outside.example.org", "other")])

    def test_selectors(self) -> None:
        """The labels of the namespace and of the old or new object must match the selectors."""
        self.configure(
            webhook("here.example.org", namespaceSelector={"matchLabels": {"team": "a"}}),
            webhook("there.example.org", namespaceSelector={"matchLabels": {"team": "b"}}),
            webhook("mine.example.org", objectSelector={"matchLabels": {"x": "y"}}, **rule("configmaps")),
        )
        self.config_map("plain")
        self.config_map("labelled", labels={"x": "y"})
        unlabel = [{"op": "remove", "path": "/metadata/labels/x"}]
        self.send_request("PATCH", f"{MAPS}/labelled", unlabel, Content_Type="application/json-patch+json")
        reviewed = [(url.rpartition("/")[2], review["request"]["name"]) for url, review in self.outgoing.calls]
        self.assertEqual(
            reviewed,
            [
                ("here.example.org", "plain"),
                ("here.example.org", "labelled"),
                ("mine.example.org", "labelled"),
                ("mine.example.org", "labelled"),
            ],
        )

    def test_missing_namespace(self) -> None:
        """With a namespace selector, the namespace must exist."""
        self.configure(webhook(namespaceSelector={"matchLabels": {"team": "a"}}))
        expected = (404, 'namespaces "nowhere" not found')
        self.assertEqual(
            self.request_error("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "m"}}), expected
        )

    def test_equivalent(self) -> None:
        """
        A request in another version than the rules list matches as an equivalent resource, unless matchPolicy is Exact.
        """
        for policy in ("Equivalent", "Exact"):
            versions = rule("horizontalpodautoscalers")
            versions["rules"][0] |= {"apiGroups": ["autoscaling"], "apiVersions": ["v1"]}
            self.configure(
                webhook(f"{policy.lower()}.example.org", matchPolicy=policy, **versions), name=policy.lower()
            )
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        obj = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]}}
        self.send_request("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", obj)
        (request,) = self.requests
        self.assertEqual((request["resource"]["version"], request["requestResource"]["version"]), ("v1", "v2"))
        self.assertEqual((request["kind"]["version"], request["requestKind"]["version"]), ("v1", "v2"))
        shown = request["object"]
        self.assertEqual((shown["apiVersion"], shown["spec"]["targetCPUUtilizationPercentage"]), ("autoscaling/v1", 50))

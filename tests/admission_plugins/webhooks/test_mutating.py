"""Tests for L{kubetwist.admission_plugins.webhooks.mutating}."""

from __future__ import annotations

from typing import Any

from kubetwist.client.errors import CallError
from tests.admission_plugins.mutationtools import MERGE, OTHER_NAMESPACE
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, patch, webhook
from tests.admission_plugins.webhooks.webhooktools import MAPS, rule
from tests.resources.server import config_map, pod


class MutatingTests(WebhookTestCase):
    """Tests for L{kubetwist.admission_plugins.webhooks.mutating}."""

    def test_patch(self) -> None:
        """The patched object is stored with defaults."""
        self.configure(webhook(**rule("pods")), mutating=True)
        container = {"name": "side", "image": "side"}
        self.outgoing.answer = lambda url, review: patch(
            ("add", "/metadata/labels", {"a": "b"}), ("add", "/spec/containers/-", container), ("add", "/spec/bogus", 1)
        )
        made = self.send_request("POST", "/api/v1/namespaces/default/pods", pod("p"))
        self.assertEqual(made["metadata"]["labels"], {"a": "b"})
        side = made["spec"]["containers"][1]
        self.assertEqual((side["name"], side["imagePullPolicy"]), ("side", "Always"))
        self.assertNotIn("bogus", made["spec"])
        request = self.requests[0]
        self.assertNotIn("uid", request["object"]["metadata"])

    def test_generated_name(self) -> None:
        """A generated name is not known to webhooks."""
        self.configure(webhook(), mutating=True)
        made = self.send_request("POST", MAPS, {"metadata": {"generateName": "m-"}})
        (request,) = self.requests
        self.assertNotIn("name", request)
        self.assertTrue(made["metadata"]["name"].startswith("m-"))

    def test_order(self) -> None:
        """
        Webhooks are called in the order of configurations and of their items; each gets the result of the previous one.
        """
        self.configure(webhook("c.example.org"), webhook("a.example.org"), mutating=True, name="second")
        self.configure(webhook("b.example.org"), mutating=True, name="first")

        def answer(url: str, review: Any) -> Any:
            data = review["request"]["object"].get("data") or {}
            return patch(("add", "/data", {**data, url[-13]: str(len(data))}))

        self.outgoing.answer = answer
        self.assertEqual(self.config_map()["data"], {"b": "0", "c": "1", "a": "2"})

    def test_versions(self) -> None:
        """A patch in another version is converted to the version of the object."""
        versions = rule("horizontalpodautoscalers")
        versions["rules"][0] |= {"apiGroups": ["autoscaling"], "apiVersions": ["v1"]}
        self.configure(webhook(**versions), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("add", "/spec/targetCPUUtilizationPercentage", 70))
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        obj = {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
        made = self.send_request("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", obj)
        (metric,) = [one for one in made["spec"]["metrics"] if one["resource"]["name"] == "cpu"]
        self.assertEqual(metric["resource"]["target"], {"type": "Utilization", "averageUtilization": 70})

    def test_nothing_to_change(self) -> None:
        """A delete has no object to patch; an empty patch is no patch."""
        self.config_map()
        self.configure(webhook(**rule("configmaps")), mutating=True)
        self.outgoing.answer = lambda url, review: patch(("add", "/data", {}))
        expected = (
            'Internal error occurred: admission webhook "a.example.org" attempted to modify the object, which is not '
            "supported for this operation"
        )
        self.assertEqual(self.request_error("DELETE", f"{MAPS}/m"), (500, expected))
        self.outgoing.answer = lambda url, review: patch()
        self.send_request("DELETE", f"{MAPS}/m")

    def test_bad_patches(self) -> None:
        """
        An undecodable patch is a failed call; a patch that cannot be applied is an error, independent of failurePolicy.
        """
        self.configure(webhook(failurePolicy="Ignore"), mutating=True)
        bad: dict[str, Any] = {"allowed": True, "patchType": "JSONPatch", "patch": "bm8="}
        self.outgoing.answer = lambda url, review: bad
        self.config_map("undecodable")
        self.outgoing.answer = lambda url, review: {**patch(("add", "/x", 1)), "patchType": "Other"}
        self.config_map("unsupported")
        for operation in (
            ("add", "/a/b/c", 1),
            ("test", "/metadata/name", "z"),
            ("replace", "/data", 3),
            ("replace", "/kind", "Pod"),
        ):
            self.outgoing.answer = lambda url, review, operation=operation: patch(operation)
            code, message = self.request_error("POST", MAPS, config_map("m"))
            self.assertEqual((code, message[:25]), (500, "Internal error occurred: "))

    def test_annotations(self) -> None:
        """Audit annotations contain the annotations of webhooks and their patches."""
        recorded: dict[str, tuple[str, str]] = {}
        self.configure(webhook(), webhook("b.example.org", failurePolicy="Ignore"), mutating=True)

        def answer(url: str, review: Any) -> Any:
            if url.endswith("b.example.org"):
                return CallError("POST", url, "EOF")
            return {**patch(("add", "/data", {"a": "b"})), "auditAnnotations": {"key": "value", "bad key": "x"}}

        self.outgoing.answer = answer
        registry = self.server.registry
        admit = registry.admission.admit

        async def watched(attributes: Any) -> None:
            await admit(attributes)
            recorded.update(attributes.annotations or {})

        registry.admission.admit = watched  # type: ignore[method-assign]
        self.config_map()
        self.assertEqual(recorded["a.example.org/key"], ("value", "Metadata"))
        self.assertNotIn("a.example.org/bad key", recorded)
        prefix = "mutation.webhook.admission.k8s.io/round_0_index_"
        self.assertEqual(
            recorded[f"{prefix}0"][0], '{"configuration":"hooks","webhook":"a.example.org","mutated":true}'
        )
        self.assertEqual(
            recorded[f"{prefix}1"][0], '{"configuration":"hooks","webhook":"b.example.org","mutated":false}'
        )
        self.assertEqual(recorded[f"failed-open.{prefix}1"], ("b.example.org", "Metadata"))
        self.assertEqual(
            recorded["patch.webhook.admission.k8s.io/round_0_index_0"],
            (
                '{"configuration":"hooks","webhook":"a.example.org","patch":[{"op":"add","path":"/data","value":{"a":"b"}}],'
                '"patchType":"JSONPatch"}',
                "Request",
            ),
        )

    def test_managed_fields(self) -> None:
        """Invalid managed fields are replaced by the old ones, with a warning."""
        self.configure(webhook(), mutating=True)
        self.outgoing.answer = lambda url, review: patch(
            ("replace", "/metadata/managedFields", [{"operation": "Guess"}])
        )
        answered = self.client.answer("POST", MAPS, config_map("m", a="b"))
        self.assertEqual(answered.code, 201)
        self.assertIn(".metadata.managedFields was in an invalid state after admission", str(answered.headers))
        operations = {
            entry["operation"] for entry in self.send_request("GET", f"{MAPS}/m")["metadata"]["managedFields"]
        }
        self.assertEqual(operations, {"Update"})


class WebhookMutationTests(WebhookTestCase):
    """Mutations by webhooks."""

    resources = (*WebhookTestCase.resources, "replicasets")

    def answer(self, *operations: tuple[str, str, Any], rules: tuple[str, ...] = ("*",)) -> None:
        """Make a webhook respond with a patch to every request."""
        self.outgoing.answer = lambda url, review: patch(*operations)
        all_writes = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [*rules]}
        self.configure(webhook(rules=[all_writes]), mutating=True)

    def test_namespace(self) -> None:
        """A webhook that changes the namespace of an object fails the request, and nothing is stored."""
        self.answer(("add", "/metadata/namespace", "elsewhere"), rules=("configmaps",))
        self.assertEqual(self.request_error("POST", MAPS, {"metadata": {"name": "a"}}), (400, OTHER_NAMESPACE))
        self.assertEqual(self.send_request("GET", "/api/v1/configmaps")["items"], [])

    def test_managers(self) -> None:
        """An empty list of managed fields removes all managed fields."""
        self.answer(("add", "/metadata/managedFields", []), rules=("configmaps",))
        self.assertNotIn("managedFields", self.config_map("a", labels={"a": "b"})["metadata"])

    def test_unknown_fields(self) -> None:
        """Unknown fields of a patch are dropped."""
        self.answer(("add", "/odd", 1), rules=("configmaps",))
        self.assertNotIn("odd", self.config_map("a"))

    def test_scale(self) -> None:
        """A webhook cannot make a Scale invalid, or change its name or resourceVersion."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        path = "/apis/apps/v1/namespaces/default/deployments"
        self.send_request("POST", path, {"metadata": {"name": "d"}, "spec": spec})
        operations_to_send: list[tuple[str, str, Any]] = []
        self.answer(rules=("deployments/scale",))
        self.outgoing.answer = lambda url, review: patch(*operations_to_send)
        for operation, code, text in (
            (("remove", "/metadata/namespace", None), 422, "metadata.namespace: Required value"),
            (("replace", "/metadata/name", ""), 422, "metadata.name: Required value"),
            (("add", "/metadata/uid", "x"), 409, "Precondition failed: UID in precondition: x"),
            (("add", "/metadata/resourceVersion", "1"), 409, "the object has been modified"),
        ):
            operations_to_send[:] = [operation]
            result = self.request_error(
                "PATCH", f"{path}/d/scale", {"spec": {"replicas": 2}}, **{"content-type": MERGE}
            )
            self.assertEqual(result[0], code, result)
            self.assertIn(text, result[1])
        self.assertEqual(self.send_request("GET", f"{path}/d")["spec"]["replicas"], 1)
        operations_to_send.clear()
        self.send_request("PUT", f"{path}/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": 2}})
        self.assertEqual(self.send_request("GET", f"{path}/d")["spec"]["replicas"], 2)

"""Tests for L{kubetwist.admission_plugins.policies.mutating}."""

from __future__ import annotations

from typing import Any

from kubetwist.admission_plugins.policies.plugins import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from tests.admission_plugins.mutationtools import MERGE, OTHER_NAMESPACE
from tests.admission_plugins.policies.policycase import MAPS, SCALERS, MutatingTestCase, PolicyTestCase, rule
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition
from tests.resources.server import all_kinds, configured


class MutatingTests(MutatingTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.mutating}."""

    def test_order(self) -> None:
        """Mutations run in order, each on the result of the previous one."""
        self.mutate(
            self.apply("Object{metadata: Object.metadata{labels: {'by': variables.who}}}"),
            self.patch(
                "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a.b'),"
                " value: object.metadata.labels['by']}]"
            ),
            variables=[{"name": "who", "expression": "request.userInfo.username"}],
        )
        made = self.create("a", {"k": "v"}, labels={"x": "y"})
        self.assertEqual(made["metadata"]["labels"], {"x": "y", "by": "admin"})
        self.assertEqual(made["data"], {"k": "v", "a.b": "admin"})

    def test_twice(self) -> None:
        """A policy that runs on its result changes nothing."""
        self.mutate(self.apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"), reinvocationPolicy="IfNeeded")
        self.create("a")
        before = self.send_request("GET", f"{MAPS}/a")
        after = self.send_request("PUT", f"{MAPS}/a", before)
        self.assertEqual(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"])

    def test_reinvocation(self) -> None:
        """A policy with reinvocationPolicy IfNeeded runs again after later changes."""
        self.policy(
            "mutating",
            "first",
            mutations=[
                self.apply(
                    "Object{metadata: Object.metadata{annotations:"
                    " {'seen': object.?metadata.labels.?late.orValue('no')}}}"
                )
            ],
            reinvocationPolicy="IfNeeded",
        )
        self.policy(
            "mutating", "second", mutations=[self.apply("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}")]
        )
        self.assertEqual(self.create("a")["metadata"]["annotations"], {"seen": "yes"})

    def test_failure_policy(self) -> None:
        """With failurePolicy Ignore a failed mutation is skipped."""
        self.mutate(
            self.patch("[JSONPatch{op: 'remove', path: '/data/gone'}]"),
            self.apply("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"),
            failurePolicy="Ignore",
        )
        self.assertEqual(self.create("a", {"k": "v"})["metadata"]["labels"], {"a": "b"})

    def test_result_is_no_object_of_its_kind(self) -> None:
        """A patch whose result is not an object of the kind is rejected and nothing is stored."""
        self.mutate(self.patch("[JSONPatch{op: 'replace', path: '/data', value: [1]}]"))
        code, _, _ = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 500)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[0], 404)

    def test_validated_afterwards(self) -> None:
        """The result of policies is validated by validating policies and by the kind."""
        self.mutate(self.apply("Object{metadata: Object.metadata{labels: {'bad label': 'x'}}}"))
        code, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(code, 422)
        self.assertIn("metadata.labels", message)


APPLY = "application/apply-patch+yaml"


def edits(*operations: tuple[str, str, str]) -> dict[str, Any]:
    """Return a mutation with a JSON patch; values are expressions."""
    made = ", ".join(
        f"JSONPatch{{op: '{op}', path: '{path}'{', value: ' + value if value else ''}}}"
        for op, path, value in operations
    )
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{made}]"}}


VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


class PolicyMutationTests(PolicyTestCase):
    """Mutations by policies."""

    def mutate(self, *mutations: dict[str, Any], **spec: Any) -> None:
        """Create a policy with these mutations and a binding."""
        self.policy("mutating", mutations=[*mutations], **spec)

    def test_namespace(self) -> None:
        """A policy that changes the namespace of an object fails creation, update, patch and apply."""
        self.create("live")
        self.mutate(edits(("add", "/metadata/namespace", "'elsewhere'")))
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
        for method, path, media in (
            ("POST", MAPS, "application/json"),
            ("PUT", f"{MAPS}/live", "application/json"),
            ("PATCH", f"{MAPS}/live", MERGE),
            ("PATCH", f"{MAPS}/a?fieldManager=m", APPLY),
        ):
            named = {**body, "metadata": {"name": "live" if "live" in path else "a"}}
            result = self.request_error(method, path, named, **{"content-type": media})
            self.assertEqual(result, (400, "BadRequest", OTHER_NAMESPACE), (method, media))
        stored = self.send_request("GET", "/api/v1/configmaps")["items"]
        self.assertEqual([one["metadata"]["name"] for one in stored], ["live"])
        self.assertNotIn("data", stored[0])

    def test_merged_namespace(self) -> None:
        """A policy with an apply configuration cannot change the namespace."""
        expression = "Object{metadata: Object.metadata{namespace: 'elsewhere'}}"
        self.mutate({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
        result = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(result, (400, "BadRequest", OTHER_NAMESPACE))

    def test_namespace_that_is_removed(self) -> None:
        """If a policy removes the namespace, the request's namespace is used."""
        self.mutate(edits(("remove", "/metadata/namespace", "")))
        self.assertEqual(self.create("a")["metadata"]["namespace"], "default")

    def test_cluster_scope(self) -> None:
        """A namespace in a cluster-scoped object is dropped."""
        constraints = {"resourceRules": [rule("namespaces")]}
        self.mutate(edits(("add", "/metadata/namespace", "'elsewhere'")), matchConstraints=constraints)
        made = self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        self.assertNotIn("namespace", made["metadata"])

    def test_name(self) -> None:
        """An update whose name is changed by a policy is rejected with the new name."""
        self.create("a")
        self.mutate(edits(("add", "/metadata/name", "'b'")))
        message = 'ConfigMap "b" is invalid: metadata.name: Invalid value: "b": field is immutable'
        result = self.request_error("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
        self.assertEqual(result, (422, "Invalid", message))

    def test_version(self) -> None:
        """A resourceVersion that a policy sets in an update is compared with the current one."""
        self.create("a")
        self.mutate(edits(("add", "/metadata/resourceVersion", "'1'")))
        code, reason, _ = self.request_error("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "v"}})
        self.assertEqual((code, reason), (409, "Conflict"))

    def test_kind(self) -> None:
        """An object of another kind or version is an error; removed fields kind and apiVersion are added."""
        self.mutate(
            edits(("remove", "/kind", ""), ("remove", "/apiVersion", "")),
            edits(("add", "/data", "{'k': object.kind + object.apiVersion}")),
        )
        self.assertEqual(self.create("a")["data"], {"k": "ConfigMapv1"})
        self.mutate(edits(("add", "/kind", "'Odd'")), name="q")
        code, reason, message = self.request_error("POST", MAPS, {"metadata": {"name": "b"}})
        self.assertEqual((code, reason), (500, "InternalError"))
        self.assertIn('no kind "Odd" is registered for version "v1"', message)

    def test_other_version(self) -> None:
        """An object of another version is rejected by the policy, an object of another kind is an error."""
        self.mutate(edits(("add", "/apiVersion", "object.data.v"), ("add", "/kind", "object.data.k")))
        for version, kind, code, text in (
            ("v1", "ConfigMap", 201, ""),
            ("v1", "Namespace", 500, 'strict decoding error: unknown field "data"'),
            ("apps/v1", "ConfigMap", 500, 'no kind "ConfigMap" is registered for version "apps/v1"'),
        ):
            body = {"metadata": {"name": "a"}, "data": {"v": version, "k": kind}}
            result, answer = self.client.ask("POST", MAPS, body)
            self.assertEqual(result, code, answer)
            self.assertIn(text, answer.get("message", ""))
        constraints = {"resourceRules": [rule("horizontalpodautoscalers")]}
        self.mutate(edits(("add", "/apiVersion", "'autoscaling/v2'")), name="h", matchConstraints=constraints)
        spec = {"maxReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "d"}}
        code, reason, message = self.request_error("POST", SCALERS, {"metadata": {"name": "h"}, "spec": spec})
        self.assertEqual((code, reason), (403, "Invalid"))
        self.assertIn(
            "converting (v2.HorizontalPodAutoscaler) to (v1.HorizontalPodAutoscaler): unknown conversion", message
        )

    def test_unknown_fields(self) -> None:
        """An unknown field, also in another case, is an error at any depth."""
        self.mutate(edits(("add", "/metadata/odd", "'x'"), ("add", "/Data", "{'a': 'b'}")))
        self.assertEqual(
            self.request_error("POST", MAPS, {"metadata": {"name": "a"}}),
            (
                500,
                "InternalError",
                'Internal error occurred: strict decoding error: unknown field "Data", unknown field "metadata.odd"',
            ),
        )

    def test_unknown_fields_of_patches(self) -> None:
        """An unknown field of a JSON patch has no type, so setting it is an error."""
        expression = '[JSONPatch{oper: "add"}]'
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
        spec = {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule("configmaps")]},
            "mutations": [mutation],
        }
        path = VALIDATING.replace("validating", "mutating")
        _, _, message = self.request_error("POST", path, {"metadata": {"name": "p"}, "spec": spec})
        self.assertIn("expected type of field 'oper' is '' but provided type is 'string'", message)

    def test_managers(self) -> None:
        """An empty list of managed fields leaves an object without any."""
        self.mutate(edits(("add", "/metadata/managedFields", "[]")))
        self.assertNotIn("managedFields", self.create("a", {"k": "v"})["metadata"])

    def test_conditions_see_no_namespace(self) -> None:
        """In matchConditions, namespaceObject is null; in validations and mutations it is the namespace."""
        self.mutate(
            edits(("add", "/data", "{'team': namespaceObject.metadata.labels.team}")),
            matchConditions=[{"name": "none", "expression": "namespaceObject == null"}],
        )
        self.policy(
            name="v",
            matchConditions=[{"name": "none", "expression": "!has(namespaceObject.metadata)"}],
            validations=[{"expression": "namespaceObject.metadata.labels.team != 'a'", "message": "not here"}],
        )
        self.assertIn("not here", self.request_error("POST", MAPS, {"metadata": {"name": "a"}})[2])
        self.send_request("DELETE", f"{VALIDATING}/v")
        self.assertEqual(self.create("a")["data"], {"team": "a"})

    def test_collection(self) -> None:
        """A deletecollection has no name, neither in the request nor in its rejection."""
        self.policy(
            matchConstraints={"resourceRules": [rule("configmaps", operations=["DELETE"])]},
            validations=[{"expression": "has(request.name)", "message": "no name"}],
        )
        self.create("a")
        self.create("b")
        self.send_request("DELETE", f"{MAPS}/a")
        message = self.request_error("DELETE", MAPS)[2]
        self.assertTrue(message.startswith('configmaps "Unknown" is forbidden: '), message)


class CustomMutationTests(PolicyTestCase):
    """Mutations of custom resources."""

    def setUp(self) -> None:
        """Create a CRD with a status, and the plugins."""
        self.server = CustomServer(
            "namespaces",
            *(one.resource for one in all_kinds() if "admissionpolic" in one.resource),
            admission=configured(MutatingAdmissionPolicy, ValidatingAdmissionPolicy),
        )
        self.client = self.server.client()
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        crd = definition()
        crd["spec"]["versions"][0]["subresources"] = {"status": {}}
        self.send_request("POST", DEFINITIONS, crd)
        self.server.settle()

    def mutate(self, *operations: tuple[str, str, str]) -> None:
        """Create a policy with a JSON patch and a binding."""
        constraints = {"resourceRules": [rule("kites", "kites/status")]}
        self.policy("mutating", mutations=[edits(*operations)], matchConstraints=constraints)

    def kite(self) -> dict[str, Any]:
        """Return a valid object."""
        return {"apiVersion": "example.com/v1", "kind": "Kite", "metadata": {"name": "k"}}

    def test_namespace(self) -> None:
        """A policy cannot change the namespace of an object."""
        self.mutate(("add", "/metadata/namespace", "'elsewhere'"))
        self.assertEqual(self.request_error("POST", KITES, self.kite()), (400, "BadRequest", OTHER_NAMESPACE))

    def test_version(self) -> None:
        """A policy cannot change the group or version of an object."""
        self.mutate(("add", "/apiVersion", "'apps/v1'"))
        self.assertEqual(
            self.request_error("POST", KITES, self.kite()),
            (
                500,
                "InternalError",
                "Internal error occurred: failed to convert object: apps/v1, Kind=Kite is unstructured and is not"
                ' suitable for converting to "example.com/v1"',
            ),
        )

    def test_kind(self) -> None:
        """A policy cannot change the kind of an object."""
        self.mutate(("add", "/kind", "'Odd'"))
        message = 'Odd.example.com "k" is invalid: kind: Invalid value: "Odd": must be Kite'
        self.assertEqual(self.request_error("POST", KITES, self.kite()), (422, "Invalid", message))

    def test_status(self) -> None:
        """A write of the status keeps the object's name, also if a mutation changes it."""
        self.send_request("POST", KITES, self.kite())
        self.mutate(("add", "/metadata/name", "'b'"), ("add", "/metadata/uid", "'b'"))
        body = {"metadata": {"annotations": {"a": "b"}}}
        made = self.send_request("PATCH", f"{KITES}/k/status", body, **{"content-type": MERGE})
        self.assertEqual(made["metadata"]["name"], "k")

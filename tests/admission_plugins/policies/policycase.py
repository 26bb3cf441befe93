"""Test cases with policies."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.policies.plugins import MutatingAdmissionPolicy, ValidatingAdmissionPolicy
from tests.resources.server import Server, configured, definitions

GROUP = "/apis/admissionregistration.k8s.io/v1"


MAPS = "/api/v1/namespaces/default/configmaps"


SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"


def rule(*resources: str, **fields: Any) -> dict[str, Any]:
    """Return a rule for the creation and update of resources."""
    return {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "resources": [*resources],
        **fields,
    }


class PolicyTestCase(SynchronousTestCase):
    """A test case with validating policies."""

    def setUp(self) -> None:
        """Create a server with both plugins."""
        self.server = Server(
            "configmaps",
            "namespaces",
            "pods",
            "secrets",
            "subjectaccessreviews",
            "horizontalpodautoscalers",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            admission=configured(MutatingAdmissionPolicy, ValidatingAdmissionPolicy),
            types=definitions(),
        )
        self.client = self.server.client()
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "default", "labels": {"team": "a"}}})

    def send_request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the body of a successful response."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer

    def request_error(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, str]:
        """Return the code, reason and message of an error."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertGreaterEqual(code, 400, answer)
        return code, answer["reason"], answer["message"]

    def policy(self, kind: str = "validating", name: str = "p", binding: Any = (), **spec: Any) -> None:
        """Create a policy and, unless C{binding} is L{None}, its binding."""
        spec.setdefault("matchConstraints", {"resourceRules": [rule("configmaps")]})
        if kind == "mutating":
            spec.setdefault("reinvocationPolicy", "Never")
        self.send_request("POST", f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": name}, "spec": spec})
        if binding is not None:
            self.bind(kind, name, **dict(binding))

    def bind(self, kind: str = "validating", name: str = "p", **spec: Any) -> None:
        """Create a binding of a policy."""
        if kind == "validating":
            spec.setdefault("validationActions", ["Deny"])
        body = {"metadata": {"name": spec.pop("called", f"{name}-b")}, "spec": {"policyName": name, **spec}}
        self.send_request("POST", f"{GROUP}/{kind}admissionpolicybindings", body)

    def create(self, name: str = "m", data: Any = None, **meta: Any) -> Any:
        """Create a ConfigMap."""
        return self.send_request("POST", MAPS, {"metadata": {"name": name, **meta}, "data": data or {}})


class MutatingTestCase(PolicyTestCase):
    """A test case with mutating policies."""

    def mutate(self, *mutations: dict[str, Any], **spec: Any) -> None:
        """Create a policy with these mutations."""
        self.policy("mutating", mutations=[*mutations], **spec)

    def apply(self, expression: str) -> dict[str, Any]:
        """Return a mutation with an apply configuration."""
        return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}

    def patch(self, expression: str) -> dict[str, Any]:
        """Return a mutation with a JSON patch."""
        return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}

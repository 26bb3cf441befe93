"""A server with nodes and pods, and test cases of the node authorizer."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.authorization.node import NodeAuthorizer
from kubetwist.registry.core.node.graph import NodeGraph
from tests.resources.server import Server

PODS = "/api/v1/namespaces/default/pods"


VOLUMES = "/api/v1/persistentvolumes"


def node_user(name: str, *groups: str) -> UserInfo:
    """Return the user of a kubelet."""
    return UserInfo(f"system:node:{name}", groups=groups or ("system:nodes", "system:authenticated"))


def pod_on(node: str, name: str = "p", **spec: Any) -> JSONObject:
    """Return a pod on a node; C{meta} is added to its metadata."""
    meta = spec.pop("meta", {})
    container = {"name": "main", "image": "example.org/main:1", **spec.pop("container", {})}
    return {
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": {"nodeName": node, "containers": [container], **spec},
    }


def volume(name: str, claim: str = "", **source: Any) -> JSONObject:
    """Return a persistent volume, optionally bound to a claim of the namespace default."""
    spec: JSONObject = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        **(source or {"hostPath": {"path": "/x"}}),
    }
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "kind": "PersistentVolumeClaim"}
    return {"metadata": {"name": name}, "spec": spec}


class NodeServer(Server):
    """A server with objects that pods refer to, and the node authorizer over its stores."""

    def __init__(self) -> None:
        super().__init__("pods", "persistentvolumes", "volumeattachments", "resourceslices", "podcertificaterequests")
        self.graph = NodeGraph(self.stores, self.clock)
        self.node = NodeAuthorizer(self.graph)

    def make(self, path: str, obj: JSONObject) -> JSONObject:
        """Create an object."""
        code, answer = self.client().ask("POST", path, obj)
        assert code == 201, answer
        return answer  # type: ignore[no-any-return]

    def decide(self, verb: str, resource: str, name: str = "", *, node: str = "one", **fields: Any) -> Verdict:
        """Return the verdict for a kubelet; the default namespace is default."""
        group, _slash, resource = resource.rpartition("/")
        fields.setdefault("namespace", "default")
        verdict = self.node.authorize(
            AuthorizerAttributes(node_user(node), verb, group=group, resource=resource, name=name, **fields)
        )
        if isinstance(verdict, Deferred):
            result: list[Verdict] = []
            verdict.addBoth(result.append)
            while not result:
                self.clock.advance(0)
            (verdict,) = result
        return verdict

    def allows(self, *attributes: Any, **fields: Any) -> bool:
        """Return whether a request is allowed."""
        return self.decide(*attributes, **fields).decision is Decision.ALLOW


class NodeTestCase(SynchronousTestCase):
    """A test case with such a server."""

    def setUp(self) -> None:
        """Create a server without pods."""
        self.server = NodeServer()

    def assert_reason(self, verdict: Verdict, reason: str) -> None:
        """Assert that the authorizer has no opinion for this reason."""
        self.assertEqual(verdict, Verdict(Decision.NO_OPINION, reason))

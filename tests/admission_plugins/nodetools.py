"""Writes of kubelets, and a test case of L{NodeRestriction}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, ensureDeferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.noderestriction import NodeRestriction
from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject, UserInfo

KUBELET = UserInfo("system:node:one", groups=("system:nodes",))


class Cluster:
    """
    A fake context of the plugin, with an authorizer that allows requests for C{allowed}, a set of resources.

    @ivar requests: The attributes of all calls of the authorizer.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], JSONObject] = {}
        self.requests: list[AuthorizerAttributes] = []
        self.allowed: set[str] = set()
        self.authorizer = self
        self.add("nodes", "one", uid="node-uid")
        self.add("pods", "mine", uid="pod-uid", nodeName="one", serviceAccountName="robot")
        self.add("pods", "theirs", uid="other-uid", nodeName="two", serviceAccountName="robot")
        self.add("serviceaccounts", "robot", uid="account-uid")

    def add(self, resource: str, name: str, uid: str = "", **spec: Any) -> JSONObject:
        """Add an object."""
        obj = {"metadata": {"name": name, "namespace": "ns", "uid": uid or name}, "spec": spec}
        self.objects[resource, name] = obj
        return obj

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """As L{kubetwist.api.admission.AdmissionContext}."""
        return self.objects.get((resource, name))

    def authorize(self, request_attributes: AuthorizerAttributes) -> Deferred[Verdict]:
        """As L{kubetwist.interfaces.IAuthorizer}."""
        self.requests.append(request_attributes)
        allowed = request_attributes.resource in self.allowed
        return succeed(Verdict(Decision.ALLOW if allowed else Decision.NO_OPINION))


class NodeRestrictionTestCase(SynchronousTestCase):
    """A test case of the plugin."""

    def setUp(self) -> None:
        """Create a small cluster."""
        self.cluster = Cluster()
        self.plugin = NodeRestriction()

    def rejection(
        self,
        operation: str,
        resource: str,
        obj: JSONObject | None = None,
        old: JSONObject | None = None,
        *,
        name: str = "",
        user: UserInfo = KUBELET,
        namespace: str = "ns",
    ) -> str:
        """
        Return the message of the rejection without its prefix; C{""} if the write is admitted.

        @param resource: The resource, optionally with subresource and group: C{"leases.coordination.k8s.io"}.
        """
        resource, _, subresource = resource.partition("/")
        resource, _, group = resource.partition(".")
        shown = name or ((obj or old or {}).get("metadata") or {}).get("name", "")
        attributes = AdmissionAttributes(
            operation,
            group,
            "v1",
            resource,
            subresource,
            "",
            namespace,
            shown,
            obj,
            old,
            user,
            False,
            self.cluster,  # type: ignore[arg-type]
        )

        async def admit() -> None:
            waits = self.plugin.admit(attributes)
            if waits is not None:
                await waits

        answer = ensureDeferred(admit())
        failed: list[Any] = []
        answer.addErrback(failed.append)
        if not failed:
            return ""
        failed[0].trap(APIStatusError)
        error = failed[0].value
        text = error.message.partition(" is forbidden: ")[2] if error.code == 403 else f"{error.code} {error.message}"
        self.assertTrue(text)
        return text  # type: ignore[no-any-return]

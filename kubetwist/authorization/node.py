"""
What kubelets may do: read what the pods on their node need, report on their node and its pods, and little more.

Whose pods need what is known to L{kubetwist.registry.core.node.graph}. What a request writes is not looked at here:
that is what the admission plugin C{NodeRestriction} is for.

@see: kubernetes, C{plugin/pkg/auth/authorizer/node/node_authorizer.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import define, field

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.rbacrules import RoleRules
from ..api.resource import (
    JSONObject,
    UserInfo,
)
from ..api.users import node_of
from ..interfaces import (
    IAuthorizer,
    IRuleExplainer,
    IRuleResolver,
)
from ..registry.core.node.graph import NodeGraph
from ..registry.rbac.bootstrap.roles import CLUSTER_ROLES

if TYPE_CHECKING:
    from ._context import AuthorizationContext

LEASES_NAMESPACE: Final = "kube-node-lease"

_ALLOW: Final = Verdict(Decision.ALLOW)
_SILENCE: Final = Verdict(Decision.NO_OPINION)
_OWN_VERBS: Final = frozenset(("get", "create", "update", "patch", "delete"))

#: A decision about a kind of its own: what is asked, and the node that asks.
_Judge = Callable[["NodeAuthorizer", AuthorizerAttributes, str], Any]


def _no(reason: str) -> Verdict:
    return Verdict(Decision.NO_OPINION, reason)


@implementer(IAuthorizer, IRuleResolver, IRuleExplainer)
@define(eq=False)
class NodeAuthorizer:
    """Allows kubelets what they need for their own node; holds no opinion about the rest, nor about anyone else."""

    name: ClassVar[str] = "Node"
    graph: NodeGraph
    _certificates: bool = False
    _rules: RoleRules = field(factory=lambda: RoleRules(CLUSTER_ROLES["system:node"]), init=False)

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """See L{IAuthorizer.authorize}."""
        node = node_of(attributes.user)
        if node is None:
            return _SILENCE
        if not node:
            return _no(f"unknown node for user {quoted(attributes.user.name)}")
        if attributes.is_resource_request:
            judge = _JUDGES.get((attributes.group, attributes.resource))
            if judge is not None:
                return judge(self, attributes, node)  # type: ignore[no-any-return]
        return _ALLOW if self._rules.allow(attributes) else _SILENCE

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}; what a node may do depends on objects, which is not told."""
        status: JSONObject = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
        if node_of(user) is not None:
            status["incomplete"] = True
            status["evaluationError"] = "node authorizer does not support user rule resolution"
        return status

    def explain(self, attributes: AuthorizerAttributes) -> JSONObject | None:
        """See L{IRuleExplainer.explain}: the pod that leads the node to an object, where one does."""
        node = node_of(attributes.user)
        for pod, where in self._pods_for(attributes):
            if where == node:
                return {"pod": pod, "node": node}
        return None

    def near_misses(self, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """See L{IRuleExplainer.near_misses}: pods that need it on other nodes."""
        node = node_of(attributes.user)
        if not node:
            return
        for pod, where in self._pods_for(attributes):
            if where == node:
                may_not = f"that does not let the node {attributes.verb} it"
                why = f"the pod {quoted(pod)} on the node refers to it, but {may_not}"
                yield 1, {"why": why, "missing": "verb", "pod": pod, "node": where}
            else:
                why = f"the pod {quoted(pod)} refers to it, but is on the node {quoted(where)}"
                yield 2, {"why": why, "missing": "node", "pod": pod, "node": where}

    def _pods_for(self, asked: AuthorizerAttributes) -> Iterator[tuple[str, str]]:
        if asked.is_resource_request and asked.name and _JUDGES.get((asked.group, asked.resource)) in _BY_PODS:
            yield from self.graph.pods_that_need(asked.resource, asked.namespace, asked.name)

    # --- by what an object has to do with the node

    def _related(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        """Whether the node needs the object."""
        if not asked.name:
            return _no("No Object name found")
        return self._known(asked, node)

    def _known(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        waiting = self.graph.ready()
        if waiting is not None:
            return waiting.addCallback(lambda _: self._known(asked, node))
        if self.graph.needs(node, asked.resource, asked.namespace, asked.name):
            return _ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    # --- by resource

    def _readable(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        """Secrets and config maps, which are also watched one by one."""
        if asked.verb not in ("get", "list", "watch"):
            return _no("can only read resources of this type")
        if asked.subresource:
            return _no("cannot read subresource")
        if not asked.namespace:
            return _no("can only read namespaced object of this type")
        return self._related(asked, node)

    def _gettable(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.verb != "get":
            return _no("can only get individual resources of this type")
        if asked.subresource:
            return _no("cannot get subresource")
        return self._related(asked, node)

    def _claims(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.subresource != "status":
            return self._gettable(asked, node)
        if asked.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._related(asked, node)

    def _accounts(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.verb == "get" and not asked.subresource:
            return self._readable(asked, node)
        if asked.verb != "create" or not asked.name:
            return _no("can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._known(asked, node)

    def _leases(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a node lease")
        if asked.namespace != LEASES_NAMESPACE:
            return _no(f"can only access leases in the {quoted(LEASES_NAMESPACE)} system namespace")
        # The name of what is created is in its body.
        if asked.verb != "create" and asked.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _csi_nodes(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a CSINode")
        if asked.subresource:
            return _no("cannot authorize CSINode subresources")
        if asked.verb != "create" and asked.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _slices(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if asked.verb == "create":
            return _ALLOW
        if asked.verb in ("get", "update", "patch", "delete"):
            return self._related(asked, node)
        if asked.verb not in ("watch", "list", "deletecollection"):
            return _no(
                "only the following verbs are allowed for a ResourceSlice:"
                " get, watch, list, create, update, patch, delete, deletecollection"
            )
        if _selects(asked, node):
            return _ALLOW
        return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")

    def _nodes(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if asked.subresource == "status" and asked.verb in ("update", "patch"):
            return _ALLOW
        if asked.subresource:
            return _SILENCE
        if asked.verb in ("create", "update", "patch"):
            return _ALLOW
        if asked.verb not in ("get", "list", "watch"):
            return _SILENCE
        if asked.name == node:
            return _ALLOW
        if not asked.name:
            return _no(f"node '{node}' cannot read all nodes, only its own Node object")
        return _no(f"node '{node}' cannot read '{asked.name}', only its own Node object")

    def _pods(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        asks = (asked.subresource, asked.verb)
        if asks in _POD_WRITES:
            return _ALLOW
        if asks == ("", "get"):
            return self._gettable(asked, node)
        if asks not in (("", "list"), ("", "watch")):
            return _SILENCE
        if _selects(asked, node):
            return _ALLOW
        if asked.name:
            return self._related(asked, node)
        return _no("can only list/watch pods with spec.nodeName field selector")

    def _pod_certificates(self, asked: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if not self._certificates:
            return _SILENCE
        if asked.subresource:
            return _no("nodes may not access the status subresource of PodCertificateRequests")
        if asked.verb == "create":
            return _ALLOW
        if asked.verb == "get":
            return self._related(asked, node)
        if asked.verb not in ("list", "watch"):
            return _no(f"nodes may not {asked.verb} podcertificaterequests")
        if _selects(asked, node):
            return _ALLOW
        return _no("can only list/watch podcertificaterequests with nodeName field selector")


#: What a kubelet does to pods: mirror those that it runs from files, report, evict.
_POD_WRITES: Final = frozenset(
    (("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create"))
)

_JUDGES: Final[Mapping[tuple[str, str], _Judge]] = {
    ("", "secrets"): NodeAuthorizer._readable,
    ("", "configmaps"): NodeAuthorizer._readable,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claims,
    ("", "persistentvolumes"): NodeAuthorizer._gettable,
    ("", "serviceaccounts"): NodeAuthorizer._accounts,
    ("", "nodes"): NodeAuthorizer._nodes,
    ("", "pods"): NodeAuthorizer._pods,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._gettable,
    ("resource.k8s.io", "resourceslices"): NodeAuthorizer._slices,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._gettable,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csi_nodes,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._leases,
    ("certificates.k8s.io", "podcertificaterequests"): NodeAuthorizer._pod_certificates,
}


#: Kinds that pods lead to.
_BY_PODS: Final = (NodeAuthorizer._readable, NodeAuthorizer._claims, NodeAuthorizer._gettable, NodeAuthorizer._accounts)


def _selects(asked: AuthorizerAttributes, node: str) -> bool:
    """Whether a list or watch is one of what is on the node alone."""
    return ("spec.nodeName", node, True) in asked.field_terms


def make(options: FlagValues, server: AuthorizationContext) -> NodeAuthorizer:
    """Return the authorizer of nodes."""
    return NodeAuthorizer(
        NodeGraph(server.stores, server.reactor),
        bool(options["feature-gates"].get("PodCertificateRequest", False)),
    )

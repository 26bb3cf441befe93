"""
The node authorizer: kubelets may read the objects that pods on their node need, and write their node and its pods.

L{kubetwist.registry.core.node.graph} maps objects to nodes. The content of writes is checked by the admission plugin
C{NodeRestriction}.

@see: kubernetes, C{plugin/pkg/auth/authorizer/node/node_authorizer.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import define, field

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ..api.authorization import (
    AuthorizerAttributes,
    Decision,
    Verdict,
)
from ..api.featuregates import FeatureGates
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
from ..registry.rbac.bootstrap.rules import rules_of

if TYPE_CHECKING:
    from ._context import AuthorizationContext

LEASES_NAMESPACE: Final = "kube-node-lease"

_ALLOW: Final = Verdict(Decision.ALLOW)
_NO_OPINION: Final = Verdict(Decision.NO_OPINION)
_OWN_VERBS: Final = frozenset(("get", "create", "update", "patch", "delete"))

#: Authorizes requests for one resource, by attributes and node name.
_AuthorizeResource = Callable[["NodeAuthorizer", AuthorizerAttributes, str], "Verdict | Deferred[Verdict]"]


def _no(reason: str) -> Verdict:
    return Verdict(Decision.NO_OPINION, reason)


@implementer(IAuthorizer, IRuleResolver, IRuleExplainer)
@define(eq=False)
class NodeAuthorizer:
    """Allows kubelets requests for the objects of their node; has no opinion about other requests and users."""

    name: ClassVar[str] = "Node"
    graph: NodeGraph
    _features: FeatureGates = field(factory=FeatureGates)
    _authorizers: Mapping[tuple[str, str], _AuthorizeResource] = field(init=False)
    _rules: RoleRules = field(init=False)

    @_authorizers.default
    def _authorizers_of_release(self) -> Mapping[tuple[str, str], _AuthorizeResource]:
        return _authorizers_for(self._features)

    @_rules.default
    def _rules_of_release(self) -> RoleRules:
        return RoleRules(rules_of(CLUSTER_ROLES["system:node"], self._features))

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """See L{IAuthorizer.authorize}."""
        node = node_of(attributes.user)
        if node is None:
            return _NO_OPINION
        if not node:
            return _no(f"unknown node for user {quoted(attributes.user.name)}")
        if attributes.is_resource_request:
            authorize_resource = self._authorizers.get((attributes.group, attributes.resource))
            if authorize_resource is not None:
                return authorize_resource(self, attributes, node)
        return _ALLOW if self._rules.allow(attributes) else _NO_OPINION

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """See L{IRuleResolver.rules_for}; always incomplete, as the permissions of a node depend on its pods."""
        status: JSONObject = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
        if node_of(user) is not None:
            status["incomplete"] = True
            status["evaluationError"] = "node authorizer does not support user rule resolution"
        return status

    def explain(self, attributes: AuthorizerAttributes) -> JSONObject | None:
        """See L{IRuleExplainer.explain}: the pod on the node that refers to the object."""
        node = node_of(attributes.user)
        for pod, node_of_pod in self._pods_for(attributes):
            if node_of_pod == node:
                return {"pod": pod, "node": node}
        return None

    def near_misses(self, attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """See L{IRuleExplainer.near_misses}: pods on other nodes that refer to the object."""
        node = node_of(attributes.user)
        if not node:
            return
        for pod, node_of_pod in self._pods_for(attributes):
            if node_of_pod == node:
                denied = f"that does not let the node {attributes.verb} it"
                why = f"the pod {quoted(pod)} on the node refers to it, but {denied}"
                yield 1, {"why": why, "missing": "verb", "pod": pod, "node": node_of_pod}
            else:
                why = f"the pod {quoted(pod)} refers to it, but is on the node {quoted(node_of_pod)}"
                yield 2, {"why": why, "missing": "node", "pod": pod, "node": node_of_pod}

    def _pods_for(self, attributes: AuthorizerAttributes) -> Iterator[tuple[str, str]]:
        if (
            attributes.is_resource_request
            and attributes.name
            and self._authorizers.get((attributes.group, attributes.resource)) in _BY_PODS
        ):
            yield from self.graph.pods_that_need(attributes.resource, attributes.namespace, attributes.name)

    # --- by relationship of the object to the node

    def _authorize_related(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        """Allow if a pod on the node refers to the object."""
        if not attributes.name:
            return _no("No Object name found")
        return self._authorize_when_ready(attributes, node)

    def _authorize_when_ready(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        waiting = self.graph.ready()
        if waiting is not None:
            return waiting.addCallback(lambda _: self._authorize_when_ready(attributes, node))
        if self.graph.needs(node, attributes.resource, attributes.namespace, attributes.name):
            return _ALLOW
        return _no(f"no relationship found between node '{node}' and this object")

    # --- by resource

    def _authorize_read_namespaced_object(
        self, attributes: AuthorizerAttributes, node: str
    ) -> Verdict | Deferred[Verdict]:
        """Authorize reads of Secrets and ConfigMaps, including single-object list and watch."""
        if attributes.verb not in ("get", "list", "watch"):
            return _no("can only read resources of this type")
        if attributes.subresource:
            return _no("cannot read subresource")
        if not attributes.namespace:
            return _no("can only read namespaced object of this type")
        return self._authorize_related(attributes, node)

    def _authorize_get(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.verb != "get":
            return _no("can only get individual resources of this type")
        if attributes.subresource:
            return _no("cannot get subresource")
        return self._authorize_related(attributes, node)

    def _authorize_pvc(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.subresource != "status":
            return self._authorize_get(attributes, node)
        if attributes.verb not in ("update", "patch"):
            return _no("can only get/update/patch this type")
        return self._authorize_related(attributes, node)

    def _authorize_service_account(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.verb == "get" and not attributes.subresource:
            return self._authorize_read_namespaced_object(attributes, node)
        return self._authorize_token(attributes, node)

    def _authorize_service_account_without_get(
        self, attributes: AuthorizerAttributes, node: str
    ) -> Verdict | Deferred[Verdict]:
        if attributes.verb == "get" and not attributes.subresource:
            return _no("not allowed to get service accounts")
        return self._authorize_token(attributes, node)

    def _authorize_token(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.verb != "create" or not attributes.name:
            return _no("can only create tokens for individual service accounts")
        if attributes.subresource != "token":
            return _no("can only create token subresource of serviceaccount")
        return self._authorize_when_ready(attributes, node)

    def _authorize_lease(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a node lease")
        if attributes.namespace != LEASES_NAMESPACE:
            return _no(f"can only access leases in the {quoted(LEASES_NAMESPACE)} system namespace")
        # A create request has the name in its body.
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access node lease with the same name as the requesting node")
        return _ALLOW

    def _authorize_csi_node(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.verb not in _OWN_VERBS:
            return _no("can only get, create, update, patch, or delete a CSINode")
        if attributes.subresource:
            return _no("cannot authorize CSINode subresources")
        if attributes.verb != "create" and attributes.name != node:
            return _no("can only access CSINode with the same name as the requesting node")
        return _ALLOW

    def _authorize_resource_slice(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        return self._authorize_slice(attributes, node, _selects(attributes, node))

    def _authorize_any_resource_slice(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        """Authorize lists of all slices, as without AuthorizeNodeWithSelectors."""
        return self._authorize_slice(attributes, node, True)

    def _authorize_slice(
        self, attributes: AuthorizerAttributes, node: str, may_list: bool
    ) -> Verdict | Deferred[Verdict]:
        if attributes.subresource:
            return _no("cannot authorize ResourceSlice subresources")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb in ("get", "update", "patch", "delete"):
            return self._authorize_related(attributes, node)
        if attributes.verb not in ("watch", "list", "deletecollection"):
            return _no(
                "only the following verbs are allowed for a ResourceSlice:"
                " get, watch, list, create, update, patch, delete, deletecollection"
            )
        if may_list:
            return _ALLOW
        return _no("can only list/watch/deletecollection resourceslices with nodeName field selector")

    def _authorize_node(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        if attributes.subresource == "status" and attributes.verb in ("update", "patch"):
            return _ALLOW
        if attributes.subresource:
            return _NO_OPINION
        if attributes.verb in ("create", "update", "patch"):
            return _ALLOW
        if attributes.verb not in ("get", "list", "watch"):
            return _NO_OPINION
        if attributes.name == node:
            return _ALLOW
        if not attributes.name:
            return _no(f"node '{node}' cannot read all nodes, only its own Node object")
        return _no(f"node '{node}' cannot read '{attributes.name}', only its own Node object")

    def _authorize_pod(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        action = (attributes.subresource, attributes.verb)
        if action in _POD_WRITES:
            return _ALLOW
        if action == ("", "get"):
            return self._authorize_get(attributes, node)
        if action not in (("", "list"), ("", "watch")):
            return _NO_OPINION
        if _selects(attributes, node):
            return _ALLOW
        if attributes.name:
            return self._authorize_related(attributes, node)
        return _no("can only list/watch pods with spec.nodeName field selector")

    def _authorize_pod_certificate_request(
        self, attributes: AuthorizerAttributes, node: str
    ) -> Verdict | Deferred[Verdict]:
        if attributes.subresource:
            return _no("nodes may not access the status subresource of PodCertificateRequests")
        if attributes.verb == "create":
            return _ALLOW
        if attributes.verb == "get":
            return self._authorize_related(attributes, node)
        if attributes.verb not in ("list", "watch"):
            return _no(f"nodes may not {attributes.verb} podcertificaterequests")
        if _selects(attributes, node):
            return _ALLOW
        return _no("can only list/watch podcertificaterequests with nodeName field selector")

    def _authorize_nothing(self, attributes: AuthorizerAttributes, node: str) -> Verdict | Deferred[Verdict]:
        return _NO_OPINION


#: Writes to pods: mirror pods, status, eviction.
_POD_WRITES: Final = frozenset(
    (("", "create"), ("", "delete"), ("status", "update"), ("status", "patch"), ("eviction", "create"))
)

#: The authorizers of all servers.
_AUTHORIZERS: Final[Mapping[tuple[str, str], _AuthorizeResource]] = {
    ("", "secrets"): NodeAuthorizer._authorize_read_namespaced_object,
    ("", "configmaps"): NodeAuthorizer._authorize_read_namespaced_object,
    ("", "persistentvolumeclaims"): NodeAuthorizer._authorize_pvc,
    ("", "persistentvolumes"): NodeAuthorizer._authorize_get,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._authorize_get,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._authorize_get,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._authorize_csi_node,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._authorize_lease,
}


def _authorizers_for(features: FeatureGates) -> Mapping[tuple[str, str], _AuthorizeResource]:
    """Return the authorizers of a server with C{features}, by group and resource; other resources follow the rules."""
    authorizers = dict(_AUTHORIZERS)
    certificates = features.enabled("PodCertificateRequest")
    if certificates or features.enabled("KubeletServiceAccountTokenForCredentialProviders"):
        authorizers["", "serviceaccounts"] = NodeAuthorizer._authorize_service_account
    elif features.since(1, 33):
        authorizers["", "serviceaccounts"] = NodeAuthorizer._authorize_service_account_without_get
    else:
        authorizers["", "serviceaccounts"] = NodeAuthorizer._authorize_token
    selects = features.enabled("AuthorizeNodeWithSelectors")
    slices = NodeAuthorizer._authorize_resource_slice if selects else NodeAuthorizer._authorize_any_resource_slice
    authorizers["resource.k8s.io", "resourceslices"] = slices
    if selects:
        authorizers["", "nodes"] = NodeAuthorizer._authorize_node
        authorizers["", "pods"] = NodeAuthorizer._authorize_pod
    if selects and certificates:
        requests = NodeAuthorizer._authorize_pod_certificate_request
    else:
        requests = NodeAuthorizer._authorize_nothing
    authorizers["certificates.k8s.io", "podcertificaterequests"] = requests
    return authorizers


#: Authorizers of resources that pods refer to.
_BY_PODS: Final = (
    NodeAuthorizer._authorize_read_namespaced_object,
    NodeAuthorizer._authorize_pvc,
    NodeAuthorizer._authorize_get,
    NodeAuthorizer._authorize_service_account,
    NodeAuthorizer._authorize_service_account_without_get,
    NodeAuthorizer._authorize_token,
)


def _selects(attributes: AuthorizerAttributes, node: str) -> bool:
    """Return whether a list or watch selects objects of the node by field selector."""
    return ("spec.nodeName", node, True) in attributes.field_terms


def make(options: FlagValues, server: AuthorizationContext) -> NodeAuthorizer:
    """Return the authorizer of nodes."""
    return NodeAuthorizer(NodeGraph(server.stores, server.reactor), FeatureGates.from_options(options))

"""
The objects that a server makes for itself: system namespaces, priority classes, fairness settings, its own service.

Each is made when it is missing and otherwise left alone, so every start is safe to repeat. What the objects say are
facts of kube-apiserver, which clients rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ...api import times
from ...api.errors import APIStatusError, Cause
from ...api.options import CreateOptions, UpdateOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersion, JSONObject
from .updates import UpdateRules
from .validation.fields import NO_LOOPBACK

if TYPE_CHECKING:
    from ..stores import Stores
    from .store import Store

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")

#: The manager of fields that the server itself writes, as in the reference; and of those about fairness.
SERVER: Final = "kube-apiserver"
_FAIRNESS_SERVER: Final = "api-priority-and-fairness-config-producer-v1"
#: Those who tell, by applying it, how flow schemas and ranges of services are.
FAIRNESS_TELLER: Final = "api-priority-and-fairness-config-consumer-v1"
_RANGES_STATUS_MANAGER: Final = "kubernetes-service-cidr-controller"

_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_AUTOUPDATE: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}


async def ensure(
    store: Store,
    obj: JSONObject,
    manager: str = SERVER,
    status_manager: str = SERVER,
    forgives: Callable[[Cause], bool] | None = None,
) -> None:
    """
    Create an object unless it exists, with its C{status}, which a create would drop.

    @param manager: The field manager of the object.
    @param status_manager: The field manager of the status.
    @param forgives: See L{RequestScope.forgives}.
    """
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    if store.cache.get(store.key(namespace, meta["name"])) is not None:
        return
    status = obj.get("status")
    store.strategy.default(obj)
    store.own(None, obj, "", manager)
    scope = RequestScope(namespace, forgives=forgives)
    try:
        await store.create(scope, obj, CreateOptions())
    except APIStatusError as error:
        if error.reason != "AlreadyExists":
            raise
        return
    if status is not None:
        await apply_status(store, scope, meta["name"], status, status_manager)


async def apply_status(store: Store, scope: RequestScope, name: str, status: JSONObject, manager: str) -> None:
    """Write an object's status as the parts of the server may that see to it."""
    gvk = store.gvk

    def changed(obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "a status is no object"
        applied = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {"name": name},
            "status": status,
        }
        return store.apply(obj, applied, "status", manager)

    rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
    await store.update(scope, name, changed, UpdateOptions(), rules, patching=True)


async def system_namespaces(stores: Stores) -> None:
    """The namespaces that everything else takes for granted."""
    store = stores.get("", "namespaces")
    for name in SYSTEM_NAMESPACES:
        await ensure(store, {"metadata": {"name": name}})


async def priority_classes(stores: Stores) -> None:
    """The two classes that no user may define."""
    store = stores.get("scheduling.k8s.io", "priorityclasses")
    for name, value, text in (
        (
            "system-node-critical",
            2000001000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2000000000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if "
            "necessary.",
        ),
    ):
        await ensure(store, {"metadata": {"name": name}, "value": value, "description": text})


def _level(shares: int, lendable: int, queues: int = 0, hand: int = 0) -> JSONObject:
    response: JSONObject = {"type": "Reject"}
    if queues:
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


#: The priority levels, by name.
PRIORITY_LEVELS: Final[dict[str, JSONObject]] = {
    "catch-all": _level(5, 0),
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "global-default": _level(20, 50, 128, 6),
    "leader-election": _level(10, 0, 16, 4),
    "node-high": _level(40, 25, 64, 6),
    "system": _level(30, 33, 64, 6),
    "workload-high": _level(40, 50, 128, 6),
    "workload-low": _level(100, 90, 128, 6),
}

_EVERYTHING: Final[JSONObject] = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_EVERY_PATH: Final[JSONObject] = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _group(name: str) -> JSONObject:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> JSONObject:
    return {"kind": "User", "user": {"name": name}}


_SYSTEM_ACCOUNTS: Final[JSONObject] = {
    "kind": "ServiceAccount",
    "serviceAccount": {"namespace": "kube-system", "name": "*"},
}
_ANYONE: Final = (_group("system:unauthenticated"), _group("system:authenticated"))
_LEASES: Final[JSONObject] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}


@frozen
class Flow:
    """A flow schema: whom it concerns, doing what, on which level."""

    name: str
    level: str
    precedence: int
    distinguisher: str
    subjects: Sequence[JSONObject]
    resources: Sequence[JSONObject] = (_EVERYTHING,)
    paths: Sequence[JSONObject] = (_EVERY_PATH,)

    def spec(self) -> JSONObject:
        """As an object has it."""
        rule: JSONObject = {"subjects": list(self.subjects)}
        if self.resources:
            rule["resourceRules"] = list(self.resources)
        if self.paths:
            rule["nonResourceRules"] = list(self.paths)
        spec: JSONObject = {
            "priorityLevelConfiguration": {"name": self.level},
            "matchingPrecedence": self.precedence,
            "rules": [rule],
        }
        if self.distinguisher:
            spec["distinguisherMethod"] = {"type": self.distinguisher}
        return spec


_NODES: Final[JSONObject] = {**_EVERYTHING, "apiGroups": [""], "resources": ["nodes", "nodes/status"]}
_PROBES: Final[JSONObject] = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}

FLOWS: Final = (
    Flow("catch-all", "catch-all", 10000, "ByUser", _ANYONE),
    Flow("exempt", "exempt", 1, "", [_group("system:masters")]),
    Flow("global-default", "global-default", 9900, "ByUser", _ANYONE),
    Flow("kube-controller-manager", "workload-high", 800, "ByNamespace", [_user("system:kube-controller-manager")]),
    Flow("kube-scheduler", "workload-high", 800, "ByNamespace", [_user("system:kube-scheduler")]),
    Flow("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS]),
    Flow("probes", "exempt", 2, "", _ANYONE, (), (_PROBES,)),
    Flow("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")]),
    Flow(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        [_user("system:kube-controller-manager"), _user("system:kube-scheduler"), _SYSTEM_ACCOUNTS],
        ({"verbs": ["get", "create", "update"], **_LEASES},),
        (),
    ),
    Flow(
        "system-node-high",
        "node-high",
        400,
        "ByUser",
        [_group("system:nodes")],
        (_NODES, {"verbs": ["*"], **_LEASES}),
        (),
    ),
    Flow("system-nodes", "system", 500, "ByUser", [_group("system:nodes")]),
)


async def fairness(stores: Stores) -> None:
    """Priority levels, and the flow schemas that lead to them."""
    levels = stores.get(_FLOW, "prioritylevelconfigurations")
    for name, spec in PRIORITY_LEVELS.items():
        level = {"metadata": {"name": name, "annotations": dict(_AUTOUPDATE)}, "spec": _copy(spec)}
        await ensure(levels, level, _FAIRNESS_SERVER)
    flows = stores.get(_FLOW, "flowschemas")
    for flow in FLOWS:
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{flow.level}" and it exists'
        condition = _condition("Dangling", "False", "Found", text)
        obj: JSONObject = {
            "metadata": {"name": flow.name, "annotations": dict(_AUTOUPDATE)},
            "spec": _copy(flow.spec()),
            "status": {"conditions": [condition]},
        }
        await ensure(flows, obj, _FAIRNESS_SERVER, FAIRNESS_TELLER)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(part) for part in value]
    return value


def _condition(kind: str, status: str, reason: str, message: str) -> JSONObject:
    now = times.now()
    condition = {"type": kind, "status": status, "lastTransitionTime": now, "message": message}
    return {**condition, "reason": reason} if reason else condition


async def kubernetes_service(
    stores: Stores,
    cidrs: Sequence[str],
    service_ip: str,
    address: str,
    port: int,
    public_port: int = 443,
    node_port: int = 0,
) -> None:
    """
    Return the service C{kubernetes}, by which pods find this server, and its endpoints.

    @param service_ip: The first address of the first of C{cidrs}.
    @param address: The advertised address; C{""} if a reconciler writes the endpoints.
    @param port: The port on which the server listens.
    @param node_port: The node port of the service; 0 for none.
    """
    cidr_store = stores.find("networking.k8s.io", "servicecidrs")
    if cidr_store is not None:
        text = "Kubernetes default Service CIDR is ready"
        obj: JSONObject = {
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": list(cidrs)},
            "status": {"conditions": [_condition("Ready", "True", "", text)]},
        }
        await ensure(cidr_store, obj, status_manager=_RANGES_STATUS_MANAGER)
    public: JSONObject = {"name": "https", "protocol": "TCP", "port": public_port, "targetPort": port}
    if node_port:
        public["nodePort"] = node_port
    service = {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [public],
            "clusterIP": service_ip,
            "type": "NodePort" if node_port else "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack",
        },
    }
    await ensure(stores.get("", "services"), service)
    if address:
        await ensure(stores.get("", "endpoints"), kubernetes_endpoints([address], port), forgives=is_about_loopback)
        slices = stores.find("discovery.k8s.io", "endpointslices")
        if slices is not None:
            await ensure(slices, kubernetes_slice([address], port), forgives=is_about_loopback)


def is_about_loopback(cause: Cause) -> bool:
    """Return whether the only errors are endpoints on a loopback address: a host may have no other address."""
    return NO_LOOPBACK in cause.message


def kubernetes_endpoints(addresses: Sequence[str], port: int) -> JSONObject:
    """Where the servers can be reached that are behind the service."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": address} for address in addresses], "ports": ports}],
    }


def kubernetes_slice(addresses: Sequence[str], port: int) -> JSONObject:
    """The same as a slice; all addresses are of one family."""
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in addresses[0] else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }


#: The label of APIServices that the server makes by itself.
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"


def api_service(group_version: GroupVersion, group_priority: int, version_priority: int, managed: str) -> JSONObject:
    """
    The APIService of a group-version that is served here.

    @param managed: When the server makes it: C{"onstart"}, or C{"true"} where it comes and goes.
    """
    group, version = group_version
    spec: JSONObject = {
        "version": version,
        "groupPriorityMinimum": group_priority,
        "versionPriority": version_priority,
    }
    if group:
        spec["group"] = group
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}},
        "spec": spec,
    }

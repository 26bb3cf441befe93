"""The flow schemas and priority levels that a server creates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from ...api.featuregates import FeatureGates
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..generic.bootstrap import ensure, new_condition

if TYPE_CHECKING:
    from ..stores import Stores


APF_CONFIG_PRODUCER: Final = "api-priority-and-fairness-config-producer-v1"
#: Field manager that applies the status of flow schemas and ServiceCIDRs.
APF_CONFIG_CONSUMER: Final = "api-priority-and-fairness-config-consumer-v1"
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_AUTOUPDATE: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}


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
_ENDPOINT_CONTROLLERS: Final = tuple(
    {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}
    for name in ("endpoint-controller", "endpointslicemirroring-controller")
)
_ANYONE: Final = (_group("system:unauthenticated"), _group("system:authenticated"))
_LOCKS: Final[JSONObject] = {"verbs": ["get", "create", "update"], "apiGroups": [""], "namespaces": ["*"]}
_LEASES: Final[JSONObject] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}


@frozen
class FlowSchemaSpec:
    """
    A mandatory or suggested flow schema: subjects, requests and priority level.

    @ivar when: The condition of the flow schema; see L{FeatureGates.meets}.
    """

    name: str
    level: str
    precedence: int
    distinguisher: str
    subjects: Sequence[JSONObject]
    resources: Sequence[JSONObject] = (_EVERYTHING,)
    paths: Sequence[JSONObject] = (_EVERY_PATH,)
    when: str = ""

    def spec(self) -> JSONObject:
        """Return the C{spec} of the object."""
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
FLOW_SCHEMAS: Final = (
    FlowSchemaSpec("catch-all", "catch-all", 10000, "ByUser", _ANYONE),
    FlowSchemaSpec(
        "endpoint-controller",
        "workload-high",
        150,
        "ByUser",
        [_user("system:kube-controller-manager"), *_ENDPOINT_CONTROLLERS],
        ({**_LOCKS, "resources": ["endpoints"]},),
        (),
        when="<1.34",
    ),
    FlowSchemaSpec("exempt", "exempt", 1, "", [_group("system:masters")]),
    FlowSchemaSpec("global-default", "global-default", 9900, "ByUser", _ANYONE),
    FlowSchemaSpec(
        "kube-controller-manager", "workload-high", 800, "ByNamespace", [_user("system:kube-controller-manager")]
    ),
    FlowSchemaSpec("kube-scheduler", "workload-high", 800, "ByNamespace", [_user("system:kube-scheduler")]),
    FlowSchemaSpec("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS]),
    FlowSchemaSpec("probes", "exempt", 2, "", _ANYONE, (), (_PROBES,)),
    FlowSchemaSpec("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")]),
    FlowSchemaSpec(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        [_user("system:kube-controller-manager"), _user("system:kube-scheduler"), _SYSTEM_ACCOUNTS],
        ({"verbs": ["get", "create", "update"], **_LEASES},),
        (),
    ),
    FlowSchemaSpec(
        "system-node-high",
        "node-high",
        400,
        "ByUser",
        [_group("system:nodes")],
        (_NODES, {"verbs": ["*"], **_LEASES}),
        (),
    ),
    FlowSchemaSpec("system-nodes", "system", 500, "ByUser", [_group("system:nodes")]),
    FlowSchemaSpec(
        "workload-leader-election",
        "leader-election",
        200,
        "ByUser",
        [_SYSTEM_ACCOUNTS],
        ({**_LOCKS, "resources": ["endpoints", "configmaps"]},),
        (),
        when="<1.34",
    ),
)


async def ensure_flow_control(stores: Stores, features: FeatureGates) -> None:
    """
    Create the priority levels, and the flow schemas that refer to them.

    @param stores: The stores of the server.
    @param features: Its release, which the flow schemas depend on.
    """
    levels = stores.get(_FLOW, "prioritylevelconfigurations")
    for name, spec in PRIORITY_LEVELS.items():
        level = {"metadata": {"name": name, "annotations": dict(_AUTOUPDATE)}, "spec": _copy(spec)}
        await ensure(levels, level, APF_CONFIG_PRODUCER)
    flows = stores.get(_FLOW, "flowschemas")
    for flow in FLOW_SCHEMAS:
        if not features.meets(flow.when):
            continue
        text = f'This FlowSchema references the PriorityLevelConfiguration object named "{flow.level}" and it exists'
        condition = new_condition("Dangling", "False", "Found", text)
        obj: JSONObject = {
            "metadata": {"name": flow.name, "annotations": dict(_AUTOUPDATE)},
            "spec": _copy(flow.spec()),
            "status": {"conditions": [condition]},
        }
        await ensure(flows, obj, APF_CONFIG_PRODUCER, APF_CONFIG_CONSUMER)


def _copy(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(part) for part in value]
    return value

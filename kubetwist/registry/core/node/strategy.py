"""Namespaces, Nodes, Events and ComponentStatuses: the cluster itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import Cause
from ....api.names import is_dns1123_label_problems, path_segment_problems
from ....api.objectmeta import Parts, Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..event import validation as events
from ..pod.defaults import round_up
from . import validation as cluster

#: The label by which selectors can choose a namespace by name.
NAME_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """v1 Namespace; how it ends is the store's business."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()
    delete_returns_object = True

    def name_problems(self, name: str, prefix: bool) -> Sequence[str]:
        """A namespace's name is a label in DNS."""
        return is_dns1123_label_problems(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """C{spec} and C{status} are structs in Go: always there."""
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Active"
        self._set_name_label(obj)

    def _set_name_label(self, obj: JSONObject) -> None:
        metadata = obj.setdefault("metadata", {})
        name = metadata.get("name")
        if name:
            labels = metadata.get("labels")
            if labels is None:
                labels = metadata["labels"] = {}
            labels[NAME_LABEL] = name

    def prepare_for_create(self, obj: JSONObject) -> None:
        """A new namespace is active and waits, when it is deleted, for its contents to go."""
        super().prepare_for_create(obj)
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        self._set_name_label(obj)

    def reset_status(self, obj: JSONObject) -> None:
        """Active."""
        obj["status"] = {"phase": "Active"}

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """C{spec.finalizers} belong to the finalize subresource, status to its own."""
        finalizers = (old.get("spec") or {}).get("finalizers")
        if finalizers:
            obj["spec"]["finalizers"] = finalizers
        else:
            obj["spec"].pop("finalizers", None)
        super().prepare_for_update(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Finalizers with proper names."""
        return cluster.validate_namespace(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """Nothing that could be wrong may change."""
        return ()

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """The phase follows the deletion."""
        return cluster.validate_namespace_status(obj)


class NodeStrategy(Strategy):
    """v1 Node; whoever registers a node gives it its first status."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()

    def default(self, obj: JSONObject) -> None:
        """What can be allocated is all there is, unless said otherwise."""
        obj.setdefault("spec", {})
        self._sync_cidrs(obj["spec"])
        status = obj.setdefault("status", {})
        for name in ("capacity", "allocatable"):
            round_up(status.get(name))
        if status.get("allocatable") is None and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
        status.setdefault(
            "nodeInfo",
            {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "",
                "containerRuntimeVersion": "",
                "kubeletVersion": "",
                "kubeProxyVersion": "",
                "operatingSystem": "",
                "architecture": "",
            },
        )

    @staticmethod
    def _sync_cidrs(spec: JSONObject) -> None:
        one, many = spec.get("podCIDR"), spec.get("podCIDRs")
        if one and (not many or many[0] != one):
            spec["podCIDRs"] = [one]
        elif many and not one:
            spec["podCIDR"] = many[0]

    def prepare_for_create(self, obj: JSONObject) -> None:
        """The status stays, but for what this release has given up."""
        _drop_config(obj, {})

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """What this release has given up stays only where it is."""
        super().prepare_for_update(obj, old)
        _drop_config(obj, old)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """As for the main resource."""
        super().prepare_for_status_update(obj, old)
        _drop_config(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Taints, addresses, capacities."""
        return cluster.validate_node(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """What a node is given once stays; the reference looks at the new node by itself as well."""
        return Parts(cluster.validate_node(obj), cluster.validate_node_update(obj, old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[Cause]:
        """As the main resource, but for the node by itself."""
        return cluster.validate_node_update(obj, old)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """What has no effect any more."""
        return cluster.node_warnings(obj)


def _drop_config(obj: JSONObject, old: JSONObject) -> None:
    """Kubelets are not configured by the server any more."""
    if (old.get("status") or {}).get("config") is None:
        (obj.get("status") or {}).pop("config", None)
    if (old.get("spec") or {}).get("configSource") is None:
        (obj.get("spec") or {}).pop("configSource", None)


class EventStrategy(Strategy):
    """v1 Event."""

    #: Little is asked of older ones: the kind looks at metadata no more than the registry.
    metadata_update_rules: Sequence[Rule] = ()
    checks_metadata = False
    allow_create_on_update = True

    def default(self, obj: JSONObject) -> None:
        """Structs and times in Go: always there."""
        obj.setdefault("involvedObject", {})
        obj.setdefault("source", {})
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj.setdefault(name, "")

    def name_problems(self, name: str, prefix: bool) -> Sequence[str]:
        """Whatever can be a part of a path."""
        return path_segment_problems(name, prefix)

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """The namespace fits the object that the event is about."""
        return events.validate_event(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Namespace": NamespaceStrategy(),
    "Node": NodeStrategy(),
    "Event": EventStrategy(),
    "ComponentStatus": Strategy(),
}

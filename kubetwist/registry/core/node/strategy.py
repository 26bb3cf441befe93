"""Strategy of Nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule, UpdateErrors
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import round_up
from . import validation


class NodeStrategy(Strategy):
    """v1 Node; a client that creates a node may set its status."""

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

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Taints, addresses, capacities."""
        return validation.validate_node(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """What a node is given once stays; the reference looks at the new node by itself as well."""
        return UpdateErrors(validation.validate_node(obj), validation.validate_node_update(obj, old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """As the main resource, but for the node by itself."""
        return validation.validate_node_update(obj, old)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """What has no effect any more."""
        return validation.node_warnings(obj)


def _drop_config(obj: JSONObject, old: JSONObject) -> None:
    """Kubelets are not configured by the server any more."""
    if (old.get("status") or {}).get("config") is None:
        (obj.get("status") or {}).pop("config", None)
    if (old.get("spec") or {}).get("configSource") is None:
        (obj.get("spec") or {}).pop("configSource", None)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Node": NodeStrategy(),
}

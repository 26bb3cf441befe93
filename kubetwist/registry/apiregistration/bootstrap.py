"""The APIServices that a server creates for its group versions."""

from __future__ import annotations

from typing import Final

from ...api.resource import GroupVersion, JSONObject

#: The label of APIServices that the server manages.
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"


def api_service(group_version: GroupVersion, group_priority: int, version_priority: int, managed: str) -> JSONObject:
    """
    Return the APIService of a group version that this server serves.

    @param group_version: The group version.
    @param group_priority: C{groupPriorityMinimum}.
    @param version_priority: C{versionPriority}.
    @param managed: Value of the label: C{"onstart"}, or C{"true"} for group versions that are added and removed at run
        time.
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

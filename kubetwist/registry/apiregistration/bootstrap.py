"""The APIServices that a server makes for what it serves itself."""

from __future__ import annotations

from typing import Final

from ...api.resource import GroupVersion, JSONObject

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

"""
Conditions of terminating namespaces. No I/O.

@see: kubernetes, C{pkg/controller/namespace/deletion/status_condition_utils.go}.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from attrs import Factory, define

from ...api.resource import (
    GroupResource,
    JSONObject,
)

#: Reason and message of each condition that is C{False}, by type, in the order in which they are added.
OK_CONDITIONS: Final[dict[str, tuple[str, str]]] = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@define
class ContentDeletionResult:
    """
    The result of an attempt to delete the content of a namespace.

    @ivar estimate: Seconds until the remaining pods may be deleted; 0 if unknown.
    @ivar remaining: Number of remaining objects, by resource.
    @ivar finalizers: Number of remaining objects with each finalizer, by finalizer.
    @ivar discovery: Discovery error; C{""} if all resources are known.
    @ivar failures: Errors of deletions.
    """

    estimate: int = 0
    remaining: Counter[GroupResource] = Factory(Counter)
    finalizers: Counter[str] = Factory(Counter)
    discovery: str = ""
    failures: list[str] = Factory(list)

    def problems(self) -> dict[str, tuple[str, str]]:
        """Return the reason and message of each condition that is C{True}, by type."""
        conditions = {}
        if self.discovery:
            conditions["NamespaceDeletionDiscoveryFailure"] = "DiscoveryFailed", self.discovery
        if self.failures:
            errors = ", ".join(sorted(self.failures))
            message = f"Failed to delete all resource types, {len(self.failures)} remaining: {errors}"
            conditions["NamespaceDeletionContentFailure"] = "ContentDeletionFailed", message
        if self.remaining:
            resources = sorted(
                f"{key.resource}.{key.group} has {n} resource instances" for key, n in self.remaining.items()
            )
            message = f"Some resources are remaining: {', '.join(resources)}"
            conditions["NamespaceContentRemaining"] = "SomeResourcesRemain", message
        if self.finalizers:
            finalizers = sorted(f"{name} in {number} resource instances" for name, number in self.finalizers.items())
            message = f"Some content in the namespace has finalizers remaining: {', '.join(finalizers)}"
            conditions["NamespaceFinalizersRemaining"] = "SomeFinalizersRemain", message
        return conditions


def update_conditions(namespace: JSONObject, outcome: ContentDeletionResult, now: str) -> None:
    """
    Update the conditions of a namespace after an attempt to delete its content.

    @param now: The transition time of conditions whose status changes.
    """
    problems = outcome.problems()
    conditions = namespace.setdefault("status", {}).setdefault("conditions", [])
    for type, ok in OK_CONDITIONS.items():
        status = "True" if type in problems else "False"
        reason, message = problems.get(type, ok)
        condition = next((one for one in conditions if one.get("type") == type), None)
        if condition is None:
            condition = {"type": type}
            conditions.append(condition)
        if condition.get("status") != status:
            condition["status"] = status
            condition["lastTransitionTime"] = now
        condition["reason"] = reason
        condition["message"] = message

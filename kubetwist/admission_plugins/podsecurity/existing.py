"""Checks the existing pods of a namespace against a new enforce level."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ...api.resource import JSONObject
from .levels import LevelVersion
from .standards import CheckRegistry, forbidden_reasons

#: Maximum number of pods that are checked.
NAMESPACE_MAX_PODS_TO_CHECK: Final = 3000
#: Timeout of the check, in seconds.
NAMESPACE_POD_CHECK_TIMEOUT: Final = 1.0

#: Decodes a pod: many pods are not kept decoded.
_Loader = Callable[[], JSONObject]


class ExistingPods:
    """Checks pods one by one and collects the violations."""

    def __init__(
        self, standards: CheckRegistry, recheck_existing_pods_at: LevelVersion, exempt_classes: Collection[str] = ()
    ) -> None:
        """
        @param exempt_classes: Exempt runtime classes.
        """
        self._standards = standards
        self._enforced = recheck_existing_pods_at
        self._exempt_classes = exempt_classes
        self._first: list[_Loader] = []
        self._more: list[_Loader] = []
        self._seen: set[str] = set()
        self._names: dict[str, list[str]] = {}
        self.checked = 0

    def add(self, loader: _Loader) -> None:
        """Add a pod to be checked."""
        pod = loader()
        if pod["spec"].get("runtimeClassName") in self._exempt_classes:
            return
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner.get("uid") for owner in owners if owner.get("controller")), None)
        if controller in self._seen:
            self._more.append(loader)
            return
        if controller is not None:
            self._seen.add(controller)
        self._first.append(loader)

    def prioritized(self) -> list[_Loader]:
        """Return the pods by priority: one pod of each controller first (C{prioritizePods})."""
        return self._first + self._more

    def check(self, pod: JSONObject) -> None:
        """Check a pod."""
        self.checked += 1
        annotations = pod["metadata"].get("annotations") or {}
        results = self._standards.evaluate_pod(self._enforced, annotations, pod["spec"])
        if results:
            self._names.setdefault(forbidden_reasons(results), []).append(pod["metadata"]["name"])

    def warnings(self, namespace: str, total: int) -> list[str]:
        """
        Return the warnings.

        @param namespace: The name of the namespace.
        @param total: The number of pods that should have been checked.
        """
        warnings = []
        if self.checked < total:
            warnings.append(
                f"new PodSecurity enforce level only checked against the first {self.checked} of {total} existing pods"
            )
        if self._names:
            warnings.append(
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{self._enforced}"'
            )
        return warnings + sorted(f"{_pod_names(names)}: {why}" for why, names in self._names.items())


def _pod_names(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other pod{'s' if others > 1 else ''})"

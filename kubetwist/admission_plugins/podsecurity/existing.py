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

#: Decodes a pod; only undecoded pods are kept in memory.
_Loader = Callable[[], JSONObject]


class ExistingPods:
    """Checks pods one by one and collects the violations."""

    def __init__(self, standards: CheckRegistry, enforced: LevelVersion, exempt_classes: Collection[str] = ()) -> None:
        """
        @param standards: The checks.
        @param enforced: The new enforce level.
        @param exempt_classes: Exempt runtime classes.
        """
        self._standards = standards
        self._enforced = enforced
        self._exempt_classes = exempt_classes
        #: The first pod of each controller, and pods without a controller.
        self._first_replicas: list[_Loader] = []
        self._replicas: list[_Loader] = []
        self._controllers: set[str] = set()
        #: Names of violating pods by the reasons.
        self._names: dict[str, list[str]] = {}
        self.checked = 0

    def add(self, loader: _Loader) -> None:
        """Add a pod to be checked."""
        pod = loader()
        if pod["spec"].get("runtimeClassName") in self._exempt_classes:
            return
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner.get("uid") for owner in owners if owner.get("controller")), None)
        if controller in self._controllers:
            self._replicas.append(loader)
            return
        if controller is not None:
            self._controllers.add(controller)
        self._first_replicas.append(loader)

    def prioritized(self) -> list[_Loader]:
        """Return the pods by priority: one pod of each controller first (C{prioritizePods})."""
        return self._first_replicas + self._replicas

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
        return warnings + sorted(f"{_pod_names(names)}: {reasons}" for reasons, names in self._names.items())


def _pod_names(names: list[str]) -> str:
    first, remaining = min(names), len(names) - 1
    if not remaining:
        return first
    return f"{first} (and {remaining} other pod{'s' if remaining > 1 else ''})"

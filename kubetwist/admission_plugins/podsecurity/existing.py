"""What a new level would have said of the pods that a namespace has already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ...api.resource import JSONObject
from .levels import LevelVersion
from .standards import CheckRegistry, forbidden_reasons

#: How many pods are looked at.
NAMESPACE_MAX_PODS_TO_CHECK: Final = 3000
#: For how many seconds.
NAMESPACE_POD_CHECK_TIMEOUT: Final = 1.0

#: Makes a copy of a pod: many pods are not kept decoded.
_Loader = Callable[[], JSONObject]


class ExistingPods:
    """Looks at pods one by one, and sums up what it has found."""

    def __init__(
        self, standards: CheckRegistry, recheck_existing_pods_at: LevelVersion, exempt_classes: Collection[str] = ()
    ) -> None:
        """
        @param exempt_classes: Runtime classes with which anything is allowed.
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
        """Take a pod into account."""
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
        """Those pods: first one of each controller, then the others, which are most likely the same."""
        return self._first + self._more

    def check(self, pod: JSONObject) -> None:
        """Look at a pod."""
        self.checked += 1
        annotations = pod["metadata"].get("annotations") or {}
        results = self._standards.evaluate_pod(self._enforced, annotations, pod["spec"])
        if results:
            self._names.setdefault(forbidden_reasons(results), []).append(pod["metadata"]["name"])

    def warnings(self, namespace: str, total: int) -> list[str]:
        """
        What to tell of it.

        @param total: How many pods there would have been to look at.
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

"""What a new level would have said of the pods that a namespace has already."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from ...api.resource import JSONObject
from .levels import LevelVersion
from .standards import Standards, reasons

#: How many pods are looked at.
MOST_PODS: Final = 3000
#: For how many seconds.
LONGEST: Final = 1.0

#: Makes a copy of a pod: many pods are not kept decoded.
_Loader = Callable[[], JSONObject]


class ExistingPods:
    """Looks at pods one by one, and sums up what it has found."""

    def __init__(self, standards: Standards, enforced: LevelVersion, exempt_classes: Collection[str] = ()) -> None:
        """
        @param exempt_classes: Runtime classes with which anything is allowed.
        """
        self._standards = standards
        self._enforced = enforced
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

    def by_promise(self) -> list[_Loader]:
        """Those pods: first one of each controller, then the others, which are most likely the same."""
        return self._first + self._more

    def look(self, pod: JSONObject) -> None:
        """Look at a pod."""
        self.checked += 1
        annotations = pod["metadata"].get("annotations") or {}
        found = self._standards.findings(self._enforced, annotations, pod["spec"])
        if found:
            self._names.setdefault(reasons(found), []).append(pod["metadata"]["name"])

    def warnings(self, namespace: str, total: int) -> list[str]:
        """
        What to tell of it.

        @param total: How many pods there would have been to look at.
        """
        told = []
        if self.checked < total:
            told.append(
                f"new PodSecurity enforce level only checked against the first {self.checked} of {total} existing pods"
            )
        if self._names:
            told.append(
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{self._enforced}"'
            )
        return told + sorted(f"{_some(names)}: {why}" for why, names in self._names.items())


def _some(names: list[str]) -> str:
    first, others = min(names), len(names) - 1
    if not others:
        return first
    return f"{first} (and {others} other pod{'s' if others > 1 else ''})"

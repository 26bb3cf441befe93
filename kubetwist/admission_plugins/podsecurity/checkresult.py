"""Results of checks, and the phrases shared by their messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from attrs import frozen

from ...api.podspecs import containers
from ...api.resource import JSONObject


@frozen
class CheckResult:
    """
    A violation that a check has found (C{policy.CheckResult}).

    @ivar reason: In a few words, the same for all such pods.
    @ivar detail: The violating fields and values.
    """

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


#: Given the annotations and the spec of a pod; L{None} if it has nothing against it.
PodCheck = Callable[[Mapping[str, str], JSONObject], CheckResult | None]


def plural(singular: str, several: str, number: int) -> str:
    """Return the form of a word that goes with a number."""
    return singular if number == 1 else several


def quoted_list(items: Iterable[str]) -> str:
    """Return each item in quotation marks, without escaping."""
    return ", ".join(f'"{item}"' for item in items)


def named(names: Collection[str]) -> str:
    """Return C{container "a"} or C{containers "a", "b"}."""
    return f"{plural('container', 'containers', len(names))} {quoted_list(names)}"


def setters(pod: bool, is_forbidden: Collection[str]) -> str:
    """Return the phrase for the parts of a pod that set a field: the pod itself, containers, or both."""
    parts = ["pod"] if pod else []
    if is_forbidden:
        parts.append(named(is_forbidden))
    return " and ".join(parts)


def contexts(spec: JSONObject) -> Iterable[tuple[str, JSONObject]]:
    """Return the name and the security context of every container; an empty one if it has none."""
    for container, _, _ in containers(spec):
        yield container.get("name") or "", container.get("securityContext") or {}


def pod_context(spec: JSONObject) -> JSONObject:
    """Return the security context of the pod as a whole; an empty one if it has none."""
    results: JSONObject | None = spec.get("securityContext")
    return results or {}


def bad_containers(spec: JSONObject, is_forbidden: Callable[[JSONObject], object]) -> list[str]:
    """Return the names of the containers with a forbidden security context."""
    return [name for name, context in contexts(spec) if is_forbidden(context)]


def is_windows(spec: JSONObject) -> bool:
    """Return whether a pod says that it is for Windows, where Linux' ways of confinement do not exist."""
    return bool((spec.get("os") or {}).get("name") == "windows")


def in_user_namespace(spec: JSONObject) -> bool:
    """Return whether the pod's root is an unprivileged user on the node."""
    return spec.get("hostUsers") is False

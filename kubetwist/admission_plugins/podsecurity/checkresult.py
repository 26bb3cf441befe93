"""Results of checks, and the phrases shared by their messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from attrs import frozen

from ...api.podspecs import containers
from ...api.resource import JSONObject


@frozen
class CheckResult:
    """
    The violation that a check reports (C{policy.CheckResult}).

    @ivar reason: The kind of violation, independent of the pod.
    @ivar detail: The violating fields and values.
    """

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


#: Checks a pod, given its annotations and spec; returns L{None} if the pod is allowed.
PodCheck = Callable[[Mapping[str, str], JSONObject], CheckResult | None]


def plural(singular: str, several: str, number: int) -> str:
    """Return the singular or plural of a word, depending on a number."""
    return singular if number == 1 else several


def quoted_list(items: Iterable[str]) -> str:
    """Return each item in quotation marks, without escaping."""
    return ", ".join(f'"{item}"' for item in items)


def named(names: Collection[str]) -> str:
    """Return C{container "a"} or C{containers "a", "b"}."""
    return f"{plural('container', 'containers', len(names))} {quoted_list(names)}"


def setters(pod: bool, containers: Collection[str]) -> str:
    """
    Return the phrase for the parts of a pod that set a field; C{""} for none.

    @param pod: Whether the pod itself sets the field.
    @param containers: The names of the containers that set the field.
    """
    parts = ["pod"] if pod else []
    if containers:
        parts.append(named(containers))
    return " and ".join(parts)


def contexts(spec: JSONObject) -> Iterable[tuple[str, JSONObject]]:
    """Return the name and the security context of every container; an empty one if it has none."""
    for container, _, _ in containers(spec):
        yield container.get("name") or "", container.get("securityContext") or {}


def pod_context(spec: JSONObject) -> JSONObject:
    """Return the security context of the pod itself; an empty one if it has none."""
    context: JSONObject | None = spec.get("securityContext")
    return context or {}


def bad_containers(spec: JSONObject, is_forbidden: Callable[[JSONObject], object]) -> list[str]:
    """Return the names of the containers with a forbidden security context."""
    return [name for name, context in contexts(spec) if is_forbidden(context)]


def is_windows(spec: JSONObject) -> bool:
    """Return whether a pod is for Windows, which does not have the confinement of Linux."""
    return bool((spec.get("os") or {}).get("name") == "windows")


def in_user_namespace(spec: JSONObject) -> bool:
    """Return whether the pod's root is an unprivileged user on the node."""
    return spec.get("hostUsers") is False

"""
Compiled flow schemas: match requests and return their flow distinguisher.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/rule.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from attrs import frozen

from ..api.resource import JSONObject, UserInfo

_ACCOUNT: Final = "system:serviceaccount:"
_SERVICE_ACCOUNT: Final = "ServiceAccount"


class RequestInfoLike(Protocol):
    """The attributes of L{kubetwist.http.requestinfo.RequestInfo} that rules match."""

    verb: str
    path: str
    group: str
    namespace: str
    resource: str
    subresource: str
    is_resource_request: bool


_UserTest = Callable[[UserInfo], bool]
_Test = Callable[[Any], bool]


@frozen
class _Rule:
    """One rule: subjects, and the resource and non-resource requests that it matches."""

    users: tuple[_UserTest, ...]
    resources: tuple[_Test, ...]
    paths: tuple[_Test, ...]

    def matches(self, user: UserInfo, info: RequestInfoLike) -> bool:
        if not any(test(user) for test in self.users):
            return False
        return any(test(info) for test in (self.resources if info.is_resource_request else self.paths))


@frozen
class FlowSchema:
    """
    One flow schema.

    @ivar precedence: C{matchingPrecedence}; the lowest is tried first.
    @ivar level: Name of the priority level.
    @ivar distinguisher: C{"ByUser"}, C{"ByNamespace"}, or C{""} for a single flow.
    """

    name: str
    uid: str
    precedence: int
    level: str
    distinguisher: str
    rules: tuple[_Rule, ...]

    @classmethod
    def from_object(cls, obj: JSONObject) -> FlowSchema:
        """Compile a FlowSchema object."""
        meta, spec = obj["metadata"], obj.get("spec") or {}
        return cls(
            meta["name"],
            meta.get("uid", ""),
            spec.get("matchingPrecedence") or 0,
            (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
            (spec.get("distinguisherMethod") or {}).get("type", ""),
            tuple(_rule(rule) for rule in spec.get("rules") or ()),
        )

    def matches(self, user: UserInfo, info: RequestInfoLike) -> bool:
        """Return whether one of the rules matches a request."""
        return any(rule.matches(user, info) for rule in self.rules)

    def flow(self, user: UserInfo, info: RequestInfoLike) -> str:
        """Return the flow distinguisher of a request."""
        if self.distinguisher == "ByUser":
            return user.name
        return info.namespace if self.distinguisher == "ByNamespace" else ""


def sort_by_precedence(objects: Iterable[JSONObject]) -> list[FlowSchema]:
    """Compile flow schemas, and sort them by precedence and name."""
    return sorted((FlowSchema.from_object(obj) for obj in objects), key=lambda one: (one.precedence, one.name))


def _rule(rule: JSONObject) -> _Rule:
    return _Rule(
        tuple(_subject(subject) for subject in rule.get("subjects") or ()),
        tuple(_resources(one) for one in rule.get("resourceRules") or ()),
        tuple(_paths(one) for one in rule.get("nonResourceRules") or ()),
    )


def _subject(subject: JSONObject) -> _UserTest:
    kind = subject.get("kind")
    name = str((subject.get("user") or subject.get("group") or {}).get("name", ""))
    if kind == "User":
        return _any_user if name == "*" else lambda user: user.name == name
    if kind == "Group":
        return _any_user if name == "*" else lambda user: name in user.groups
    account = subject.get("serviceAccount") or {}
    if kind != _SERVICE_ACCOUNT or not account:
        return _no_user
    prefix = f"{_ACCOUNT}{account.get('namespace', '')}:"
    if account.get("name") == "*":
        return lambda user: user.name.startswith(prefix)
    full_resource = f"{prefix}{account.get('name', '')}"
    return lambda user: user.name == full_resource


def _any_user(user: UserInfo) -> bool:
    return True


def _no_user(user: UserInfo) -> bool:
    return False


def _resources(rule: JSONObject) -> _Test:
    verbs, groups, resources = (_membership_test(rule.get(field)) for field in ("verbs", "apiGroups", "resources"))
    namespaces = _membership_test(rule.get("namespaces"))
    cluster = bool(rule.get("clusterScope"))

    def matches(info: RequestInfoLike) -> bool:
        full_resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if not (verbs(info.verb) and resources(full_resource) and groups(info.group)):
            return False
        return namespaces(info.namespace) if info.namespace else cluster

    return matches


def _paths(rule: JSONObject) -> _Test:
    verbs = _membership_test(rule.get("verbs"))
    paths = tuple(rule.get("nonResourceURLs") or ())
    everything = "*" in paths
    # A path matches everything below it, with and without a trailing star, as in the reference.
    prefixes = tuple(path.removesuffix("*").removesuffix("/") + "/" for path in paths)

    def matches(info: RequestInfoLike) -> bool:
        return verbs(info.verb) and (everything or info.path in paths or info.path.startswith(prefixes))

    return matches


def _membership_test(values: Sequence[str] | None) -> Callable[[str], bool]:
    if values and len(values) == 1 and values[0] == "*":
        return lambda value: True
    allowed = frozenset(values or ())
    return lambda value: value in allowed

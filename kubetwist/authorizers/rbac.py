"""
Role-based access control: roles grant, bindings say to whom; nothing is ever denied, only not granted.

Rules are C{rbac.authorization.k8s.io/v1}'s, read from the watch caches. Bindings are indexed by their subjects, so that
a decision looks only at those that concern the user, and decisions are remembered until any role or binding changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from attrs import define, field, frozen

from zope.interface import implementer

from ..api.authorization import AuthorizerAttributes, Decision, Verdict
from ..api.resource import JSONObject, UserInfo
from ..interfaces import IAuthorizer, IWatchSink

if TYPE_CHECKING:
    from ..registry.stores import Stores

GROUP = "rbac.authorization.k8s.io"
RESOURCES = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
#: Decisions that are remembered; all are forgotten when there are more.
REMEMBERED = 65536

Rule = Mapping[str, Any]


@frozen
class Binding:
    """
    What a binding gives.

    @ivar namespace: Where; C{""} everywhere.
    @ivar role: The key of the role in its cache.
    @ivar cluster_role: Whether that is a ClusterRole.
    """

    name: str
    namespace: str
    role: str
    cluster_role: bool


def subject_keys(user: UserInfo) -> list[tuple[str, str]]:
    """By which subjects a user can be bound."""
    return [("User", user.name), *(("Group", group) for group in user.groups)]


def bound_subjects(subjects: Iterable[JSONObject], namespace: str) -> Iterable[tuple[str, str]]:
    """The subjects of a binding, service accounts by their user names."""
    for subject in subjects:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind == "ServiceAccount":
            yield "User", f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
        else:
            yield kind, name


def allows(rule: Rule, question: AuthorizerAttributes) -> bool:
    """Whether a rule grants what is asked for."""
    verbs = rule.get("verbs") or ()
    if question.verb not in verbs and "*" not in verbs:
        return False
    if not question.is_resource_request:
        return any(path_matches(pattern, question.path) for pattern in rule.get("nonResourceURLs") or ())
    groups = rule.get("apiGroups") or ()
    if question.group not in groups and "*" not in groups:
        return False
    resources = rule.get("resources") or ()
    asked = f"{question.resource}/{question.subresource}" if question.subresource else question.resource
    of_any = f"*/{question.subresource}" if question.subresource else "*"
    if asked not in resources and "*" not in resources and of_any not in resources:
        return False
    names = rule.get("resourceNames") or ()
    return not names or question.name in names


def path_matches(pattern: str, path: str) -> bool:
    """Whether a path is meant by C{nonResourceURLs}: the same, or below one that ends in a star."""
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


@implementer(IWatchSink)
class _Forget:
    """Drops what was derived from roles and bindings when one changes."""

    def __init__(self, authorizer: RBAC) -> None:
        self._authorizer = authorizer

    def send(self, kind: str, record: Any, event: Any) -> None:
        """Something changed."""
        self._authorizer.forget()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Any) -> None:
        """The cache starts over: so do we."""
        self._authorizer.forget()
        self._authorizer.stop()


@implementer(IAuthorizer)
@define(eq=False)
class RBAC:
    """Allows what a role of the user allows; holds no opinion about the rest."""

    name: ClassVar[str] = "RBAC"
    _stores_of: Callable[[], Stores]
    _index: dict[tuple[str, str], list[Binding]] | None = field(default=None, init=False)
    _rules: dict[tuple[bool, str], list[Rule]] = field(factory=dict, init=False)
    _decisions: dict[Any, Verdict] = field(factory=dict, init=False)
    _watches: list[Any] = field(factory=list, init=False)

    @property
    def _stores(self) -> Stores:
        return self._stores_of()

    def forget(self) -> None:
        """Derive everything anew from the caches at the next question."""
        self._index = None
        self._rules.clear()
        self._decisions.clear()

    def stop(self) -> None:
        """Watch the caches no longer; the next question begins anew."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.stop()

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{IAuthorizer.authorize}."""
        user = attributes.user
        key = (
            user.name,
            user.groups,
            attributes.verb,
            attributes.group,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
            attributes.path if not attributes.is_resource_request else None,
        )
        verdict = self._decisions.get(key)
        if verdict is None:
            verdict = self._decide(attributes)
            if len(self._decisions) >= REMEMBERED:
                self._decisions.clear()
            self._decisions[key] = verdict
        return verdict

    def rules_for(self, user: UserInfo, namespace: str) -> JSONObject:
        """The rules a user has in a namespace, as the status of a C{SelfSubjectRulesReview}."""
        resources: list[Rule] = []
        paths: list[Rule] = []
        for binding in self._bindings(user):
            if binding.namespace not in ("", namespace):
                continue
            for rule in self._rules_of(binding):
                if rule.get("nonResourceURLs"):
                    if not binding.namespace:
                        paths.append({"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]})
                else:
                    names = ("verbs", "apiGroups", "resources", "resourceNames")
                    resources.append({name: rule[name] for name in names if rule.get(name)})
        return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}

    def _decide(self, question: AuthorizerAttributes) -> Verdict:
        for binding in self._bindings(question.user):
            if binding.namespace and (not question.is_resource_request or binding.namespace != question.namespace):
                continue
            if any(allows(rule, question) for rule in self._rules_of(binding)):
                kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
                return Verdict(Decision.ALLOW, f'RBAC: allowed by {kind} "{binding.name}"')
        return Verdict(Decision.NO_OPINION)

    def _bindings(self, user: UserInfo) -> Iterable[Binding]:
        if not self._watches:
            self._follow()
        if self._index is None:
            self._index = self._build()
        for key in subject_keys(user):
            yield from self._index.get(key, ())

    def _follow(self) -> None:
        sink = _Forget(self)
        for resource in RESOURCES:
            cache = self._stores.get(GROUP, resource).cache
            self._watches.append(cache.watch("", match=None, revision=cache.revision, sink=sink, initial=False))

    def _build(self) -> dict[tuple[str, str], list[Binding]]:
        index: dict[tuple[str, str], list[Binding]] = {}
        for resource in ("clusterrolebindings", "rolebindings"):
            for record in self._stores.get(GROUP, resource).cache.list().records:
                obj = orjson.loads(record.item)
                role = obj.get("roleRef") or {}
                cluster_role = role.get("kind") == "ClusterRole"
                key = role.get("name", "") if cluster_role else f"{record.namespace}/{role.get('name', '')}"
                binding = Binding(record.name, record.namespace, key, cluster_role)
                for subject in bound_subjects(obj.get("subjects") or (), record.namespace):
                    index.setdefault(subject, []).append(binding)
        return index

    def _rules_of(self, binding: Binding) -> list[Rule]:
        key = binding.cluster_role, binding.role
        rules = self._rules.get(key)
        if rules is None:
            store = self._stores.get(GROUP, "clusterroles" if binding.cluster_role else "roles")
            record = store.cache.get(binding.role)
            rules = [] if record is None else orjson.loads(record.item).get("rules") or []
            self._rules[key] = rules
        return rules


def make(options: Any, server: Any) -> RBAC:
    """Over the server's stores, which are there when the first request comes."""
    return RBAC(lambda: server.stores)

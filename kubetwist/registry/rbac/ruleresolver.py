"""
Resolution of RBAC rules: an index of roles and bindings by subject.

The index is updated by watches of the caches. The RBAC authorizer uses it, and the stores of roles and bindings use it
for the escalation check with any authorizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson
from attrs import frozen

from zope.interface import implementer

from ...api.go.quote import quoted
from ...api.rbacrules import RoleRules, Rule
from ...api.record import Record
from ...api.resource import JSONObject, UserInfo
from ...api.users import service_account_user
from ...interfaces import IWatchSink
from ...storage.errors import StorageUnavailable

if TYPE_CHECKING:
    from ...storage.cache.watchcache import WatchCache
    from ..stores import Stores

GROUP: Final = "rbac.authorization.k8s.io"
ROLES: Final = ("clusterroles", "roles")
BINDINGS: Final = ("clusterrolebindings", "rolebindings")

#: The key of a subject in the index: its kind and name, with service accounts as users, and the namespace of the
#: binding, which is C{""} for ClusterRoleBindings.
SubjectKey = tuple[str, str, str]
#: The kind of a role or binding, and its key in the cache.
_Key = tuple[str, str]


CLUSTER: Final = "ClusterRoleBinding"


@frozen(eq=False)
class Binding:
    """
    A RoleBinding or ClusterRoleBinding.

    @ivar namespace: The namespace of the binding; C{""} for a ClusterRoleBinding.
    @ivar role: The kind and name of its role.
    @ivar subjects: The subjects, as in the object.
    """

    name: str
    namespace: str
    role: tuple[str, str]
    subjects: Sequence[JSONObject]

    @property
    def role_key(self) -> _Key:
        """Return the kind of the role and its key in the cache."""
        return _role_key(self.role, self.namespace)

    def subject_keys(self) -> set[SubjectKey]:
        """Return the keys of the subjects in the index."""
        return {key for subject in self.subjects if (key := _subject_key(subject, self.namespace))}

    def matching_subject(self, user: UserInfo) -> JSONObject | None:
        """Return the first subject that matches a user; L{None} if none matches."""
        for subject in self.subjects:
            if _is_user(subject, self.namespace, user):
                return subject
        return None

    def describe_for(self, user: UserInfo) -> str:
        """Describe the binding and its first subject that matches C{user} (Go C{roleBindingDescriber})."""
        kind, name = ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else (CLUSTER, self.name)
        text = f"{kind} {quoted(name)} of {self.role[0]} {quoted(self.role[1])}"
        subject = self.matching_subject(user)
        return text if subject is None else f"{text} to {_described_subject(subject, self.namespace)}"


class RoleNotFound(Exception):
    """
    The error for a binding whose role does not exist.

    @ivar name: The name of the role.
    @ivar namespace: The namespace of the role; L{None} for a ClusterRole.
    """

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        self.name = name
        self.namespace = namespace if kind == "Role" else None
        if kind in ("Role", "ClusterRole"):
            text = f"{kind.lower()}.{GROUP} {quoted(name)} not found"
        else:
            text = f"unsupported role reference kind: {quoted(kind)}"
        super().__init__(text)


def _subject_key(subject: JSONObject, namespace: str) -> SubjectKey | None:
    """Return the index key of a subject of a binding in C{namespace}; L{None} if it matches no user."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind != "ServiceAccount":
        return kind, name, namespace
    account_namespace = subject.get("namespace") or namespace
    return ("User", service_account_user(account_namespace, name), namespace) if account_namespace else None


def _is_user(subject: JSONObject, namespace: str, user: UserInfo) -> bool:
    key = _subject_key(subject, namespace)
    if key is None:
        return False
    return key[1] == user.name if key[0] == "User" else key[0] == "Group" and key[1] in user.groups


def _described_subject(subject: JSONObject, namespace: str) -> str:
    name = subject.get("name", "")
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {quoted(name)}"


@implementer(IWatchSink)
class _ChangeSink:
    """Watch sink that passes the events of one cache to the index."""

    def __init__(self, resolver: RuleResolver, handle: Callable[[str, Record], None]) -> None:
        self._resolver = resolver
        self._handle = handle

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        self._handle(event_type, record)
        self._resolver.changed()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """Stop all watches, as the cache reloads; the next request starts them again."""
        self._resolver.stop()


class RuleResolver:
    """
    The index of roles and bindings.

    @ivar stores: The container of stores; it must contain those of roles and bindings at the first request.
    @ivar generation: Incremented by each change; results that were derived from an older generation are stale.
    """

    def __init__(self, stores: Stores) -> None:
        self.generation = 0
        self.stores = stores
        self._watches: list[Any] = []
        self._filled = False
        #: The bindings by subject, role and key: a decision evaluates each role of a subject once.
        self._bound: dict[SubjectKey, dict[_Key, dict[_Key, Binding]]] = {}
        self._bindings: dict[_Key, Binding] = {}
        self._roles: dict[_Key, RoleRules] = {}

    def sync(self) -> int:
        """
        Start the watches of the caches unless they run, and return L{generation}.

        @raise StorageUnavailable: The caches were never filled. The index stays valid while a cache is refilled later.
        """
        if not self._watches:
            self._start_watches()
        return self.generation

    async def wait_until_fresh(self, revision: int) -> None:
        """Wait until the index contains all writes up to C{revision}."""
        for cache in self._caches().values():
            if cache.revision < revision:
                await cache.wait_until_fresh_or_timeout(revision)

    def changed(self) -> None:
        """Increment L{generation} after a change."""
        self.generation += 1

    def stop(self) -> None:
        """Stop the watches; the next request starts them again."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.stop()

    def roles_of(self, user: UserInfo, namespace: str) -> Iterator[Binding]:
        """Return one binding for each role of a user: first of ClusterRoleBindings, then of a namespace."""
        for bound in self._bound_to(user, namespace):
            for bindings in bound.values():
                yield next(iter(bindings.values()))

    def bindings_of(self, user: UserInfo, namespace: str) -> list[Binding]:
        """Return the bindings with a subject that matches a user, each once, in the order of L{roles_of}."""
        unique: dict[Binding, None] = {}
        for bound in self._bound_to(user, namespace):
            for bindings in bound.values():
                unique.update(dict.fromkeys(bindings.values()))
        return list(unique)

    def bindings(self) -> list[Binding]:
        """Return all bindings."""
        self.sync()
        return list(self._bindings.values())

    def role_names(self, namespace: str) -> Iterator[tuple[tuple[str, str], str]]:
        """Return all ClusterRoles, and the Roles of a namespace, as parameters of L{role}."""
        self.sync()
        for record in self.stores.get(GROUP, "clusterroles").cache.list().records:
            yield ("ClusterRole", record.name), ""
        if namespace:
            for record in self.stores.get(GROUP, "roles").cache.list(f"{namespace}/").records:
                yield ("Role", record.name), namespace

    def role(self, role: tuple[str, str], namespace: str) -> RoleRules:
        """
        Return the rules of a role.

        @param role: The kind and name of the role.
        @param namespace: The namespace of the binding.
        @raise RoleNotFound: The role does not exist.
        """
        self.sync()
        key = _role_key(role, namespace)
        rules = self._roles.get(key)
        if rules is None:
            kind, name = role
            if kind not in ("Role", "ClusterRole"):
                raise RoleNotFound(kind, name, namespace)
            record = self.stores.get(GROUP, f"{kind.lower()}s").cache.get(key[1])
            if record is None:
                raise RoleNotFound(kind, name, namespace)
            rules = self._roles[key] = RoleRules(orjson.loads(record.item).get("rules") or ())
        return rules

    def rules_for(self, user: UserInfo, namespace: str) -> tuple[list[Rule], list[RoleNotFound]]:
        """Return all rules of a user in a namespace, or cluster-wide for C{""}, and the errors for missing roles."""
        rules: list[Rule] = []
        errors: list[RoleNotFound] = []
        for binding in self.bindings_of(user, namespace):
            try:
                rules += self.role(binding.role, binding.namespace).rules
            except RoleNotFound as error:
                errors.append(error)
        return rules, errors

    def _bound_to(self, user: UserInfo, namespace: str) -> Iterator[dict[_Key, dict[_Key, Binding]]]:
        self.sync()
        get = self._bound.get
        for binding_namespace in ("", namespace) if namespace else ("",):
            bound = get(("User", user.name, binding_namespace))
            if bound:
                yield bound
            for group in user.groups:
                bound = get(("Group", group, binding_namespace))
                if bound:
                    yield bound

    def _caches(self) -> dict[str, WatchCache]:
        return {resource: self.stores.get(GROUP, resource).cache for resource in (*ROLES, *BINDINGS)}

    def _start_watches(self) -> None:
        caches = self._caches()
        if not all(cache.ready for cache in caches.values()):
            if self._filled:
                return
            raise StorageUnavailable("the caches of roles and bindings are not filled yet")
        self._filled = True
        for derived in (self._bound, self._bindings, self._roles):
            derived.clear()
        for resource, cache in caches.items():
            bindings = resource in BINDINGS
            sink = _ChangeSink(self, self._binding_changed if bindings else self._role_changed)
            self._watches.append(cache.watch("", sink=sink, initial=bindings))
        self.changed()

    def _role_changed(self, kind: str, record: Record) -> None:
        self._roles.pop(("Role" if record.namespace else "ClusterRole", record.key), None)

    def _binding_changed(self, kind: str, record: Record) -> None:
        key = ("RoleBinding" if record.namespace else CLUSTER, record.key)
        old = self._bindings.pop(key, None)
        if old is not None:
            self._unbind(key, old)
        if kind == "DELETED":
            return
        obj = orjson.loads(record.item)
        role = obj.get("roleRef") or {}
        reference = (role.get("kind", ""), role.get("name", ""))
        binding = Binding(record.name, record.namespace, reference, obj.get("subjects") or ())
        self._bindings[key] = binding
        for subject in binding.subject_keys():
            self._bound.setdefault(subject, {}).setdefault(binding.role_key, {})[key] = binding

    def _unbind(self, key: _Key, binding: Binding) -> None:
        for subject in binding.subject_keys():
            roles = self._bound[subject]
            del roles[binding.role_key][key]
            if not roles[binding.role_key]:
                del roles[binding.role_key]
            if not roles:
                del self._bound[subject]


def _role_key(role: tuple[str, str], namespace: str) -> _Key:
    kind, name = role
    return kind, name if kind == "ClusterRole" else f"{namespace}/{name}"

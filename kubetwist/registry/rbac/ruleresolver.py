"""
Who holds which rules: roles and bindings of RBAC, indexed by whom they are bound to.

Read from the watch caches and kept up to date one object at a time. The authorizer asks it, and so do the stores of
roles and bindings, which check privilege escalation with any authorizer.
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

#: The kind and name of a subject, with service accounts as users, and the namespace it is bound in: C{""} everywhere.
Place = tuple[str, str, str]
#: The kind of a role or binding, and its key in the cache.
_Key = tuple[str, str]


CLUSTER: Final = "ClusterRoleBinding"


@frozen(eq=False)
class Binding:
    """
    One binding.

    @ivar namespace: Where it holds; C{""} everywhere.
    @ivar role: The kind and name of its role.
    @ivar subjects: As they are in the object.
    """

    name: str
    namespace: str
    role: tuple[str, str]
    subjects: Sequence[JSONObject]

    @property
    def role_key(self) -> _Key:
        """The role's kind and its key in the cache."""
        return _role_key(self.role, self.namespace)

    def places(self) -> set[Place]:
        """Where those find it whom it concerns."""
        return {place for subject in self.subjects if (place := _place(subject, self.namespace))}

    def matching_subject(self, user: UserInfo) -> JSONObject | None:
        """The first of its subjects that a user is; L{None} when it is about others."""
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
    A binding's role is not there.

    @ivar name: The role's.
    @ivar namespace: Where it would be; L{None} for a cluster role.
    """

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        self.name = name
        self.namespace = namespace if kind == "Role" else None
        if kind in ("Role", "ClusterRole"):
            text = f"{kind.lower()}.{GROUP} {quoted(name)} not found"
        else:
            text = f"unsupported role reference kind: {quoted(kind)}"
        super().__init__(text)


def _place(subject: JSONObject, namespace: str) -> Place | None:
    """Return the index key of a subject of a binding in C{namespace}; L{None} for one that matches no user."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind != "ServiceAccount":
        return kind, name, namespace
    home = subject.get("namespace") or namespace
    return ("User", service_account_user(home, name), namespace) if home else None


def _is_user(subject: JSONObject, namespace: str, user: UserInfo) -> bool:
    place = _place(subject, namespace)
    if place is None:
        return False
    return place[1] == user.name if place[0] == "User" else place[0] == "Group" and place[1] in user.groups


def _described_subject(subject: JSONObject, namespace: str) -> str:
    name = subject.get("name", "")
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {quoted(name)}"


@implementer(IWatchSink)
class _ChangeSink:
    """Passes on the changes of one cache."""

    def __init__(self, grants: RuleResolver, changed: Callable[[str, Record], None]) -> None:
        self._grants = grants
        self._changed = changed

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        self._changed(event_type, record)
        self._grants.changed()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Exception | None) -> None:
        """The cache starts over: so do we, at the next question."""
        self._grants.stop()


class RuleResolver:
    """
    What roles and bindings say at this moment.

    @ivar stores: Where roles and bindings are, from the first question on.
    @ivar generation: Grows with every change; what was derived from an older one is stale.
    """

    def __init__(self, stores: Stores) -> None:
        self.generation = 0
        self.stores = stores
        self._watches: list[Any] = []
        self._filled = False
        #: By place and role, so that a decision asks each role once however often it is bound there.
        self._bound: dict[Place, dict[_Key, dict[_Key, Binding]]] = {}
        self._bindings: dict[_Key, Binding] = {}
        self._roles: dict[_Key, RoleRules] = {}

    def current(self) -> int:
        """
        The L{generation}, for those who keep what they derive. From the first call on, the caches are followed.

        @raise StorageUnavailable: The caches were never filled. The index stays valid while a cache is refilled later.
        """
        if not self._watches:
            self._start_watches()
        return self.generation

    async def seen(self, revision: int) -> None:
        """Wait until decisions are made by all that was written up to C{revision}, if a cache is behind."""
        for cache in self._caches().values():
            if cache.revision < revision:
                await cache.seen(revision)

    def changed(self) -> None:
        """A role or binding is another."""
        self.generation += 1

    def stop(self) -> None:
        """Stop the watches; the next request starts them again."""
        watches, self._watches = self._watches, []
        for watch in watches:
            watch.stop()

    def roles_of(self, user: UserInfo, namespace: str) -> Iterator[Binding]:
        """One binding for each role that a user has: everywhere first, then in a namespace."""
        for bound in self._places_of(user, namespace):
            for bindings in bound.values():
                yield next(iter(bindings.values()))

    def bindings_of(self, user: UserInfo, namespace: str) -> list[Binding]:
        """Each binding that concerns a user, once, in the same order."""
        found: dict[Binding, None] = {}
        for bound in self._places_of(user, namespace):
            for bindings in bound.values():
                found.update(dict.fromkeys(bindings.values()))
        return list(found)

    def bindings(self) -> list[Binding]:
        """All of them, whomever they concern."""
        self.current()
        return list(self._bindings.values())

    def role_names(self, namespace: str) -> Iterator[tuple[tuple[str, str], str]]:
        """All cluster roles, and the roles of a namespace, as L{role} takes them."""
        self.current()
        for record in self.stores.get(GROUP, "clusterroles").cache.list().records:
            yield ("ClusterRole", record.name), ""
        if namespace:
            for record in self.stores.get(GROUP, "roles").cache.list(f"{namespace}/").records:
                yield ("Role", record.name), namespace

    def role(self, role: tuple[str, str], namespace: str) -> RoleRules:
        """
        The rules of a role.

        @param role: Its kind and name.
        @param namespace: That of the binding.
        @raise RoleNotFound: It is not there.
        """
        self.current()
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
        """All rules that a user holds in a namespace, C{""} for those that hold everywhere; and roles not found."""
        rules: list[Rule] = []
        errors: list[RoleNotFound] = []
        for binding in self.bindings_of(user, namespace):
            try:
                rules += self.role(binding.role, binding.namespace).rules
            except RoleNotFound as error:
                errors.append(error)
        return rules, errors

    def _places_of(self, user: UserInfo, namespace: str) -> Iterator[dict[_Key, dict[_Key, Binding]]]:
        self.current()
        get = self._bound.get
        for where in ("", namespace) if namespace else ("",):
            bound = get(("User", user.name, where))
            if bound:
                yield bound
            for group in user.groups:
                bound = get(("Group", group, where))
                if bound:
                    yield bound

    def _caches(self) -> dict[str, WatchCache]:
        return {resource: self.stores.get(GROUP, resource).cache for resource in (*ROLES, *BINDINGS)}

    def _start_watches(self) -> None:
        caches = self._caches()
        if not all(cache.ready for cache in caches.values()):
            if self._filled:
                return
            raise StorageUnavailable("roles and bindings are not there yet")
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
        for place in binding.places():
            self._bound.setdefault(place, {}).setdefault(binding.role_key, {})[key] = binding

    def _unbind(self, key: _Key, binding: Binding) -> None:
        for place in binding.places():
            roles = self._bound[place]
            del roles[binding.role_key][key]
            if not roles[binding.role_key]:
                del roles[binding.role_key]
            if not roles:
                del self._bound[place]


def _role_key(role: tuple[str, str], namespace: str) -> _Key:
    kind, name = role
    return kind, name if kind == "ClusterRole" else f"{namespace}/{name}"

"""
Controller of CustomResourceDefinitions: accepts names, establishes and serves definitions, and finalizes deleted ones.

kube-apiserver has several controllers for this. Here one controller processes the definitions one after the other, and
writes the same status updates (Go: apiextensions-apiserver, C{pkg/controller}).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import orjson
from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..api.jsontypes import JSONValue
from ..api.options import DeleteOptions, ListOptions, WriteOptions
from ..api.record import Record
from ..api.requestscope import RequestScope
from ..api.resource import GroupVersion, JSONObject
from ..interfaces import IWatchSink
from ..registry.apiextensions.apiapproval import api_approval_condition
from ..registry.apiextensions.store import CLEANUP_FINALIZER, set_crd_condition
from ..registry.apiextensions.structuralcondition import non_structural_condition
from ..registry.customresources.crd import conditions, find_crd_condition, is_crd_condition_true
from ..registry.customresources.served import ServedResource
from ..registry.generic.store import Store
from ..registry.generic.updates import UpdateRules
from ..storage.cache.watches import CacheWatch
from ..storage.cache.window import DELETED, CacheEvent

#: First and maximum delay, in seconds, of retries.
RETRY_INITIAL: Final = 0.5
RETRY_MAX: Final = 60.0

#: The field manager of status updates.
FIELD_MANAGER: Final = "kube-apiserver"
NON_STRUCTURAL: Final = "NonStructuralSchema"
#: Custom resources with the storage prefix of a built-in resource. Deleting their definitions deletes no objects.
OVERLAPPING: Final = frozenset(
    (("apiregistration.k8s.io", "apiservices"), ("apiextensions.k8s.io", "customresourcedefinitions"))
)
_NAME_LISTS: Final = ("shortNames", "categories")


class ICustomServer(Protocol):
    """Server of custom resources: L{kubetwist.resources.customresources.CustomResources}."""

    def install(self, crd: JSONObject, *, terminating: bool) -> ServedResource:
        """Serve the resource of an established definition."""

    def remove(self, name: str) -> None:
        """Stop serving the resource of a definition."""

    def served(self, name: str) -> ServedResource | None:
        """Return the served resource of a definition, or L{None}."""


@implementer(IWatchSink)
class CRDController:
    """Reconciles CustomResourceDefinitions."""

    _log = Logger()

    def __init__(self, store: Store, server: ICustomServer, reactor: IReactorTime) -> None:
        self._store = store
        self._server = server
        self._reactor = reactor
        self._watch: CacheWatch | None = None
        self._queue: dict[str, None] = {}
        self._working = False
        self._call: IDelayedCall | None = None
        self._failures: dict[str, int] = {}
        self._retries: dict[str, IDelayedCall] = {}
        self._drains: dict[str, _InstanceDrain] = {}
        #: Uid and generation of the last checked schemas, by definition.
        self._checked_schemas: dict[str, tuple[str, int]] = {}
        #: Accepted names, by group and definition.
        self._holders: dict[str, dict[str, _Names]] = {}
        #: Served group-versions of each definition.
        self._group_versions: dict[str, frozenset[GroupVersion]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._stopped = False

    # --- lifecycle

    def start(self) -> None:
        """Serve the established definitions, and start watching definitions."""
        self._watch = self._store.cache.watch("", sink=self, initial=True)

    def stop(self) -> None:
        """Stop the controller."""
        self._stopped = True
        if self._watch is not None:
            self._watch.stop()
        for call in (self._call, *self._retries.values()):
            if call is not None and call.active():
                call.cancel()
        for drain in self._drains.values():
            drain.stop()

    @property
    def idle(self) -> bool:
        """Whether no definition is waiting or being processed."""
        return not self._working and not self._queue

    def group_versions(self) -> set[GroupVersion]:
        """Return the group-versions of all definitions, whether they are established or not."""
        return {one for each in self._group_versions.values() for one in each}

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call C{changed} when the result of L{group_versions} may have changed."""
        self._listeners.append(changed)

    def _define(self, name: str, crd: JSONObject | None) -> None:
        previous = self._group_versions.get(name)
        if crd is None:
            self._group_versions.pop(name, None)
        else:
            spec = crd["spec"]
            versions = (one["name"] for one in spec["versions"] if one.get("served"))
            self._group_versions[name] = frozenset(GroupVersion(spec["group"], version) for version in versions)
        if self._group_versions.get(name) != previous:
            for listener in self._listeners:
                listener()

    # --- IWatchSink

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """Handle a changed definition: update the served resource immediately, and enqueue the definition."""
        try:
            self._changed(event_type, record)
        except Exception:
            # An invalid definition must not affect other definitions.
            self._log.failure("invalid CustomResourceDefinition: crd={name}", name=record.name)

    def _changed(self, event_type: str, record: Record) -> None:
        name = record.name
        crd: JSONObject = orjson.loads(record.item)
        group: str = crd["spec"]["group"]
        holders = self._holders.setdefault(group, {})
        self._define(name, None if event_type == DELETED else crd)
        if event_type == DELETED:
            self._remove(name)
            holders.pop(name, None)
        else:
            previous = holders.get(name)
            holders[name] = names = _Names.of(crd)
            self._serve(crd)
            self._enqueue(name)
            if previous is None or previous.all_names <= names.all_names:
                return
        # The names of the deleted definition are free now.
        for other, other_names in holders.items():
            if not other_names.all_accepted:
                self._enqueue(other)
        if not holders:
            del self._holders[group]

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Do nothing."""

    def end(self, error: Exception | None) -> None:
        """Restart the watch when the cache is ready again."""
        if self._stopped:
            return
        known = {record.name for record in self._store.cache.list().records} if self._store.cache.ready else None
        if known is None:
            self._reactor.callLater(RETRY_INITIAL, self.end, None)
            return
        self.start()

    # --- serving

    def _serve(self, crd: JSONObject) -> None:
        name: str = crd["metadata"]["name"]
        if not is_crd_condition_true(crd, "Established"):
            self._server.remove(name)
            return
        try:
            self._server.install(crd, terminating=is_crd_condition_true(crd, "Terminating"))
        except Exception:
            # An invalid definition must not prevent that other definitions are served.
            self._log.failure("cannot serve custom resource: crd={name}", name=name)

    def _remove(self, name: str) -> None:
        self._server.remove(name)
        self._queue.pop(name, None)
        self._failures.pop(name, None)
        self._checked_schemas.pop(name, None)
        drain = self._drains.pop(name, None)
        if drain is not None:
            drain.stop()

    # --- the queue

    def _enqueue(self, name: str) -> None:
        self._queue[name] = None
        if not self._working and self._call is None and not self._stopped:
            self._call = self._reactor.callLater(0, self._work)

    def _work(self) -> None:
        self._call = None
        self._working = True
        Deferred.fromCoroutine(self._process_queue()).addErrback(
            lambda failure: self._log.failure("CustomResourceDefinition controller failed", failure)
        )

    async def _process_queue(self) -> None:
        try:
            while self._queue and not self._stopped:
                name = next(iter(self._queue))
                del self._queue[name]
                try:
                    await self._sync(name)
                    self._failures.pop(name, None)
                except APIStatusError as error:
                    if error.code not in (404, 409):
                        self._log.warn(
                            "cannot sync CustomResourceDefinition: crd={name} error={error}", name=name, error=error
                        )
                        self._retry(name)
                except Exception:
                    self._log.failure("cannot sync CustomResourceDefinition: crd={name}", name=name)
                    self._retry(name)
        finally:
            self._working = False

    def _retry(self, name: str) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        delay = min(RETRY_INITIAL * 2 ** (failures - 1), RETRY_MAX)
        self._retries = {other: call for other, call in self._retries.items() if call.active()}
        if name not in self._retries and not self._stopped:
            self._retries[name] = self._reactor.callLater(delay, self._enqueue, name)

    # --- sync

    async def _sync(self, name: str) -> None:
        crd = self._store.get_copy("", name)
        if crd is None:
            return
        changed = self._sync_names(crd)
        changed = self._approval(crd) or changed
        changed = self._structure(name, crd) or changed
        changed = self._observe(crd) or changed
        if changed:
            await self._write(name, crd)
            return
        if crd["metadata"].get("deletionTimestamp"):
            if CLEANUP_FINALIZER in (crd["metadata"].get("finalizers") or ()):
                await self._finalize(name, crd)
            return
        if is_crd_condition_true(crd, "NamesAccepted") and not is_crd_condition_true(crd, "Established"):
            message = "the initial names have been accepted"
            set_crd_condition(crd, "Established", "True", "InitialNamesAccepted", message)
            await self._write(name, crd)

    async def _write(self, name: str, crd: JSONObject, *, finalizers: bool = False) -> None:
        """Write the status, and optionally the finalizers, of a definition unless it has changed since."""
        self._observe(crd)

        def change(stored: JSONObject | None) -> JSONObject:
            assert stored is not None
            if stored["metadata"]["resourceVersion"] != crd["metadata"]["resourceVersion"]:
                raise APIStatusError.modified(self._store.group_resource, name)
            stored["status"] = crd["status"]
            if finalizers:
                stored["metadata"]["finalizers"] = crd["metadata"].get("finalizers") or []
            live = self._store.get_copy("", name)
            self._store.update_managed_fields(live, stored, "status", FIELD_MANAGER)
            return stored

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        await self._store.update(RequestScope(), name, change, WriteOptions(), rules, patching=True)

    def _observe(self, crd: JSONObject) -> bool:
        """
        Set the observed generation of the status and its conditions, and return whether anything changed.

        See the feature gate C{CRDObservedGenerationTracking}.
        """
        if not self._store.strategy.features.enabled("CRDObservedGenerationTracking"):
            return False
        generation = crd["metadata"].get("generation", 0)
        status = crd.setdefault("status", {})
        behind = [one for one in (status, *conditions(crd)) if one.get("observedGeneration") != generation]
        for one in behind:
            one["observedGeneration"] = generation
        return bool(behind)

    # --- names

    def _sync_names(self, crd: JSONObject) -> bool:
        """Accept the names that are free, and return whether anything changed."""
        desired: JSONObject = crd["spec"]["names"]
        status = crd.setdefault("status", {})
        accepted: JSONObject = {name: value for name, value in (status.get("acceptedNames") or {}).items() if value}
        if _same_names(desired, accepted):
            return False
        resources: set[str] = set()
        kinds: set[str] = set()
        for holder in self._holders.get(crd["spec"]["group"], {}).values():
            resources |= holder.resources
            kinds |= holder.kinds
        names = dict(accepted)
        problem: tuple[str, str] | None = None
        for field, reason, used in (
            ("plural", "PluralConflict", resources),
            ("singular", "SingularConflict", resources),
            ("shortNames", "ShortNamesConflict", resources),
            ("kind", "KindConflict", kinds),
            ("listKind", "ListKindConflict", kinds),
        ):
            conflict = _conflict(desired.get(field), accepted.get(field), used)
            if conflict:
                problem = reason, conflict
            elif desired.get(field):
                names[field] = desired[field]
            else:
                names.pop(field, None)
        names.pop("categories", None)
        if desired.get("categories"):
            names["categories"] = desired["categories"]
        before = orjson.dumps(status, option=orjson.OPT_SORT_KEYS)
        status["acceptedNames"] = {"plural": "", "kind": "", **names}
        if problem is None:
            set_crd_condition(crd, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
        else:
            set_crd_condition(crd, "NamesAccepted", "False", *problem)
        if not is_crd_condition_true(crd, "Established"):
            if problem is None:
                message = "the initial names have been accepted"
                set_crd_condition(crd, "Established", "False", "Installing", message)
            elif find_crd_condition(crd, "Established") is None:
                set_crd_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted")
        return orjson.dumps(status, option=orjson.OPT_SORT_KEYS) != before

    def _approval(self, crd: JSONObject) -> bool:
        """Set the condition KubernetesAPIApprovalPolicyConformant for definitions in protected groups."""
        verdict = api_approval_condition(crd)
        if verdict is None:
            return False
        status, reason, message = verdict
        existing = find_crd_condition(crd, "KubernetesAPIApprovalPolicyConformant")
        if existing is not None and (existing["status"], existing.get("reason"), existing.get("message")) == verdict:
            return False
        set_crd_condition(crd, "KubernetesAPIApprovalPolicyConformant", status, reason, message)
        return True

    def _structure(self, name: str, crd: JSONObject) -> bool:
        """Set the condition NonStructuralSchema. Each generation of a definition is checked once."""
        generation = crd["metadata"].get("uid", ""), crd["metadata"].get("generation", 0)
        if self._checked_schemas.get(name) == generation:
            return False
        verdict, existing = non_structural_condition(crd), find_crd_condition(crd, NON_STRUCTURAL)
        if verdict is None and existing is not None:
            crd["status"]["conditions"] = [one for one in conditions(crd) if one is not existing]
        elif verdict is not None and (
            existing is None or (existing["status"], existing.get("reason"), existing.get("message")) != verdict
        ):
            set_crd_condition(crd, NON_STRUCTURAL, *verdict)
        else:
            self._checked_schemas[name] = generation
            return False
        return True

    # --- finalization

    async def _finalize(self, name: str, crd: JSONObject) -> None:
        """Delete all custom objects, wait until they are deleted, and remove the finalizer of the definition."""
        drain = self._drains.get(name)
        if drain is not None:
            if not drain.empty:
                return
            del self._drains[name]
            self._terminated(crd, "InstanceDeletionCompleted", "removed all instances")
            await self._write_finalizers(name, crd)
            return
        retry = self._retries.get(name)
        if retry is not None and retry.active():
            return
        message = "CustomResource deletion is in progress"
        set_crd_condition(crd, "Terminating", "True", "InstanceDeletionInProgress", message)
        await self._write(name, crd)
        served = self._server.served(name)
        if (crd["spec"]["group"], crd["spec"]["names"]["plural"]) in OVERLAPPING:
            crd = self._store.get_copy("", name) or crd
            self._terminated(crd, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
            await self._write_finalizers(name, crd)
            return
        if not is_crd_condition_true(crd, "Established") or served is None:
            crd = self._store.get_copy("", name) or crd
            self._terminated(crd, "NeverEstablished", "resource was never established")
            await self._write_finalizers(name, crd)
            return
        try:
            await self._delete_objects(served)
        except APIStatusError as error:
            crd = self._store.get_copy("", name) or crd
            message = f"could not issue all deletes: {error}"
            set_crd_condition(crd, "Terminating", "True", "InstanceDeletionFailed", message)
            await self._write(name, crd)
            self._retry(name)
            return
        self._drains[name] = _InstanceDrain(served, lambda: self._enqueue(name))
        self._enqueue(name)

    async def _delete_objects(self, served: ServedResource) -> None:
        """
        Delete all objects of a definition, namespace by namespace. Objects with finalizers remain.

        @raise APIStatusError: An object could not be deleted.
        """
        await served.start()
        errors: dict[str, None] = {}
        for namespace in sorted({record.namespace for record in served.cache.list().records}):
            try:
                await served.main.delete_collection(RequestScope(namespace), DeleteOptions(), ListOptions())
            except APIStatusError as error:
                errors[error.message] = None
        if errors:
            text = ", ".join(errors)
            raise APIStatusError.unknown(text if len(errors) == 1 else f"[{text}]")

    def _terminated(self, crd: JSONObject, reason: str, message: str) -> None:
        set_crd_condition(crd, "Terminating", "False", reason, message)
        meta = crd["metadata"]
        meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != CLEANUP_FINALIZER]

    async def _write_finalizers(self, name: str, crd: JSONObject) -> None:
        await self._write(name, crd, finalizers=True)


@frozen
class _Names:
    """
    The accepted names of a definition.

    @ivar all_accepted: Whether they are equal to the names in the spec.
    """

    resources: frozenset[str]
    kinds: frozenset[str]
    all_accepted: bool

    @property
    def all_names(self) -> frozenset[str]:
        """All names. Kinds and resources cannot collide, since their first letters differ in case."""
        return self.resources | self.kinds

    @classmethod
    def of(cls, crd: JSONObject) -> _Names:
        """Return the accepted names in the status of a definition."""
        names = (crd.get("status") or {}).get("acceptedNames") or {}
        resources = {names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())}
        kinds = {names.get("kind"), names.get("listKind")}
        all_accepted = _same_names(crd["spec"]["names"], names)
        return cls(frozenset(filter(None, resources)), frozenset(filter(None, kinds)), all_accepted)


def _same_names(desired: JSONObject, accepted: JSONObject) -> bool:
    fields = ("plural", "singular", "kind", "listKind")
    if any((desired.get(field) or "") != (accepted.get(field) or "") for field in fields):
        return False
    return all((desired.get(field) or []) == (accepted.get(field) or []) for field in _NAME_LISTS)


def _conflict(desired: JSONValue, accepted: JSONValue, used: set[str]) -> str:
    """Return the conflict of a name or list of names with used names; C{""} if there is none."""
    if isinstance(desired, list):
        current_names = set(accepted or ())
        conflicting = list(dict.fromkeys(name for name in desired if name not in current_names and name in used))
        messages = [f'"{name}" is already in use' for name in conflicting]
        return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]" if messages else ""
    if not desired or desired == accepted or desired not in used:
        return ""
    return f'"{desired}" is already in use'


@implementer(IWatchSink)
class _InstanceDrain:
    """Waits until a custom resource has no objects."""

    def __init__(self, served: ServedResource, done: Callable[[], None]) -> None:
        self._cache = served.cache
        self._done = done
        self._watch = self._cache.watch("", sink=self) if len(self._cache) else None

    @property
    def empty(self) -> bool:
        """Whether there are no objects."""
        return len(self._cache) == 0

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """Check whether the last object was deleted."""
        if self.empty:
            self.stop()
            self._done()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Do nothing."""

    def end(self, error: Exception | None) -> None:
        """Check again, as the cache was stopped or reloads."""
        self._watch = None
        self._done()

    def stop(self) -> None:
        """Stop waiting."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

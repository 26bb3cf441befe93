"""A server without connections: its stores in memory, with objects, admission and a clock that tests set."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from ..admission.chain import AdmissionChain
from ..api import times
from ..api.errors import APIStatusError
from ..api.featuregates import FeatureGates, parse_release
from ..api.jsontypes import JSONObject, JSONValue
from ..api.resource import GroupResource, GroupVersion, GroupVersionKind
from ..interfaces import IAuthorizer
from ..registry.assembly import AdmissionFactory, ResourceRegistry
from ..registry.customresources.conversion import CRConverterFactory
from ..registry.customresources.crd import CustomDefinition
from ..registry.customresources.served import ServedResource
from ..registry.generic.codec import Codec
from ..registry.generic.resourceinfo import ResourceInfo
from ..registry.generic.store import Store
from ..registry.kinds import kinds_for
from ..schema.definitions import Definitions
from ..storage.memory import MemoryStorage
from .manifests import objects_of

T = TypeVar("T")
#: The time of a new server, in POSIX seconds.
START: Final = 1_800_000_000.0
#: Seconds of the clock for which L{MemoryServer.run} waits for a result.
MAX_WAIT: Final = 3600.0
#: Maximum number of delayed calls at one time of the clock.
MAX_CALLS: Final = 2000
_CRDS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")

#: The forms in which tests pass objects: YAML text, a file or folder, or dictionaries.
Objects = str | Path | Iterable[Mapping[str, JSONValue]]


class NoResult(AssertionError):
    """Code under test waits for something other than the clock, or forever."""


@cache
def _release(name: str) -> tuple[Definitions, tuple[ResourceInfo, ...]]:
    """Return the types and the built-in resources of a release, loaded once for all tests."""
    definitions = Definitions.load(name)
    return definitions, tuple(kinds_for(definitions.gvks(), FeatureGates(parse_release(name))))


class MemoryServer:
    """
    The stores of a server in memory, without HTTP.

    Objects can be read and changed as plugins do it. Custom resources are served if their CustomResourceDefinitions
    are among the objects. Other kinds get a definition that accepts all fields, except in groups of Kubernetes.

    @ivar clock: A L{Clock}, or another reactor.
    @ivar registry: The stores and their shared components.
    @ivar definitions: The types of the release.
    """

    def __init__(
        self,
        objects: Objects = (),
        *,
        release: str = "1.36",
        clock: IReactorTime | None = None,
        authorizer: IAuthorizer | None = None,
        admission: AdmissionFactory | None = None,
        converters: Iterable[Any] | None = None,
    ) -> None:
        """
        @param objects: The stored objects: YAML, a file, or dictionaries. They pass neither admission nor validation.
        @param release: The Kubernetes release whose kinds exist.
        @param clock: L{None} for a L{Clock} that begins at L{START}, so that tests do not depend on real time.
        @param authorizer: The authorizer of further permissions that plugins ask for; L{None} allows nothing.
        @param admission: Constructs the admission chain; L{None} for one without plugins.
        @param converters: Conversion plugins to use instead of the installed ones.
        """
        if clock is None:
            clock = Clock()
            clock.advance(START)
        self.clock = clock
        self.definitions, infos = _release(release)
        self._backend = MemoryStorage(clock)
        self.registry = ResourceRegistry(
            self._backend,
            clock,
            infos,
            definitions=self.definitions,
            authorizer=authorizer,
            admission=admission or (lambda context: AdmissionChain((), context.reactor)),
        )
        self.stores = self.registry.stores
        self.context = self.registry.context
        # No outgoing connections: webhooks are not called.
        self._converter: Any = CRConverterFactory(None, clock, converters)  # type: ignore[arg-type]
        self._listeners: list[Callable[[], None]] = []
        self._objects = objects_of(objects)
        self._started = False

    # --- running

    def run(self, awaitable: Awaitable[T]) -> T:
        """
        Return the result of an awaitable. The clock is advanced to the next delayed call until there is a result.

        @raise NoResult: It does not finish within L{MAX_WAIT} seconds of the clock, or waits for something else.
        """
        clock = self.clock
        assert isinstance(clock, Clock), "the results of code on a reactor are awaited"
        results: list[T | Failure] = []
        deferred: Deferred[Any]
        with self._time():
            deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(_awaited(awaitable))
            deferred.addBoth(results.append)
            end = clock.seconds() + MAX_WAIT
            run_calls(clock, end, lambda: bool(results))
        if not results:
            deferred.addErrback(lambda failure: None)
            deferred.cancel()
            raise NoResult(
                f"there is no result after {MAX_WAIT:.0f} s of the clock"
                if clock.getDelayedCalls()
                else "the code waits for something other than the clock: await the result on a reactor"
            )
        return _result(results)

    def start(self) -> MemoryServer:
        """
        Open the storage, and store the initial objects. Idempotent.

        @raise APIStatusError: An object does not fit its type.
        """
        if not self._started:
            self._started = True
            self._finish(self._start())
        return self

    async def _start(self) -> None:
        await self._backend.open()
        await self.registry.start()
        for obj in self._objects:
            await self._add(obj, "default")

    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine that uses nothing but the stores, which never wait in memory."""
        results: list[T | Failure] = []
        with self._time():
            Deferred.fromCoroutine(coroutine).addBoth(results.append)
        assert results, "a storage in memory does not wait"
        return _result(results)

    def _time(self) -> AbstractContextManager[None]:
        """Return a context in which objects get the time of the clock."""
        return times.temporary_clock(self.clock.seconds) if isinstance(self.clock, Clock) else nullcontext()

    def stop(self) -> None:
        """Stop all watches, and close the storage."""
        for served in self.stores.custom.values():
            served.stop()
        self.registry.stop()
        self._finish(self._backend.close())

    # --- objects

    def add(self, objects: Objects, namespace: str = "default") -> list[JSONObject]:
        """
        Store objects with defaults, without admission and validation; existing ones are replaced.

        @param namespace: The namespace of objects of namespaced kinds that name none.
        @return: The stored objects.
        @raise APIStatusError: An object does not fit its type.
        """
        self.start()
        return [self._finish(self._add(obj, namespace)) for obj in objects_of(objects)]

    async def _add(self, source: Mapping[str, JSONValue], namespace: str) -> JSONObject:
        obj: JSONObject = orjson.loads(orjson.dumps(source))
        store, codec = await self._store_for(obj)
        meta = obj.setdefault("metadata", {})
        if not store.info.namespaced:
            meta.pop("namespace", None)
        else:
            meta.setdefault("namespace", namespace)
        new = codec.to_storage(decode_strictly(codec, obj))
        store.strategy.default(new)
        meta = new["metadata"]
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", times.now())
        meta.pop("resourceVersion", None)
        is_definition = (store.info.group, store.info.resource) == _CRDS
        if is_definition:
            _establish(new)
        key = store.cache_key(meta.get("namespace", ""), meta["name"])
        record = store.cache.get(key)
        await store.commit(key, await store.convert_and_encode(new), 0 if record is None else record.revision)
        stored = self._with_kind(store, store.get_copy(meta.get("namespace", ""), meta["name"]) or new)
        if is_definition:
            await self._serve(stored)
        return stored

    async def _store_for(self, obj: Mapping[str, Any]) -> tuple[Store, Codec]:
        """
        Return the store of an object in the version of its apiVersion, and the codec of that version.

        @raise ValueError: The object has no kind or apiVersion, or there is no such kind.
        """
        gvk = kind_of(obj)
        for info in self.stores.infos.values():
            if info.group == gvk.group and info.kind == gvk.kind and gvk.version in info.known_versions:
                store = self.stores.find(info.group, info.resource)
                if store is None:
                    raise ValueError(f"objects of kind {gvk.kind} are not stored")
                return store, Codec(self.definitions, gvk, info.storage_kind)
        served = await self._custom_resource(gvk, obj)
        version_store = served.store(served.definition.version(gvk.version))
        return version_store, version_store.codec

    def ensure_served(self, obj: Mapping[str, Any]) -> None:
        """
        Define the kind of an object, unless it is built-in or defined.

        @raise ValueError: The object has no kind or apiVersion, or there is no such kind in a built-in group.
        """
        gvk = kind_of(obj)
        if not self.definitions.has_kind(gvk):
            self._finish(self._custom_resource(gvk, obj))

    async def _custom_resource(self, gvk: GroupVersionKind, obj: Mapping[str, Any]) -> ServedResource:
        served = next((one for one in self.stores.custom.values() if _defines(one, gvk)), None)
        if served is None:
            served = await self._serve(_permissive_definition(gvk, bool(obj.get("metadata", {}).get("namespace"))))
        return served

    def get(self, resource: str, name: str, namespace: str = "") -> JSONObject | None:
        """
        Return a copy of a stored object, with kind and apiVersion; L{None} if it does not exist.

        @param resource: The resource as C{"pods"} or C{"deployments.apps"}.
        """
        plural, _, group = resource.partition(".")
        obj = self.stores.get_copy(group, plural, namespace, name)
        store = self.stores.find_cached(group, plural)
        return None if obj is None or store is None else self._with_kind(store, obj)

    def list(self, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return copies of the stored objects of a resource, in all namespaces or in one, as L{get} does."""
        plural, _, group = resource.partition(".")
        store = self.stores.find_cached(group, plural)
        if store is None:
            return []
        return [self._with_kind(store, obj) for obj in self.stores.list_copies(group, plural, namespace)]

    def _with_kind(self, store: Store, obj: JSONObject) -> JSONObject:
        gvk = store.gvk
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, **obj}

    # --- custom resources, as kubetwist.controllers.machinery.context.ICustomResources describes them

    async def _serve(self, crd: JSONObject) -> ServedResource:
        definition = CustomDefinition(crd, self.definitions, self._converter)
        served = ServedResource(definition, self.registry.custom_environment, self.registry.caches)
        await served.start()
        self.stores.custom[definition.name] = served
        for listener in list(self._listeners):
            listener()
        return served

    def served(self, name: str) -> ServedResource | None:
        """Return a custom resource by the name of its definition; L{None} if it is not served."""
        return self.stores.custom.get(name)

    def all_served(self) -> Collection[ServedResource]:
        """Return all custom resources."""
        return self.stores.custom.values()

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call C{changed} after each new custom resource; return a function that ends this."""
        self._listeners.append(changed)
        return partial(self._listeners.remove, changed)


def run_calls(clock: Clock, end: float, is_done: Callable[[], bool] = lambda: False) -> None:
    """
    Make the delayed calls of a clock, which is advanced from one to the next, until there is none before C{end}.

    C{Clock.advance} does not return while calls without delay follow each other.

    @param clock: The clock, which is not advanced further than to the last call.
    @param end: The time of the last calls.
    @param is_done: Returns whether to stop.
    @raise NoResult: Calls without delay follow each other endlessly.
    """
    calls = 0
    while not is_done():
        call: Any = min(clock.getDelayedCalls(), key=lambda one: one.getTime(), default=None)
        if call is None or call.getTime() > end:
            return
        calls = 0 if call.getTime() > clock.seconds() else calls + 1
        if calls > MAX_CALLS:
            raise NoResult("calls without delay follow each other endlessly")
        clock.rightNow = max(clock.seconds(), call.getTime())
        clock.calls.remove(call)
        call.called = 1
        call.func(*call.args, **call.kw)


def kind_of(obj: Mapping[str, Any]) -> GroupVersionKind:
    """
    Return the kind of an object.

    @raise ValueError: The object has no kind or apiVersion.
    """
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    for name, value in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"the object has no {name}: {orjson.dumps(obj).decode()[:200]}")
    return GroupVersionKind(*GroupVersion.parse(str(api_version)), str(kind))


def decode_strictly(codec: Codec, obj: JSONObject) -> JSONObject:
    """
    Decode an object as a request with C{fieldValidation=Strict}.

    @raise APIStatusError: The object does not fit the type of the codec, or has unknown fields (400).
    """
    problems: list[str] = []
    decoded = codec.decode(obj, problems)
    if problems:
        raise APIStatusError.bad_request(f"strict decoding error: {', '.join(problems)}")
    return decoded


def _result(results: Sequence[T | Failure]) -> T:
    """Return the result of a Deferred, or raise its exception."""
    (result,) = results
    if isinstance(result, Failure):
        result.raiseException()
    return result


def parse_object(obj: Mapping[str, JSONValue] | str) -> JSONObject:
    """
    Return a copy of one object.

    @param obj: The object, or its YAML.
    @raise ValueError: The text has no or several objects.
    """
    objects = objects_of(obj if isinstance(obj, str) else [obj])
    if len(objects) != 1:
        raise ValueError(f"there are {len(objects)} objects instead of one")
    copied: JSONObject = orjson.loads(orjson.dumps(objects[0]))
    return copied


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _defines(served: ServedResource, gvk: GroupVersionKind) -> bool:
    definition = served.definition
    return (definition.group, definition.kind) == (gvk.group, gvk.kind) and definition.find(gvk.version) is not None


def _establish(crd: JSONObject) -> None:
    """Set the status that the controller of definitions sets."""
    names = crd["spec"]["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    crd.setdefault("status", {})["acceptedNames"] = names


def plural_of(kind: str) -> str:
    """Return the usual plural of a kind (apimachinery: C{UnsafeGuessKindToResource})."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"


def _permissive_definition(gvk: GroupVersionKind, namespaced: bool) -> JSONObject:
    """Return the CustomResourceDefinition of a kind about which nothing is known."""
    if "." not in gvk.group or gvk.group.endswith(".k8s.io"):
        raise ValueError(f"there is no kind {gvk.kind} in {gvk.api_version}, and no CustomResourceDefinition of it")
    plural = plural_of(gvk.kind)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd: JSONObject = {
        "metadata": {"name": str(GroupResource(gvk.group, plural)), "uid": str(uuid.uuid4())},
        "spec": {
            "group": gvk.group,
            "names": {"kind": gvk.kind, "plural": plural},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [{"name": gvk.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    _establish(crd)
    return crd

"""A fake admission context of a few objects, and writes for admission plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import orjson
from attrs import define, field

from twisted.internet.defer import ensureDeferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.chain import AdmissionChain
from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates, parse_release
from kubetwist.api.frozen import frozen
from kubetwist.api.resource import GroupResource, JSONObject, UserInfo
from kubetwist.api.storage import Page
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage

ALICE = UserInfo("alice")


@define
class Rights:
    """
    An authorizer.

    @ivar allowed: Allowed requests: verb, resource with its subresource, and name.
    @ivar requests: The attributes of all calls.
    """

    allowed: set[tuple[str, str, str]] = field(factory=set)
    reason: str = ""
    requests: list[AuthorizerAttributes] = field(factory=list)
    name: str = "Rights"

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """See L{kubetwist.interfaces.IAuthorizer.authorize}."""
        self.requests.append(attributes)
        resource = f"{attributes.resource}/{attributes.subresource}".rstrip("/")
        known = (attributes.verb, resource, attributes.name) in self.allowed
        return Verdict(Decision.ALLOW if known else Decision.NO_OPINION, self.reason)


@define
class Context:
    """L{kubetwist.api.admission.AdmissionContext} of a few objects."""

    objects: dict[tuple[str, str, str, str], JSONObject] = field(factory=dict)
    kinds: dict[tuple[str, str, str], list[tuple[str, bool]]] = field(factory=dict)
    reactor: Any = field(factory=Clock)
    authorizer: Any = None
    release: str = "1.36"
    toleration_seconds: tuple[int, int] = (300, 300)
    outgoing: Any = None
    created: list[JSONObject] = field(factory=list)

    @property
    def features(self) -> FeatureGates:
        """See the interface."""
        return FeatureGates(parse_release(self.release))

    def add(self, group: str, resource: str, obj: JSONObject) -> None:
        """Add an object."""
        meta = obj["metadata"]
        self.objects[group, resource, meta.get("namespace", ""), meta["name"]] = obj

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See the interface."""
        result = self.objects.get((group, resource, namespace, name))
        return None if result is None else orjson.loads(orjson.dumps(result))

    def list_copies(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See the interface."""
        return [make() for make in self.list_lazy(group, resource, namespace)]

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See the interface."""
        result = self.objects.get((group, resource, namespace, name))
        return None if result is None else frozen(result)

    async def wait_for_object(
        self, group: str, resource: str, namespace: str, name: str, seconds: float
    ) -> JSONObject | None:
        """Return the object; it is not awaited."""
        return self.get_decoded(group, resource, namespace, name)

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See the interface."""
        return [frozen(one) for one in self.list_copies(group, resource, namespace)]

    def list_lazy(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """See the interface."""
        return [
            partial(orjson.loads, orjson.dumps(obj))
            for (a_group, a_resource, a_namespace, _), obj in sorted(self.objects.items())
            if (a_group, a_resource) == (group, resource) and namespace in ("", a_namespace)
        ]

    def resources_for_kind(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """See the interface."""
        return self.kinds.get((group, version, kind), [])

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """See the interface."""
        name = obj["metadata"]["name"]
        if (group, resource, namespace, name) in self.objects:
            raise APIStatusError.already_exists(GroupResource(group, resource), name)
        self.add(group, resource, obj)
        self.created.append(obj)


@contextmanager
def starting_over(server: Any, caches: Sequence[WatchCache]) -> Iterator[None]:
    """Make caches restart their watch, as after a compaction; they are filled again afterwards."""

    async def unavailable(*args: Any, **how: Any) -> Page:
        raise StorageUnavailable("not now")

    with patch.object(MemoryStorage, "read_page", unavailable):
        for cache in caches:
            cache.ended(RevisionCompacted(1, 2))
            assert not cache.ready
        yield
    server.clock.advance(60)
    assert all(cache.ready for cache in caches)


@define
class Write:
    """
    One write, and the warnings and audit annotations of plugins.

    @ivar attributes: The attributes to pass to a plugin.
    @ivar annotations: The audit annotations.
    """

    attributes: AdmissionAttributes
    warnings: list[str]
    annotations: dict[str, str]


def write(
    obj: JSONObject | None,
    resource: str = "pods",
    operation: str = "CREATE",
    *,
    old: JSONObject | None = None,
    context: Context | None = None,
    user: UserInfo = ALICE,
    namespace: str = "ns",
    kind: str = "",
    dry_run: bool = False,
    name: str | None = None,
) -> Write:
    """
    Return a write; C{resource} is C{"pods"}, C{"pods/status"}, C{"deployments.apps"}, C{"deployments.apps/scale"}.
    """
    full, _, subresource = resource.partition("/")
    plural, _, group = full.partition(".")
    warnings: list[str] = []
    annotations: dict[str, str] = {}
    result = (obj or {}).get("metadata", {}).get("name", "") if name is None else name
    attributes = AdmissionAttributes(
        operation,
        group,
        "v1",
        plural,
        subresource,
        kind,
        result if plural == "namespaces" else namespace,
        result,
        obj,
        old,
        user,
        dry_run,
        context or Context(),
        warn=warnings.append,
        annotate=lambda key, value, level: annotations.__setitem__(key, value),
    )
    return Write(attributes, warnings, annotations)


def pod(name: str = "x", **spec: Any) -> JSONObject:
    """Return a pod with one container."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def every_container(**fields: Any) -> JSONObject:
    """Return a pod with equal containers of every kind."""
    kinds = (("initContainers", "i"), ("containers", "c"), ("ephemeralContainers", "e"))
    spec = {kind: [{"name": name, "image": "i", **orjson.loads(orjson.dumps(fields))}] for kind, name in kinds}
    return {"metadata": {"name": "x"}, "spec": spec}


class PluginTestCase(SynchronousTestCase):
    """A test case that calls plugins as the server does."""

    def admit(self, plugin: Any, request: Write) -> JSONObject:
        """Call a mutating plugin and return the object."""
        self.successResultOf(ensureDeferred(AdmissionChain([plugin], Clock()).admit(request.attributes)))
        assert request.attributes.object is not None
        return request.attributes.object

    def admit_twice(self, plugin: Any, request: Write) -> JSONObject:
        """Call a mutating plugin twice, assert that the second call changes nothing, and return the object."""
        once = orjson.dumps(self.admit(plugin, request))
        again = self.admit(plugin, request)
        self.assertEqual(orjson.dumps(again), once)
        return again

    def validate(self, plugin: Any, request: Write) -> None:
        """Call a validating plugin that must admit the object."""
        self.successResultOf(ensureDeferred(AdmissionChain([plugin], Clock()).validate(request.attributes)))

    def rejection(self, plugin: Any, request: Write, *, admitting: bool = False) -> APIStatusError:
        """Return the error of the rejection."""
        chain = AdmissionChain([plugin], Clock())
        calls = chain.admit(request.attributes) if admitting else chain.validate(request.attributes)
        error = self.failureResultOf(ensureDeferred(calls), APIStatusError).value
        assert isinstance(error, APIStatusError)
        return error

    def error_text(self, plugin: Any, request: Write, *, admitting: bool = False) -> str:
        """Return the message of the rejection after C{is forbidden}."""
        error = self.rejection(plugin, request, admitting=admitting)
        self.assertEqual((error.code, error.reason), (403, "Forbidden"))
        return error.message.partition("is forbidden: ")[2]

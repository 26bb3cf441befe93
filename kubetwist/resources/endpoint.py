"""One resource in one version, as HTTP serves it, with the dependencies of its handlers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from attrs import define, field

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorThreads
from twisted.internet.threads import deferToThreadPool

from ..api.featuregates import FeatureGates
from ..api.requestscope import RequestScope
from ..http.negotiation import (
    APPLY_CBOR_PATCH,
    BUILT_IN,
    BUILT_IN_WITH_CBOR,
    CUSTOM,
    CUSTOM_WITH_CBOR,
    PATCH_TYPES,
    EndpointNegotiators,
)
from ..registry.generic.fieldmanager.manager import update_managed_fields
from .capabilities import has_tables

if TYPE_CHECKING:
    from ..api.jsontypes import JSONValue
    from ..api.resource import GroupVersion, GroupVersionKind, JSONObject
    from ..http.collaborators import DeferToThread
    from ..http.request import KubeRequest
    from ..interfaces import IAuthorizer
    from ..registry.generic.codec import Codec
    from ..registry.generic.fieldmanager.manager import FieldManager
    from ..registry.generic.resourceinfo import ResourceInfo
    from ..registry.generic.strategy import Strategy


#: Groups whose objects contain CEL expressions or schemas; the validation of a kilobyte takes tens of milliseconds.
VALIDATION_WEIGHTS: Final = {"apiextensions.k8s.io": 16, "admissionregistration.k8s.io": 16, "resource.k8s.io": 16}
#: Matches a possible whole float in JSON or YAML; most bodies have none.
_whole_float: Final = re.compile(rb"[0-9](?:\.0|[eE])").search
Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


def thread_deferrer(reactor: IReactorThreads) -> DeferToThread:
    """Return the function that runs functions in the threads of a reactor."""

    def defer_to_thread(function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Deferred[Result]:
        return deferToThreadPool(reactor, reactor.getThreadPool(), function, *arguments)

    return defer_to_thread


#: The features of a server of the default release.
_DEFAULT_FEATURES: Final = FeatureGates()


def no_strategy() -> None:
    """Return L{None}: the kind has no defaults."""


@define(eq=False)
class Endpoint:
    """
    One resource, or subresource, in one version.

    @ivar storage: The storage object, which provides the capabilities that are served.
    @ivar version: The version in the path.
    @ivar namespaced: Whether the objects of the resource are in namespaces.
    @ivar gvk: The kind of the responses; for C{scale} it differs from the kind of the resource.
    @ivar codec: The codec for bodies of that kind.
    @ivar defer_to_thread: Runs long computations.
    @ivar find_strategy: Returns L{strategy}; called at the first use.
    @ivar list_items_have_kind: Custom resources repeat kind and apiVersion in lists, built-in ones do not.
    @ivar list_kind: The kind of its collections, if that is not the kind with the suffix C{List}.
    @ivar patch_types: The media types of supported patches.
    @ivar field_manager: Tracks the owners of fields; L{None} if objects are not stored.
    @ivar authorizer: Authorizes the creation by a PUT or an apply; L{None} allows every client.
    @ivar tables: Whether answers can be Tables.
    @ivar built_in: Whether it is neither a custom resource nor a subresource of one.
    @ivar zero_metadata: Metadata of new objects that is encoded even if it is not set.
    @ivar traced: Whether reading and encoding are traced.
    @ivar min_request_timeout: Minimum seconds of watches without a timeout.
    @ivar features: The feature gates and the release of the server.
    @ivar watch_list: Whether watches may request initial events.
    @ivar old_router: Whether the reference's router is the one of releases before 1.34, which treats requests without a
        body differently.
    @ivar options_first: Whether list options are validated before the media type is negotiated.
    @ivar encoders: The encoders of responses, by form; see L{kubetwist.resources.views}.
    @ivar formats: The formats of responses that depend on no query, by what was negotiated.
    """

    storage: Any
    info: ResourceInfo
    namespaced: bool
    version: GroupVersion
    gvk: GroupVersionKind
    codec: Codec
    defer_to_thread: DeferToThread
    find_strategy: Callable[[], Strategy | None] = no_strategy
    subresource: str = ""
    list_items_have_kind: bool = False
    list_kind: str = ""
    patch_types: tuple[str, ...] = PATCH_TYPES
    field_manager: FieldManager | None = None
    authorizer: IAuthorizer | None = None
    min_request_timeout: float = 1800.0
    features: FeatureGates = _DEFAULT_FEATURES
    traced: bool = False
    encoders: dict[Any, Any] = field(factory=dict, repr=False)
    formats: dict[Any, Any] = field(factory=dict, repr=False)
    tables: bool = field(init=False)
    built_in: bool = field(init=False)
    watch_list: bool = field(init=False)
    options_first: bool = field(init=False)
    old_router: bool = field(init=False)
    zero_metadata: JSONObject = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.built_in = self.patch_types is PATCH_TYPES
        self.tables = has_tables(self.storage)
        self.watch_list = self.features.enabled("WatchList")
        self.options_first = self.features.meets(">=1.32,<1.36")
        self.old_router = not self.features.since(1, 34)
        self.zero_metadata = self.codec.zero_metadata

    def negotiators(self, request: KubeRequest) -> EndpointNegotiators:
        """Return the negotiators of the C{Accept} header."""
        if request.site.serves_cbor:
            return BUILT_IN_WITH_CBOR if self.built_in else CUSTOM_WITH_CBOR
        return BUILT_IN if self.built_in else CUSTOM

    def supported_patch_types(self, request: KubeRequest) -> tuple[str, ...]:
        """Return the media types of supported patches, with CBOR if the server enables it."""
        return (*self.patch_types, APPLY_CBOR_PATCH) if request.site.serves_cbor else self.patch_types

    def scope(self, request: KubeRequest, namespace: str, body: bytes = b"") -> RequestScope:
        """Return the scope of the request for the store."""
        user = request.user
        assert user is not None, "authentication comes before routing"
        scheduler = request.site.scheduler
        return RequestScope(
            namespace,
            user,
            request.warn,
            request.user_agent,
            self.version.version,
            request.annotate,
            request.deadline,
            from_storage=request.read_from_storage,
            size=len(body),
            weight=VALIDATION_WEIGHTS.get(self.info.group, 1),
            in_thread=self.defer_to_thread,
            pause=None if scheduler is None else scheduler.wait_for_slot,
        )

    def comparable(self, sent: JSONValue) -> JSONValue:
        """Return the body that a stored object was decoded from, if the two have the same fields; else L{None}."""
        return sent if self.codec.protobuf and not self.codec.converts else None

    def floats(self, sent: JSONValue, body: bytes) -> JSONValue:
        """
        Return the value that an object was decoded from, if whole floats in it are significant; else L{None}.

        @param body: The encoded value, or the patch that resulted in it. It is searched only where floats are
            significant: a search of 2 MB blocks all threads for 10 ms.
        """
        return sent if self.codec.keeps_floats and _whole_float(body) else None

    def update_managed_fields(
        self, live: JSONObject | None, obj: JSONObject, manager: str, sent: JSONValue = None
    ) -> JSONObject:
        """
        Set the managed fields of C{obj}, which is ready for the store, and return it.

        @param live: The stored object; L{None} for a creation.
        @param sent: The body from which C{obj} was decoded.
        """
        if self.field_manager is not None:
            update_managed_fields(self.field_manager, live, obj, manager, sent)
        return obj

    def defaulted(self, live: JSONObject | None, obj: JSONObject, manager: str, sent: JSONValue = None) -> JSONObject:
        """
        Apply L{default}, then L{update_managed_fields}.

        @param live: The stored object; L{None} for a creation.
        @param obj: The new object, in the endpoint's version.
        @param manager: The field manager of the write.
        @param sent: The body from which C{obj} was decoded.
        """
        return self.update_managed_fields(live, self.default(obj), manager, sent)

    def default(self, obj: JSONObject) -> JSONObject:
        """Convert an object of this version to the stored version, with defaults."""
        strategy = self.find_strategy()
        if strategy is None:
            return self.codec.to_storage(obj)
        return strategy.defaulted(obj, self.codec.to_storage)

    def delete_returns_object(self) -> bool:
        """Return whether DELETE returns the object instead of a Status."""
        strategy = self.find_strategy()
        return strategy is not None and strategy.delete_returns_object

"""Unit tests of admission plugins: requests and a context without a server, and a server in memory for one plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import orjson
from attrs import define, field

from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ..admission.chain import AdmissionChain
from ..admission.configuration import decode_configuration, read_configurations
from ..admission.factory import make_from_class
from ..admission.plugins import installed, make_plugin
from ..api.admission import (
    CREATE,
    DELETE,
    RENAMED_CONTEXT_METHODS,
    UPDATE,
    AdmissionAttributes,
    AdmissionContext,
    Commit,
    ReinvocationContext,
)
from ..api.errors import APIStatusError
from ..api.featuregates import FeatureGates, parse_release
from ..api.frozen import frozen
from ..api.jsontypes import JSONValue
from ..api.options import CreateOptions, DeleteOptions, UpdateOptions, WriteOptions
from ..api.renamed import renamed_attributes
from ..api.requestscope import RequestScope
from ..api.resource import GroupResource, GroupVersion, JSONObject, UserInfo
from ..interfaces import IAdmissionPlugin, IAdmissionPluginFactory, IAuthorizer
from ..registry.generic.codec import Codec
from ._jsondiff import json_patch
from ._writes import find_target, perform
from .memory import MemoryServer, Objects, decode_strictly, parse_object

if TYPE_CHECKING:
    from ..schema.definitions import Definitions


@define
class StubServer:
    """
    An L{kubetwist.api.admission.AdmissionContext} with some objects.

    @ivar objects: By group, resource, namespace and name.
    @ivar kinds: The resource, and whether it is namespaced, by group, version and kind.
    @ivar authorizer: As L{kubetwist.interfaces.IAuthorizer}; L{None} without one.
    @ivar reactor: For plugins that wait; L{None} by default.
    """

    objects: dict[tuple[str, str, str, str], JSONObject] = field(factory=dict)
    kinds: dict[tuple[str, str, str], tuple[str, bool]] = field(factory=dict)
    authorizer: Any = None
    reactor: Any = None
    outgoing: Any = None
    release: str = "1.36"
    toleration_seconds: tuple[int, int] = (300, 300)

    @property
    def features(self) -> FeatureGates:
        """Return the feature gates of the release, with their defaults."""
        return FeatureGates(parse_release(self.release))

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("StubServer", RENAMED_CONTEXT_METHODS)

    def add(self, group: str, resource: str, obj: JSONObject) -> StubServer:
        """Add an object in its storage version."""
        meta = obj["metadata"]
        self.objects[group, resource, meta.get("namespace", ""), meta["name"]] = obj
        return self

    def _select(self, group: str, resource: str, namespace: str) -> Iterable[JSONObject]:
        for (in_group, of_resource, in_namespace, _), obj in sorted(self.objects.items()):
            if (in_group, of_resource) == (group, resource) and namespace in ("", in_namespace):
                yield obj

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{AdmissionContext.get_decoded}."""
        obj = self.objects.get((group, resource, namespace, name))
        return None if obj is None else frozen(obj)

    async def wait_for_object(
        self, group: str, resource: str, namespace: str, name: str, seconds: float
    ) -> JSONObject | None:
        """See L{AdmissionContext.wait_for_object}; objects never appear here."""
        return self.get_decoded(group, resource, namespace, name)

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{AdmissionContext.list_decoded}."""
        return [frozen(obj) for obj in self._select(group, resource, namespace)]

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """See L{AdmissionContext.get_copy}."""
        obj = self.objects.get((group, resource, namespace, name))
        return None if obj is None else _copy(obj)

    def list_copies(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """See L{AdmissionContext.list_copies}."""
        return [_copy(obj) for obj in self._select(group, resource, namespace)]

    async def ensure_cached(self, group: str, resource: str) -> bool:
        """Return whether there is an object of the resource."""
        return any(key[:2] == (group, resource) for key in self.objects)

    def list_lazy(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """See L{AdmissionContext.list_lazy}."""
        return [partial(_copy, obj) for obj in self._select(group, resource, namespace)]

    def resources_for_kind(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """Return the resources in C{kinds}."""
        found = self.kinds.get((group, version, kind))
        return [] if found is None else [found]

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """See L{AdmissionContext.create}; no defaults are set."""
        key = group, resource, namespace, obj["metadata"]["name"]
        if key in self.objects:
            raise APIStatusError.already_exists(GroupResource(group, resource), key[3])
        self.objects[key] = obj

    async def commit_with_status_updates(
        self,
        commit: Commit,
        group: str,
        resource: str,
        namespace: str,
        names: Sequence[str],
        change: Callable[[JSONObject], None],
    ) -> int:
        """See L{AdmissionContext.commit_with_status_updates}; further writes are ignored."""
        changed = {
            key: _copy(self.objects[key])
            for key in ((group, resource, namespace, name) for name in names)
            if key in self.objects
        }
        for obj in changed.values():
            change(obj)
        revision = await commit(())
        self.objects.update(changed)
        return revision


def _copy(obj: JSONObject) -> JSONObject:
    copied: JSONObject = orjson.loads(orjson.dumps(obj))
    return copied


def write(
    obj: JSONObject | None,
    resource: str = "pods",
    operation: str = "CREATE",
    *,
    api_version: str = "v1",
    kind: str = "Pod",
    subresource: str = "",
    namespace: str = "default",
    old: JSONObject | None = None,
    user: UserInfo | None = None,
    dry_run: bool = False,
    server: AdmissionContext | None = None,
    warn: Callable[[str], Any] | None = None,
) -> AdmissionAttributes:
    """
    Return the attributes of a write, as admission plugins get them in the first round.

    @param obj: The new object, which mutating plugins change; L{None} for DELETE.
    @param api_version: The API version of the resource: C{"v1"}, C{"apps/v1"}.
    @param namespace: C{""} for cluster-scoped objects.
    @param old: The object before.
    @param server: By default a L{StubServer} with nothing in it.
    @param warn: Called with warnings; C{[].append} collects them.
    @return: The attributes; C{annotations} contains the plugin's audit annotations.
    """
    group_version = GroupVersion.parse(api_version)
    name = ((obj if obj is not None else old) or {}).get("metadata", {}).get("name", "")
    options = {"CREATE": CreateOptions, "UPDATE": UpdateOptions, "DELETE": DeleteOptions}.get(operation)
    attributes = AdmissionAttributes(
        operation,
        group_version.group,
        group_version.version,
        resource,
        subresource,
        kind,
        namespace,
        name,
        obj,
        old,
        user or UserInfo("alice", groups=("system:authenticated",)),
        dry_run,
        StubServer() if server is None else server,
        None if options is None else options(dry_run=dry_run),
        warn=warn,
    )
    attributes.reinvocation = ReinvocationContext()
    return attributes


@define(frozen=True)
class AdmissionOutcome:
    """
    The outcome of a reviewed request.

    @ivar allowed: Whether the server accepts the request.
    @ivar denied: Whether the plugin rejected it.
    @ivar handled: Whether the plugin is called for such requests at all, by its C{handles} and C{resources}.
    @ivar error: The error for the client: of the plugin, of its failure, or of the server, for example if the plugin
        has made the object invalid. L{None} for an allowed request.
    @ivar failure: The exception of a plugin that failed, L{TimeoutError}, or L{InvalidMutation}; L{None} if it worked.
    @ivar object: The object after the mutating plugin, in the stored version; L{None} for a deletion, and if the
        request did not get to the plugin.
    @ivar patch: The changes of the plugin as a JSON patch; empty if it changed nothing.
    @ivar stored: The object as it is stored; L{None} if it is not, as in dry runs.
    @ivar warnings: The texts of C{Warning} headers.
    @ivar audit_annotations: The annotations of the audit event.
    """

    allowed: bool
    denied: bool
    handled: bool
    error: APIStatusError | None
    failure: Exception | None
    object: JSONObject | None
    patch: list[JSONObject]
    stored: JSONObject | None
    warnings: list[str]
    audit_annotations: dict[str, str]

    @property
    def status(self) -> JSONObject | None:
        """Return the C{Status} for the client; L{None} for an allowed request."""
        return None if self.error is None else self.error.status()

    @property
    def code(self) -> int:
        """Return the HTTP status of the error; 0 for an allowed request."""
        return 0 if self.error is None else self.error.code

    @property
    def reason(self) -> str:
        """Return the reason of the error, such as C{"Forbidden"}; C{""} for an allowed request."""
        return "" if self.error is None else self.error.reason

    @property
    def message(self) -> str:
        """Return the message for the client; C{""} for an allowed request."""
        return "" if self.error is None else self.error.message


class InvalidMutation(Exception):
    """The plugin has changed the object to one that does not fit its type."""


class _Review:
    """A request, as the chain observes it."""

    def __init__(self) -> None:
        self.attributes: AdmissionAttributes | None = None
        self.handled = False
        self.denied = False
        self.failure: Exception | None = None
        self.object: JSONObject | None = None
        self.patch: list[JSONObject] = []
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}

    def annotate(self, key: str, value: str, level: str) -> None:
        """Record an audit annotation; the first value is kept, as in audit events."""
        self.annotations.setdefault(key, value)


class _ReviewingChain(AdmissionChain):
    """
    The admission chain of the server, which observes one request.

    @ivar review: The observed request; without one, the plugin is not called.
    @ivar definitions: The built-in types, by which the results of the plugin are checked.
    """

    review: _Review | None = None
    definitions: Definitions | None = None

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{AdmissionChain.admit}."""
        review = self.review
        if review is None:
            return
        if review.attributes is None:
            review.attributes = attributes
        if attributes is not review.attributes:
            # A write of the plugin itself.
            await super().admit(attributes)
            return
        review.handled = self.handles(attributes)
        # The store keeps this object: a plugin that assigns another one to attributes.object changes nothing.
        obj = attributes.object
        before = None if obj is None else _copy(obj)
        await super().admit(attributes)
        if obj is None or before is None:
            return
        try:
            review.object = _copy(obj)
        except TypeError as error:
            self._invalid(review, error)
        review.patch = json_patch(before, review.object)
        if review.patch:
            self._check_type(review, obj, attributes)

    def _check_type(self, review: _Review, obj: JSONObject, attributes: AdmissionAttributes) -> None:
        gvk, definitions = attributes.object_kind, self.definitions
        if definitions is None or not definitions.has_kind(gvk):
            return
        codec = Codec(definitions, gvk, gvk)
        try:
            decode_strictly(codec, _copy({**obj, "kind": gvk.kind, "apiVersion": gvk.api_version}))
        except APIStatusError as error:
            self._invalid(review, error)

    def _invalid(self, review: _Review, error: Exception) -> NoReturn:
        review.failure = InvalidMutation(f"the plugin left an invalid object: {error}")
        raise APIStatusError.internal(str(review.failure)) from None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{AdmissionChain.validate}."""
        if self.review is not None:
            await super().validate(attributes)

    async def _run_handlers(self, handlers: Iterable[Any], attributes: AdmissionAttributes) -> None:
        review = self.review
        try:
            await super()._run_handlers(handlers, attributes)
        except APIStatusError:
            if review is not None and attributes is review.attributes and review.failure is None:
                review.denied = True
            raise

    def _report_failure(self, text: str, error: Exception, policy: str) -> None:
        if self.review is not None and self.review.failure is None:
            self.review.failure = error


@implementer(IAdmissionPluginFactory)
@define(frozen=True)
class _FactoryOf:
    """The factory of a plugin that a test passes as a class or instance."""

    name: str
    plugin: Any
    default: bool = True

    def make(self, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """Return the plugin, constructed as L{AdmissionPluginFactory.make} does it."""
        if not isinstance(self.plugin, type):
            plugin: IAdmissionPlugin = self.plugin
            return plugin
        return make_from_class(self.plugin, server, configuration)


class AdmissionHarness:
    """
    One admission plugin in a server in memory: requests in, outcomes out.

    Requests pass the code of the server below HTTP: decoding, defaults, the admission chain with its timeout and
    failure policy, validation, storage. There is no other plugin, and no authorization.

    @ivar server: The objects, for lookups by the plugin and by tests.
    @ivar plugin: The plugin.
    """

    def __init__(
        self,
        plugin: object,
        configuration: JSONValue | Path = None,
        *,
        objects: Objects = (),
        release: str = "1.36",
        clock: IReactorTime | None = None,
        authorizer: IAuthorizer | None = None,
    ) -> None:
        """
        @param plugin: The class, an instance, a factory, or the name of an installed plugin.
        @param configuration: The section of the plugin in C{--admission-control-config-file}, as a value or YAML text;
            or the path of such a file.
        @param objects: Stored objects: YAML, a file, or dictionaries.
        @param release: The Kubernetes release.
        @param clock: The reactor of the plugin; by default a clock that L{review} advances while the plugin waits.
        @param authorizer: As C{attributes.context.authorizer}.
        @raise PluginInitError: The server would not start with the plugin.
        """
        self._factory = _factory_of(plugin)
        self._configuration = _read_configuration(configuration, self._factory.name)
        self.server = MemoryServer(
            objects,
            release=release,
            clock=clock,
            authorizer=authorizer,
            admission=self._make_chain,
        )
        self._chain.definitions = self.server.definitions
        self.server.start()

    def _make_chain(self, context: AdmissionContext) -> AdmissionChain:
        self.plugin = make_plugin(self._factory, context, self._configuration)
        self._chain = _ReviewingChain([self.plugin], context.reactor)
        return self._chain

    # --- requests

    def review(self, obj: JSONObject | str | None = None, operation: str = CREATE, **request: Any) -> AdmissionOutcome:
        """
        Return the outcome of a request. The clock advances while the plugin waits for it.

        @param obj: See L{review_async}.
        @param operation: See L{review_async}.
        @param request: The further arguments of L{review_async}.
        @raise NoResult: The plugin waits for something else, such as a thread: use L{review_async}.
        """
        return self.server.run(self.review_async(obj, operation, **request))

    def create(self, obj: JSONObject | str, **request: Any) -> AdmissionOutcome:
        """Return the outcome of a creation; see L{review_async}."""
        return self.review(obj, CREATE, **request)

    def update(self, obj: JSONObject | str, old: JSONObject | str | None = None, **request: Any) -> AdmissionOutcome:
        """
        Return the outcome of an update.

        @param obj: The new object.
        @param old: The object before; L{None} if it is stored already.
        @param request: See L{review_async}.
        """
        return self.review(obj, UPDATE, old=old, **request)

    def delete(self, old: JSONObject | str, **request: Any) -> AdmissionOutcome:
        """Return the outcome of a deletion; see L{review_async}."""
        return self.review(None, DELETE, old=old, **request)

    async def review_async(
        self,
        obj: JSONObject | str | None = None,
        operation: str = CREATE,
        *,
        old: JSONObject | str | None = None,
        user: UserInfo | str = "alice",
        resource: str = "",
        subresource: str = "",
        name: str = "",
        namespace: str = "default",
        dry_run: bool = False,
        options: WriteOptions | DeleteOptions | None = None,
    ) -> AdmissionOutcome:
        """
        Return the outcome of a request.

        @param obj: The object of the request, as a dictionary or YAML, with C{kind} and C{apiVersion}; L{None} for
            DELETE. For a subresource, the object that clients send: a C{Scale}, a C{Binding}, C{PodExecOptions}.
        @param operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
        @param old: The stored object before the request; by default the one of that name in L{server}.
        @param user: The user, or the name of a user in the group C{system:authenticated}.
        @param resource: The resource as C{"pods"} or C{"deployments.apps"}; by default the one of the object's kind.
        @param subresource: The subresource: C{"status"}, C{"scale"}, C{"exec"}.
        @param name: The name; by default the name in the object.
        @param namespace: The namespace of an object that names none.
        @param dry_run: Whether nothing is stored.
        @param options: The options of the request.
        @raise APIStatusError: C{obj} or C{old} does not fit its type.
        @raise ValueError: There is no such kind, resource or subresource.
        """
        target = find_target(
            self.server,
            None if obj is None else parse_object(obj),
            None if old is None else parse_object(old),
            operation,
            resource=resource,
            subresource=subresource,
            name=name,
            namespace=namespace,
        )
        review = self._chain.review = _Review()
        who = UserInfo(user, groups=("system:authenticated",)) if isinstance(user, str) else user
        scope = RequestScope(
            target.namespace, who, review.warnings.append, version=target.version, annotate=review.annotate
        )
        error, stored = None, None
        try:
            stored = await perform(self.server, target, scope, options or target.default_options(dry_run))
        except APIStatusError as caught:
            error = caught
        finally:
            self._chain.review = None
        if error is not None and review.attributes is None:
            # The request did not get to admission: the test is wrong, not the plugin.
            raise error
        return AdmissionOutcome(
            allowed=error is None,
            denied=review.denied,
            handled=review.handled,
            error=error,
            failure=review.failure,
            object=review.object,
            patch=review.patch,
            stored=stored,
            warnings=review.warnings,
            audit_annotations=review.annotations,
        )


def _factory_of(plugin: object) -> IAdmissionPluginFactory:
    """Return the factory of a plugin; it may be given as such, by its name, or as a class or instance."""
    if isinstance(plugin, str):
        factories = installed()
        if plugin not in factories:
            raise ValueError(f"no admission plugin {plugin} is installed")
        return factories[plugin]
    if IAdmissionPluginFactory.providedBy(plugin):
        return plugin
    factory: IAdmissionPluginFactory = _FactoryOf(getattr(plugin, "name", type(plugin).__name__), plugin)
    return factory


def _read_configuration(configuration: JSONValue | Path, name: str) -> JSONValue:
    """
    Return the configuration of a plugin.

    @param configuration: A value, YAML text, or the path of an C{AdmissionConfiguration}.
    @param name: The name of the plugin.
    """
    if isinstance(configuration, Path):
        return read_configurations(str(configuration)).get(name)
    if isinstance(configuration, str):
        return decode_configuration(configuration.encode())
    return configuration

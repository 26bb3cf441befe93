"""
Every interface of the server, by layer: storage backends, the capabilities of a resource, admission, who and may they.

A capability is what a resource's storage object provides. The installer asks with C{providedBy} and registers one
route per capability; discovery's verbs, OpenAPI and authorization follow from the same place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import (
    IReactorCore,
    IReactorPluggableNameResolver,
    IReactorSocket,
    IReactorTCP,
    IReactorThreads,
    IReactorTime,
)
from zope.interface import Attribute, Interface

from .api.renamed import renamed_names

if TYPE_CHECKING:
    from OpenSSL.crypto import X509

    from twisted.internet.defer import Deferred

    from .api.admission import AdmissionAttributes, AdmissionContext
    from .api.authorization import AuthorizerAttributes, Verdict
    from .api.flagvalues import FlagValues
    from .api.jsontypes import JSONValue
    from .api.options import CreateOptions, DeleteOptions, GetOptions, ListOptions, WriteOptions
    from .api.record import Listing, Record
    from .api.requestscope import RequestScope
    from .api.resource import JSONObject, UserInfo
    from .api.storage import History, Page, StorageEvent, StoredValue, Write
    from .api.targets import Target
    from .metrics.registry import MetricSnapshot

# --- reactor -----------------------------------------------------------------------------------------------------


class IServerReactor(
    IReactorCore, IReactorTime, IReactorThreads, IReactorTCP, IReactorSocket, IReactorPluggableNameResolver
):
    """The reactor of a server: clock, threads, connections and names."""

    # Twisted's own declaration names two parameters C{callable}, the first in place of C{self}.
    def callFromThread(  # type: ignore[override]
        call: Callable[..., object], /, *args: object, **kw: object
    ) -> None:
        """Call something in the reactor's thread."""


# --- storage -----------------------------------------------------------------------------------------------------


class IStorageObserver(Interface):
    """Observes a prefix of a storage backend. All calls are made in the reactor thread."""

    def committed(events: Sequence[StorageEvent]) -> None:
        """
        Handle changes below the prefix, in revision order, each exactly once.

        Called before the write is acknowledged, if writer and watcher share a process.
        """

    def progressed(revision: int) -> None:
        """Report that every event below the prefix up to C{revision} has been delivered."""

    def ended(reason: Exception) -> None:
        """Handle the end of the watch, which must be restarted: L{RevisionCompacted}, or the backend was lost."""


class IStorageWatch(Interface):
    """A running watch."""

    def stop() -> None:
        """Deliver nothing more; the observer's C{ended} is not called."""


class IStorageBackend(Interface):
    """
    An ordered, watchable store of bytes under one logical clock; knows nothing of HTTP, kinds or admission.

    Its methods, and those of the capabilities below, raise a L{StorageError<kubetwist.storage.errors.StorageError>} and
    nothing else, except for L{MemoryError}.
    """

    revision: int = Attribute("The newest committed revision; it only grows, over restarts too.")
    compacted: int = Attribute("States before this revision cannot be read any more.")
    shared: bool = Attribute("Whether other servers may work on the same storage; then only one runs controllers.")

    async def open() -> None:
        """
        Make ready for use.

        @raise StorageCorrupt: The data is damaged, foreign or of a newer format.
        @raise StorageUnavailable: It cannot be reached, written, or is in use by another process.
        """

    async def close() -> None:
        """Finish submitted writes, then release all resources. Idempotent."""

    def commit(writes: Sequence[Write]) -> Deferred[int]:
        """
        Do all of C{writes} (at most one per key), or none, as one revision.

        @return: Fires with that revision once it is durable and observers in this process know it.
        @raise KeyExists: A write expects revision 0 and something is there.
        @raise KeyNotFound: A write expects a revision, or deletes, where nothing is.
        @raise RevisionConflict: A key is at another revision than expected. This and the two above
            are raised only after the conflicting state is durable and observers have received it.
        @raise StorageUnavailable: Nothing was written and nothing will be.
        @raise OutcomeUnknown: The writes may be done, or may still be.
        @raise TransformToStorageError: Nothing was written, as a value cannot be encrypted.
        @raise InvalidArgument: There are no writes, several of one key or too many, or a key cannot be encoded.
        """

    async def read(key: str) -> StoredValue:
        """
        Return the newest committed state of one key.

        @raise KeyNotFound: The key does not exist.
        @raise CorruptObjectError: There is something, and it cannot be read.
        @raise StorageUnavailable: The store is not open, or does not answer.
        """

    async def read_page(prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        Read values below C{prefix}, all as of one revision.

        @param prefix: With its last slash.
        @param start: The first key wanted; C{""} for the first there is.
        @param limit: The most to return; 0 for all.
        @param revision: As of which; 0 for the newest.
        @return: Values that cannot be read are included with their problem.
        @raise RevisionCompacted: That revision is forgotten.
        @raise FutureRevision: That revision is not there yet.
        @raise StorageUnavailable: The store is not open, or does not answer; L{DecryptionUnavailable
            <kubetwist.storage.errors.DecryptionUnavailable>} if what is stored cannot be decrypted at present.
        """

    async def watch(prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """
        Pass every change below C{prefix} after C{revision} to C{observer}.

        @raise RevisionCompacted: Changes after that revision are forgotten.
        @raise FutureRevision: That revision is not there yet.
        @raise InvalidArgument: C{prefix} does not end with a slash.
        @raise StorageUnavailable: The store is not open, or does not answer.
        """

    async def compact(revision: int) -> None:
        """
        Delete values that were superseded at or before C{revision}, in slices between which writes can run.

        The state at C{revision} itself can still be read, and watched from.

        @raise FutureRevision: That revision is not there yet.
        @raise StorageUnavailable: The store is not open, cannot be written, or does not answer.
        """


class ISharedStorage(IStorageBackend):
    """A storage backend that other servers work on, too; L{kubetwist.storage.wrappers.find_shared_storage} finds it."""

    async def current_revision() -> int:
        """
        Return the newest revision of all servers. It includes every write that was acknowledged before this call.

        @raise StorageUnavailable: The revision cannot be determined.
        """

    async def claim_compaction(revision: int) -> bool:
        """
        Agree with other servers on who compacts.

        @param revision: The revision to compact to.
        @return: Whether it is to do so: no other has since it last asked.
        @raise StorageError: They cannot agree.
        """


class IStorageWrapper(IStorageBackend):
    """A storage backend over another one; L{kubetwist.storage.wrappers.unwrap_backend} finds the one at the bottom."""

    inner: IStorageBackend = Attribute("The backend below.")


class IExpiringStorage(Interface):
    """Capability of the innermost storage backend: it knows when keys with a time to live expire."""

    async def expiries(prefix: str) -> Mapping[str, float]:
        """
        Return when those keys below C{prefix} that have a time to live are due, by the wall time.

        @raise StorageUnavailable: The store does not answer.
        """


class IStorageHistory(Interface):
    """A storage backend whose past changes can be read, with the previous values."""

    async def read_changes(prefix: str, after: int, until: int, most: int, size: int) -> History:
        """
        Read the first changes below C{prefix} after one revision, up to another.

        @param prefix: The prefix of keys.
        @param after: Changes after this revision are read.
        @param until: A committed revision greater than C{after}.
        @param most: Approximate maximum number of changes; all changes of a revision are read.
        @param size: Approximate maximum size of their values, in bytes.
        @return: The changes, at least up to C{after + 1}.
        @raise RevisionCompacted: Changes after C{after} are compacted.
        """


class IBumpableStorage(Interface):
    """Capability of the innermost storage backend: it can skip revisions."""

    async def forward(revision: int) -> None:
        """
        Make a future C{revision} the newest one, and compact everything before it. No write may be in progress.

        Clients with an older revision, for example of a store that this one replaced, must list again.

        @raise InvalidArgument: C{revision} is not in the future, or writes are under way.
        @raise StorageUnavailable: The store is not open, or cannot be written.
        """


class IProbedStorage(Interface):
    """Capability of the innermost storage backend that can be readable, but not writable."""

    async def probe_writing() -> None:
        """
        Find out whether writes work; costs nothing while they do.

        @raise StorageUnavailable: They do not.
        """


class IRewriting(Interface):
    """Provided by storage backends whose values may be stored in an outdated form."""

    async def is_stale(key: str) -> bool:
        """
        Return whether a key would be stored in another form now, so that it is to be written even if nothing changes.

        @raise CorruptObjectError: It cannot be read.
        """


class IStorageBackendFactory(Interface):
    """A Twisted plugin that makes storage backends; C{--storage-backend} names it."""

    name: str = Attribute("What --storage-backend calls it.")

    def make(options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
        """
        Build a backend, not opened yet.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        """


# --- capabilities of a resource ----------------------------------------------------------------------------------
#
# A result is a record for stored objects, and a dict for objects that are made to answer. C{get} and C{list} may return
# their result at once instead of an awaitable of it: most reads need not wait for anything.


class ICreator(Interface):
    """Objects can be made: POST on the collection."""

    async def create(scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Record | JSONObject:
        """Store C{obj}, which the caller hands over; the name may be left to the server (C{generateName})."""


class INamedCreator(Interface):
    """Something can be made under an object: POST on a subresource (binding, eviction, token)."""

    async def create_named(
        scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions
    ) -> Record | JSONObject:
        """Act on the object called C{name} with C{obj}."""


class IGetter(Interface):
    """Single objects can be read."""

    async def get(scope: RequestScope, name: str, options: GetOptions) -> Record | JSONObject:
        """Return the object C{name}."""


class ILister(Interface):
    """Collections can be read."""

    async def list(scope: RequestScope, options: ListOptions) -> Listing:
        """Return the objects that the selectors select."""


class IWatcher(Interface):
    """Changes can be followed."""

    async def watch(scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
        """
        Begin a watch that writes to C{sink}.

        @return: The watch. If it is an L{IPacedWatch}, C{sink}, which is an L{IPacedSink}, receives no more than it
            accepts; otherwise a watch that is not read ends when its queue is too large.
        """


class IUpdater(Interface):
    """Objects can be replaced."""

    async def update(
        scope: RequestScope,
        name: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        *,
        patching: bool = False,
        creating: bool = False,
        may_create: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Record | JSONObject, bool]:
        """
        Replace an object by what C{change} makes of its current state.

        @param change: Called with a copy of the newest state, again after a conflict, so it must be repeatable; with
            L{None} when there is nothing and PUT may create this kind.
        @param patching: The change starts from the current state: a missing resourceVersion is allowed then, and
            there is nothing to create, unless C{creating}.
        @param creating: A patch creates an object that does not exist, as server-side apply does.
        @param may_create: Called before an object is created; raises an L{APIStatusError} if the client is not allowed
            to create it. L{None} allows it.
        @return: The new state and whether the object was created by this call.
        """

    def check_uid(scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """
        Compare the uid that a PUT names in C{obj} with that of the stored C{old}.

        @raise APIStatusError: It is another (409).
        """


class IPatcher(IGetter, IUpdater):
    """Objects can be patched: read, change, write back, again after a conflict."""


class IGracefulDeleter(Interface):
    """Single objects can be deleted, at once or after a grace period and finalizers."""

    async def delete(scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Record | JSONObject, bool]:
        """Delete; return the object's last state and whether it is already deleted."""


class IUnreadableDeleter(Interface):
    """Objects whose stored value cannot be decoded can be deleted."""

    async def discard(scope: RequestScope, name: str) -> None:
        """
        Delete an object whose stored value cannot be decoded, without admission, preconditions and finalizers.

        @raise APIStatusError: The object can be decoded or does not exist (422).
        """


class ICollectionDeleter(Interface):
    """The objects that a list selects can be deleted."""

    async def delete_collection(scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """Delete each; return a list of the selected objects."""


class IConnecter(Interface):
    """The request is handed to another server (proxy, exec, logs)."""

    methods: Sequence[str] = Attribute("The HTTP methods that are routed there.")
    subpaths: bool = Attribute("Whether paths below it are routed there, too.")

    async def connect(scope: RequestScope, name: str, path: str, query: Mapping[str, Sequence[str]]) -> Target | None:
        """
        Return the target of a request.

        @param path: Below the subresource, unescaped: C{""}, C{"/"} or C{"/metrics/cadvisor"}.
        @param query: The lists of values by name.
        @return: The target; L{None} for an empty response, which is not an error.
        @raise APIStatusError: The target does not exist.
        """


class IWatchSink(Interface):
    """Receives the events of one watch."""

    def send(event_type: str, record: Record, event: Any) -> None:
        """
        Send one event.

        @param event_type: C{"ADDED"}, C{"MODIFIED"} or C{"DELETED"}.
        @param record: The state of the object.
        @param event: The event of the watch cache, shared by all watches that receive it with the same type and state;
            it caches the encoded forms. L{None} for initial events.
        """

    def bookmark(revision: int, initial_events_end: bool) -> None:
        """Handle a bookmark: all events up to C{revision} have been sent."""

    def end(error: Exception | None) -> None:
        """
        Handle the end of the watch.

        @param error: The error that ended it; L{None} if it ended regularly. Watches of the registry's stores end with
            an L{APIStatusError}, those of other watch caches with a L{kubetwist.storage.errors.StorageError}.
        """


class IPacedSink(IWatchSink):
    """A sink that filters what it receives for its reader."""

    full: bool = Attribute("Whether nothing more is to be sent until L{IPacedWatch.resume} is called.")

    def caught_up() -> None:
        """Handle that all earlier events were sent; later ones are sent as they happen, even if C{full}."""


class IWatch(Interface):
    """A running watch."""

    revision: int = Attribute("Everything up to here was sent, if the objects that were there at first were.")

    def stop() -> None:
        """Stop sending."""


class IPacedWatch(IWatch):
    """Controls a watch whose sink is an L{IPacedSink}; it begins suspended."""

    def resume() -> None:
        """Send until the sink is full, or L{IPacedSink.caught_up} is called. Does nothing after that call."""

    def suspend() -> None:
        """Stop sending until L{resume}, except the rest of the current transaction."""


# --- admission ---------------------------------------------------------------------------------------------------


class IAdmissionPlugin(Interface):
    """
    The interface of every admission plugin; it also provides one or both of the next two interfaces.

    It may have the attributes of L{IAdmissionPluginLimits}, without declaring that interface.
    """

    name: str = Attribute("As in --enable-admission-plugins.")

    def handles(operation: str) -> bool:
        """Return whether the plugin handles C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}; called once for each."""


class IAdmissionPluginLimits(Interface):
    """Optional attributes of an admission plugin, which are read once, when the chain is made."""

    resources: Sequence[str] = Attribute(
        "The resources that the plugin is called for: C{'pods'}, C{'pods/binding'}, C{'deployments.apps'}, C{'pods/*'};"
        " see L{kubetwist.admission.chain.handles_resource}. Without it, all resources."
    )
    timeout: float | None = Attribute("Maximum duration of a call, in seconds; 10 without it. L{None} for no limit.")
    failure_policy: str = Attribute(
        "C{'Fail'}, the default, or C{'Ignore'}: requests are admitted although the plugin fails, which means that it"
        " exceeds C{timeout} or raises another exception than an L{APIStatusError}."
    )


class IMeasuredAdmission(IAdmissionPlugin):
    """An admission plugin with additional metrics."""

    def collect() -> Iterator[MetricSnapshot]:
        """Return the current values of its metrics."""


class IMutatingAdmission(IAdmissionPlugin):
    """An admission plugin of the mutating phase."""

    def admit(attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """
        Change C{attributes.object} in place.

        It is called again within the same request when a later plugin has changed the object, so it must be idempotent.

        @return: L{None} or an awaitable: the method may be C{async}.
        @raise APIStatusError: The request is rejected; C{attributes.forbidden(reason)} creates the usual error.
        """


class IValidatingAdmission(IAdmissionPlugin):
    """An admission plugin of the validating phase; it sees objects as they will be stored."""

    def validate(attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """
        Validate the request; the object must not be changed.

        @return: L{None} or an awaitable: the method may be C{async}.
        @raise APIStatusError: The request is rejected.
        """


class IAdmissionPluginFactory(Interface):
    """
    A Twisted plugin that makes an admission plugin.

    It may have the attribute of L{IPlacedAdmissionPluginFactory}, without declaring that interface.
    """

    name: str = Attribute("As in --enable-admission-plugins.")
    default: bool = Attribute("Whether it is enabled by default.")

    def make(server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """
        Build the plugin.

        @param server: The services of the server for plugins.
        @param configuration: Its part of --admission-control-config-file, decoded; L{None} without one.
        @raise Exception: The plugin cannot be created; the server does not start and reports the error.
        """


class IPlacedAdmissionPluginFactory(IAdmissionPluginFactory):
    """The factory of a plugin with a place in the order of plugins."""

    after: str = Attribute(
        "The name of the plugin that it comes after. Without it or if it is empty, the plugin comes after those that"
        " are built in, and before policies and webhooks."
    )


# --- custom resources --------------------------------------------------------------------------------------------


class IConversionPlugin(Interface):
    """
    A Twisted plugin that converts custom resources between their versions, in this process.

    A CustomResourceDefinition opts in by the annotation C{kubetwist.dev/conversion-plugin}, with the strategy C{None}.
    """

    name: str = Attribute("As in the annotation.")

    def convert(objects: list[JSONObject], api_version: str) -> list[JSONObject] | Awaitable[list[JSONObject]]:
        """
        Convert objects, which are of one kind and one version, to another version.

        It is called in the reactor's thread, with few objects at once. Metadata other than labels and annotations
        stays as it was, whatever comes back.

        @param objects: With C{kind} and C{apiVersion}; the plugin's own copies.
        @param api_version: The wanted one: C{"stable.example.com/v2"}.
        @return: As many objects in the same order, or an awaitable of them.
        @raise ValueError: An object cannot be converted; clients are shown the text.
        """


# --- authentication and authorization ----------------------------------------------------------------------------


class IClientConnection(Interface):
    """The connection of a request as authenticators see it."""

    remembered: dict[object, Any] = Attribute(
        "Facts about the client that hold for all requests of the connection; each user has a key of its own."
    )

    def peer_certificates() -> Sequence[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""


class IAuthenticationRequest(Interface):
    """A request as authenticators see it: a part of L{kubetwist.http.request.KubeRequest}."""

    method: bytes = Attribute("The HTTP method.")
    path: bytes = Attribute("The path, without the query.")
    fields: dict[bytes, list[bytes]] = Attribute("The header, by names in lower case.")
    audit_id: str = Attribute("The identifier of the request in logs and audit events.")
    signed_in: bool = Attribute("Whether it has the cookie of a session of the page; set by that authenticator.")
    connection: IClientConnection = Attribute("The connection, with the client certificate.")

    def header(name: bytes) -> bytes | None:
        """
        Return the first value of a header field.

        @param name: In lower case.
        """

    def warn(text: str, agent: str = "-", code: int = 299) -> None:
        """Add a C{Warning} header to the response."""

    def annotate(key: str, value: str, level: str) -> None:
        """
        Add an annotation to the audit event of the request.

        @param level: The lowest audit level of events with the annotation.
        """


class IAuthenticator(Interface):
    """Authenticates requests."""

    def authenticate(request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """
        Return the user; L{None} if the request has no credentials for this authenticator.

        @raise AuthenticationFailed: The credentials for this authenticator are invalid.
        """


class IAuthenticatorUnion(IAuthenticator):
    """Several authenticators as one: the first one that knows the user decides."""

    authenticators: Sequence[IAuthenticator] = Attribute("The authenticators, in the order in which they are asked.")


class IAuthenticatorFactory(Interface):
    """A Twisted plugin that makes an authenticator; authenticators are called in the order of C{rank}."""

    name: str = Attribute("For logs.")
    rank: int = Attribute("Lower ones are asked first: certificates 100, tokens 200, anonymous 1000.")

    def make(options: FlagValues, server: Any) -> IAuthenticator | None:
        """
        Build the authenticator; return L{None} if the options do not enable it.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        @param server: What the server offers to its plugins: L{kubetwist.server.context.PluginContext}. Its C{stores}
            are filled later than this is called, but before the first request comes.
        """


class IAuthorizer(Interface):
    """Allows, denies, or has no opinion; a request without any opinion is denied."""

    name: str = Attribute("As in --authorization-mode.")

    def authorize(attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """Return the decision on a request of a user."""


class IAuthorizerUnion(IAuthorizer):
    """Several authorizers as one: the first one with an opinion decides."""

    authorizers: Sequence[IAuthorizer] = Attribute("The authorizers, in the order in which they are asked.")

    def decisions() -> Iterable[tuple[tuple[str, str, str], int]]:
        """Return the number of decisions by the type and name of the authorizer, and C{"allowed"} or C{"denied"}."""


class IRuleResolver(Interface):
    """An authorizer whose decisions come from rules that can be listed."""

    def rules_for(user: UserInfo, namespace: str) -> JSONObject:
        """
        Return the rules that apply to a user in a namespace, including cluster-wide ones.

        @return: The status of a C{SelfSubjectRulesReview}.
        """


class IRuleExplainer(Interface):
    """An authorizer that can say which of its rules allows something."""

    def explain(attributes: AuthorizerAttributes) -> JSONObject | None:
        """
        Return the rule that allows a request.

        @return: The location of the rule, its content and its subject; L{None} if the authorizer does not allow the
            request.
        """

    def near_misses(attributes: AuthorizerAttributes) -> Iterator[tuple[int, JSONObject] | None]:
        """
        Return the grants that nearly allow the request.

        @return: Pairs of a distance and a description, unordered. C{why} in the description gives the missing part;
            C{remedy}, if present, has a C{command} that grants it and the number of C{rules} that it grants. L{None}
            instead of a pair lets the caller yield to the reactor.
        """


class IGrantExplainer(IRuleExplainer):
    """
    An authorizer with rules that are granted to users, and that can list the grants of a user and propose new ones.
    """

    def grants_of(attributes: AuthorizerAttributes) -> list[JSONObject]:
        """
        Return the grants of the user in the scope of the request, those of the user before those of groups.

        @return: A bounded number of descriptions, each with C{text}, a sentence, and its identifying fields.
        """

    def remedy(attributes: AuthorizerAttributes) -> str:
        """Return shell commands that allow exactly the request."""


class IAuthorizerFactory(Interface):
    """A Twisted plugin that makes an authorizer."""

    name: str = Attribute("As in --authorization-mode.")

    def make(options: FlagValues, server: Any) -> IAuthorizer:
        """
        Build it.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        @param server: As for L{IAuthenticatorFactory.make}.
        """


# --- controllers -------------------------------------------------------------------------------------------------


class IController(Interface):
    """A control loop: watches objects and reconciles dependent objects."""

    name: str = Attribute("As kube-controller-manager spells it.")

    def start() -> None:
        """Begin; the server is ready, and the watch caches are filled."""

    async def stop() -> None:
        """Stop, and return when no work is in progress."""


class IControllerFactory(Interface):
    """A Twisted plugin that makes a controller; C{--controllers} names it."""

    name: str = Attribute("As in --controllers.")
    default: bool = Attribute("Whether C{*} means it.")
    groups: Sequence[str] = Attribute("Names that mean it together with others: C{workloads}.")

    def make(context: Any) -> IController | None:
        """
        Build the controller; return L{None} if it has nothing to do.

        @param context: L{kubetwist.controllers.machinery.context.ControllerContext}.
        """


# --- audit -------------------------------------------------------------------------------------------------------


class IAuditOutput(Interface):
    """Writes audit events to a log or a webhook."""

    def start() -> None:
        """Prepare for writing."""

    def send(events: Sequence[Any], urgent: bool = True) -> Deferred[bool]:
        """
        Write events (L{kubetwist.audit.event.Event}), after those that were sent before.

        @param urgent: Whether a request waits for the events; other events may be delayed to be written in batches.
        @return: Fires with whether all events are written. It does not fail: the output counts and logs lost events.
        """

    async def flush() -> None:
        """Finish pending events promptly, because the server stops."""

    async def stop() -> None:
        """Release all resources; nothing is being sent."""


class IAuditBackend(Interface):
    """Receives the audit events of a server."""

    def start() -> None:
        """Prepare for events."""

    def process(event: Any) -> Deferred[bool] | None:
        """
        Process an event.

        @return: Fires with whether the event was written; L{None} if requests do not wait for it.
        """

    async def stop() -> None:
        """Write all pending events and release all resources. There are no more events."""


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"IForwardStorage": "IBumpableStorage"})

"""
The interfaces of the server: storage backends, capabilities of resources, admission, authentication and authorization.

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
    from .api.resource import GroupVersionKind, JSONObject, UserInfo
    from .api.storage import History, Page, StorageEvent, StoredValue, Write
    from .api.tables import TableDefinition
    from .api.targets import Target
    from .metrics.registry import MetricSnapshot
    from .schema.merge.ownership import Filters

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
    An ordered, watchable store of bytes with one logical clock, independent of HTTP, kinds and admission.

    Its methods, and those of the capabilities below, raise a L{StorageError<kubetwist.storage.errors.StorageError>} and
    nothing else, except for L{MemoryError}.
    """

    revision: int = Attribute("The newest committed revision. It never decreases, not even by a restart.")
    compacted: int = Attribute("The revision before which states cannot be read any more.")
    shared: bool = Attribute(
        "Whether other servers may use the same storage, so that only one of them runs controllers."
    )

    async def open() -> None:
        """
        Open the storage.

        @raise StorageCorrupt: The data is damaged, belongs to another program or has a newer format.
        @raise StorageUnavailable: The storage cannot be reached or written, or another process uses it.
        """

    async def close() -> None:
        """Finish submitted writes, then release all resources. Idempotent."""

    def commit(writes: Sequence[Write]) -> Deferred[int]:
        """
        Commit all of C{writes}, or none of them, as one revision.

        @param writes: At most one write for each key.
        @return: Fires with the new revision when it is durable and the observers in this process have received it.
        @raise KeyExists: A write expects that its key does not exist (revision 0), and it does.
        @raise KeyNotFound: A write expects a revision of a key, or deletes a key, that does not exist.
        @raise RevisionConflict: A key is at another revision than expected. This error and the two before it
            are raised only after the conflicting state is durable and observers have received it.
        @raise StorageUnavailable: Nothing was written, and nothing will be written later.
        @raise OutcomeUnknown: The writes may have been committed, or may be committed later.
        @raise TransformToStorageError: Nothing was written, as a value cannot be encrypted.
        @raise InvalidArgument: There are no writes, several of one key or too many, or a key cannot be encoded.
        """

    async def read(key: str) -> StoredValue:
        """
        Return the newest committed state of one key.

        @raise KeyNotFound: The key does not exist.
        @raise CorruptObjectError: The key exists, but its value cannot be read.
        @raise StorageUnavailable: The store is not open, or does not answer.
        """

    async def read_page(prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        Read values below C{prefix}, all of them at one revision.

        @param prefix: A prefix of keys that ends with a slash.
        @param start: The first key to return; C{""} starts with the first key of the prefix.
        @param limit: The maximum number of values; 0 for no limit.
        @param revision: The revision to read at; 0 for the newest one.
        @return: The page. A value that cannot be read is included with its error.
        @raise RevisionCompacted: The revision is compacted.
        @raise FutureRevision: The revision does not exist yet.
        @raise StorageUnavailable: The store is not open, or does not answer; L{DecryptionUnavailable
            <kubetwist.storage.errors.DecryptionUnavailable>} if the values cannot be decrypted at present.
        """

    async def watch(prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """
        Pass every change below C{prefix} after C{revision} to C{observer}.

        @raise RevisionCompacted: Changes after the revision are compacted.
        @raise FutureRevision: The revision does not exist yet.
        @raise InvalidArgument: C{prefix} does not end with a slash.
        @raise StorageUnavailable: The store is not open, or does not answer.
        """

    async def compact(revision: int) -> None:
        """
        Delete values that were superseded at or before C{revision}, in slices between which writes can run.

        The state at C{revision} itself can still be read, and a watch can start from it.

        @raise FutureRevision: The revision does not exist yet.
        @raise StorageUnavailable: The store is not open, cannot be written, or does not answer.
        """


class ISharedStorage(IStorageBackend):
    """A storage backend shared with other servers; L{kubetwist.storage.wrappers.find_shared_storage} finds it."""

    async def current_revision() -> int:
        """
        Return the newest revision of all servers. It includes every write that was acknowledged before this call.

        @raise StorageUnavailable: The revision cannot be determined.
        """

    async def claim_compaction(revision: int) -> bool:
        """
        Claim the next compaction, so that one of several servers compacts.

        @param revision: The revision to compact to.
        @return: Whether this server compacts: no other server has claimed a compaction since the previous call.
        @raise StorageError: The claim cannot be written.
        """


class IImmediateRevision(Interface):
    """Capability of a shared storage: its newest revision may be known without a request."""

    def newest_revision() -> int | None:
        """
        Return what L{ISharedStorage.current_revision} would return; L{None} if it has to be requested.

        @raise StorageUnavailable: The revision cannot be determined.
        """


class IStorageWrapper(IStorageBackend):
    """A storage backend over another one; L{kubetwist.storage.wrappers.unwrap_backend} finds the innermost one."""

    inner: IStorageBackend = Attribute("The wrapped backend.")


class IExpiringStorage(Interface):
    """Capability of the innermost storage backend: it can list when keys with a time to live expire."""

    async def expiration_times(prefix: str) -> Mapping[str, float]:
        """
        Return the expiry, in seconds since the epoch, of each key below C{prefix} that has a time to live.

        @raise StorageUnavailable: The store does not answer.
        """


class IStorageHistory(Interface):
    """A storage backend whose past changes can be read, with the previous values."""

    async def read_changes(prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        Read the first changes below C{prefix} after one revision, up to another.

        @param prefix: The prefix of keys.
        @param after: Changes after this revision are read.
        @param until: A committed revision greater than C{after}.
        @param max_changes: Approximate maximum number of changes; all changes of a revision are read.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        @return: The changes, at least up to C{after + 1}.
        @raise RevisionCompacted: Changes after C{after} are compacted.
        """


class IBumpableStorage(Interface):
    """Capability of the innermost storage backend: it can skip revisions."""

    async def bump_revision(revision: int) -> None:
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
        Check that writes work; this has no cost as long as they do.

        @raise StorageUnavailable: The store cannot be written.
        """


class IStaleFormatDetector(Interface):
    """A storage backend whose values may be stored in an outdated format."""

    async def is_stale(key: str) -> bool:
        """
        Return whether the value of a key has an outdated format, so that an update without changes must write it.

        @raise CorruptObjectError: The value cannot be read.
        """


class IStorageBackendFactory(Interface):
    """A Twisted plugin that creates storage backends."""

    name: str = Attribute("The value of --storage-backend.")

    def make(options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
        """
        Create a backend, which is not open yet.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        """


# --- capabilities of a resource ----------------------------------------------------------------------------------
#
# A resource has routes for the verbs of its storage object. The interfaces after the verbs describe the resource; they
# are asked for when it is installed, and what it does not provide has a default. Their attributes do not change.
#
# A result is a record for stored objects, and a dict for objects that are created for the response. C{get} and C{list}
# may return their result instead of an awaitable: most reads do not wait.


class ICreator(Interface):
    """Objects can be created: POST on the collection."""

    async def create(scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Record | JSONObject:
        """Store C{obj}, which the caller must not use afterwards; C{generateName} lets the server choose the name."""


class INamedCreator(Interface):
    """An object has a subresource that can be created: POST on C{binding}, C{eviction}, C{token}."""

    async def create_named(
        scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions
    ) -> Record | JSONObject:
        """
        Create the subresource C{obj} of an object.

        @param scope: The resource, namespace and user of the request.
        @param name: The name of the object.
        @param obj: The body of the request, which the caller must not use afterwards.
        @param options: The options of the request.
        @raise APIStatusError: The object does not exist (404), or the request is rejected.
        """


class IGetter(Interface):
    """Single objects can be read."""

    async def get(scope: RequestScope, name: str, options: GetOptions) -> Record | JSONObject:
        """Return the object C{name}."""


class ILister(Interface):
    """Collections can be read."""

    async def list(scope: RequestScope, options: ListOptions) -> Listing:
        """Return the objects that the selectors select."""


class IWatcher(Interface):
    """Changes can be watched."""

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
        Replace an object by the result of C{change}.

        @param scope: The resource, namespace and user of the request.
        @param name: The name of the object.
        @param change: Called with a copy of the newest state, and again after a conflict, so it must be repeatable. It
            is called with L{None} if the object does not exist and PUT may create this kind. It may modify the copy,
            unless it is a L{ReadOnlyChange<kubetwist.api.changes.ReadOnlyChange>}.
        @param options: The options of the request.
        @param patching: Whether the change starts from the current state: a missing resourceVersion is allowed then,
            and an object that does not exist is not created, unless C{creating}.
        @param creating: A patch creates an object that does not exist, as server-side apply does.
        @param may_create: Called before an object is created; raises an L{APIStatusError} if the client is not allowed
            to create it. L{None} allows it.
        @return: The new state and whether the object was created by this call.
        """

    def check_uid(scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """
        Compare the uid in the body C{obj} of a PUT with the uid of the stored C{old}.

        @raise APIStatusError: The uids differ (409).
        """


class IPatcher(IGetter, IUpdater):
    """Objects can be patched: read, change, write back, again after a conflict."""


class IGracefulDeleter(Interface):
    """Single objects can be deleted, immediately or after a grace period and finalizers."""

    async def delete(scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Record | JSONObject, bool]:
        """Delete; return the object's last state and whether it is already deleted."""


class ICorruptObjectDeleter(Interface):
    """Objects whose stored value cannot be decoded can be deleted."""

    async def delete_corrupt(scope: RequestScope, name: str) -> None:
        """
        Delete an object whose stored value cannot be decoded, without admission, preconditions and finalizers.

        @raise APIStatusError: The object can be decoded or does not exist (422).
        """


class ICollectionDeleter(Interface):
    """The objects that a list selects can be deleted."""

    async def delete_collection(scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """Delete each; return a list of the selected objects."""


class IConnecter(Interface):
    """Requests are passed to another server (proxy, exec, logs)."""

    methods: Sequence[str] = Attribute("The HTTP methods that are routed.")
    subpaths: bool = Attribute("Whether paths below the subresource are routed, too.")

    async def connect(scope: RequestScope, name: str, path: str, query: Mapping[str, Sequence[str]]) -> Target | None:
        """
        Return the target of a request.

        @param scope: The resource, namespace and user of the request.
        @param name: The name of the object.
        @param path: The path below the subresource, unescaped: C{""}, C{"/"} or C{"/metrics/cadvisor"}.
        @param query: The values of each parameter of the query.
        @return: The target; L{None} for an empty response, which is not an error.
        @raise APIStatusError: The target does not exist.
        """


class IGetterWithOptions(Interface):
    """Single objects can be read with options, which are the parameters of the query: GET on C{pods/log}."""

    options_kind: GroupVersionKind = Attribute("The kind of the options; OpenAPI has its fields as parameters.")

    def decode_options(query: Mapping[str, Sequence[str]]) -> Any:
        """
        Return the options of a request.

        @param query: The values of each parameter of the query.
        @raise APIStatusError: A parameter is malformed (400).
        """

    async def get_with_options(scope: RequestScope, name: str, options: Any) -> Record | JSONObject | Target | None:
        """
        Return an object, or the server that answers in its place.

        @param scope: The resource, namespace and user of the request.
        @param name: The name of the object.
        @param options: The result of L{decode_options}.
        @return: The object, or the target whose response is sent; L{None} for an empty response, which is not an error.
        @raise APIStatusError: The object does not exist (404), or the options are invalid.
        """


class IStorageMetadata(Interface):
    """
    States media types and kinds of responses that differ from the objects of the resource.

    OpenAPI documents them, and clients may accept them in requests of L{IGetterWithOptions}.
    """

    def produced_media_types(verb: str) -> Sequence[str]:
        """Return further media types of responses to C{verb}: C{["text/plain"]}."""

    def produced_kind(verb: str) -> GroupVersionKind | None:
        """Return the kind of responses to C{verb}; L{None} for text."""


class IScoper(Interface):
    """States the scope of a resource; every resource provides it."""

    namespace_scoped: bool = Attribute("Whether its objects are in namespaces.")


class ISingularNameProvider(Interface):
    """Names a single object of the resource, for discovery; by default it has no such name."""

    singular_name: str = Attribute("The name: C{'deployment'}.")


class IShortNamesProvider(Interface):
    """Has short names, for discovery; by default there are none."""

    short_names: Sequence[str] = Attribute("The names: C{['deploy']}.")


class ICategoriesProvider(Interface):
    """Belongs to groups of resources with a common name, for discovery; by default to none."""

    categories: Sequence[str] = Attribute("The names of the groups: C{['all']}.")


class IStorageVersionProvider(Interface):
    """States in which version objects are stored; by default discovery has no hash of the version."""

    storage_version: GroupVersionKind = Attribute(
        "The kind of stored objects. C{storageVersionHash} of discovery is computed from it, which clients compare to"
        " detect a change."
    )


class ITableConvertor(Interface):
    """Has columns in Tables; by default a resource that can be listed has the name and the creation time."""

    def table(kind: GroupVersionKind, describe: Callable[[str, str], str]) -> TableDefinition:
        """
        Return the columns and rows of a kind; called at the first Table.

        @param kind: The kind of responses.
        @param describe: Returns the description of a field in the type definitions of the release, C{""} without one.
        """


class IResetFieldsProvider(Interface):
    """Restores fields in writes, which clients therefore cannot own; by default clients can own all fields."""

    reset_fields: Filters = Attribute(
        "The fields that clients may own, by the API version of the objects in which they write. A version that is"
        " missing has no such fields."
    )


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


class IBatchSink(IWatchSink):
    """A sink that receives events which happen at the same time together."""

    def send_batch(batch: Any) -> bool:
        """
        Send the events of a batch, all or none.

        @param batch: L{kubetwist.storage.cache.window.EventBatch}, shared by the watches with the same selector; it
            caches the encoded events.
        @return: Whether they were sent; otherwise L{send} is called for each.
        """


class IPacedSink(IWatchSink):
    """A sink that filters what it receives for its reader."""

    full: bool = Attribute("Whether the watch must not send more until L{IPacedWatch.resume} is called.")

    def caught_up() -> None:
        """Handle that all past events were sent. Later events are sent when they happen, even if C{full}."""


class IWatch(Interface):
    """A running watch."""

    revision: int = Attribute("The revision up to which all events were sent, after the initial events.")

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

    name: str = Attribute("The name in --enable-admission-plugins.")

    def handles(operation: str) -> bool:
        """Return whether the plugin handles C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}; called once for each."""


class IAdmissionPluginLimits(Interface):
    """Optional attributes of an admission plugin, which are read once, when the chain is made."""

    resources: Sequence[str] = Attribute(
        "The resources that the plugin handles: C{'pods'}, C{'pods/binding'}, C{'deployments.apps'}, C{'pods/*'};"
        " see L{kubetwist.admission.chain.handles_resource}. All resources if it is missing."
    )
    timeout: float | None = Attribute("Maximum duration of a call, in seconds; 10 by default. L{None} for no limit.")
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

        It is called again for the same request if a later plugin changes the object, so it must be idempotent.

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
    A Twisted plugin that creates an admission plugin.

    It may have the attribute of L{IPlacedAdmissionPluginFactory}, without declaring that interface.
    """

    name: str = Attribute("The name in --enable-admission-plugins.")
    default: bool = Attribute("Whether it is enabled by default.")

    def make(server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """
        Create the plugin.

        @param server: The services of the server for plugins.
        @param configuration: The decoded configuration of the plugin in --admission-control-config-file, or L{None}.
        @raise Exception: The plugin cannot be created; the server does not start and reports the error.
        """


class IPlacedAdmissionPluginFactory(IAdmissionPluginFactory):
    """The factory of a plugin with a position in the order of plugins."""

    after: str = Attribute(
        "The name of the preceding plugin. If it is missing or empty, the plugin follows the built-in plugins and"
        " precedes policies and webhooks."
    )


# --- custom resources --------------------------------------------------------------------------------------------


class IConversionPlugin(Interface):
    """
    A Twisted plugin that converts custom resources between their versions, in this process.

    A CustomResourceDefinition opts in by the annotation C{kubetwist.dev/conversion-plugin}, with the strategy C{None}.
    """

    name: str = Attribute("The value of the annotation.")

    def convert(objects: list[JSONObject], api_version: str) -> list[JSONObject] | Awaitable[list[JSONObject]]:
        """
        Convert objects of one kind and version to another version.

        It is called in the reactor's thread, with a few objects at a time. Changes of metadata other than labels and
        annotations are ignored.

        @param objects: Copies of the objects, with C{kind} and C{apiVersion}.
        @param api_version: The desired version: C{"stable.example.com/v2"}.
        @return: The same number of objects in the same order, or an awaitable of them.
        @raise ValueError: An object cannot be converted; the text is returned to clients.
        """


# --- authentication and authorization ----------------------------------------------------------------------------


class IClientConnection(Interface):
    """The part of a connection that authenticators use."""

    remembered: dict[object, Any] = Attribute(
        "Facts about the client that are valid for all requests of the connection; each module uses another key."
    )

    def peer_certificates() -> Sequence[X509]:
        """Return the certificate of the client and its chain; an empty sequence without TLS or certificate."""


class IAuthenticationRequest(Interface):
    """The part of a request (L{kubetwist.http.request.KubeRequest}) that authenticators use."""

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
    """Several authenticators as one: the first one that returns a user decides."""

    authenticators: Sequence[IAuthenticator] = Attribute("The authenticators, in the order in which they are called.")


class IAuthenticatorFactory(Interface):
    """A Twisted plugin that creates an authenticator; authenticators are called in the order of C{rank}."""

    name: str = Attribute("The name in logs.")
    rank: int = Attribute("The position; lower ranks are called first: certificates 100, tokens 200, anonymous 1000.")

    def make(options: FlagValues, server: Any) -> IAuthenticator | None:
        """
        Create the authenticator; return L{None} if the options do not enable it.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        @param server: The services of the server for plugins, L{kubetwist.server.context.PluginContext}. Its C{stores}
            are filled after this call and before the first request.
        """


class IAuthorizer(Interface):
    """Allows or denies a request, or has no opinion; a request that no authorizer allows is denied."""

    name: str = Attribute("The name in --authorization-mode.")

    def authorize(attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """Return the decision on a request of a user."""


class IAuthorizerUnion(IAuthorizer):
    """Several authorizers as one: the first one with an opinion decides."""

    authorizers: Sequence[IAuthorizer] = Attribute("The authorizers, in the order in which they are called.")

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
    """An authorizer that can report which of its rules allows a request."""

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
    """A Twisted plugin that creates an authorizer."""

    name: str = Attribute("The name in --authorization-mode.")

    def make(options: FlagValues, server: Any) -> IAuthorizer:
        """
        Create the authorizer.

        @param options: The parsed command line, L{kubetwist.cli.kubeapi.Options}.
        @param server: The services of the server for plugins, as for L{IAuthenticatorFactory.make}.
        """


# --- controllers -------------------------------------------------------------------------------------------------


class IController(Interface):
    """A control loop: watches objects and reconciles dependent objects."""

    name: str = Attribute("The name that kube-controller-manager uses.")

    def start() -> None:
        """Start; the server is ready, and the watch caches are filled."""

    async def stop() -> None:
        """Stop, and return when no work is in progress."""


class IControllerFactory(Interface):
    """A Twisted plugin that creates a controller."""

    name: str = Attribute("The name in --controllers.")
    default: bool = Attribute("Whether C{*} in --controllers includes it.")
    groups: Sequence[str] = Attribute("Names of groups that include it: C{workloads}.")

    def make(context: Any) -> IController | None:
        """
        Create the controller; return L{None} if it has nothing to do.

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
    __getattr__ = renamed_names(
        __name__,
        {
            "IForwardStorage": "IBumpableStorage",
            "IRewriting": "IStaleFormatDetector",
            "IUnreadableDeleter": "ICorruptObjectDeleter",
        },
    )

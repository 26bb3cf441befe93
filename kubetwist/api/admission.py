"""Attributes of a request as admission plugins see them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from .authorization import Authorizer
from .errors import APIStatusError
from .featuregates import FeatureGates
from .frozen import frozen
from .names import is_qualified_name
from .options import (
    DeleteOptions,
    WriteOptions,
    options_object,
)
from .resource import (
    GroupResource,
    GroupVersionKind,
    GroupVersionResource,
    JSONObject,
    UserInfo,
)
from .storage import Write

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"
OPERATIONS: Final = (CREATE, UPDATE, DELETE, CONNECT)

#: Audit levels of annotations, from low to high.
AUDIT_LEVELS: Final = ("Metadata", "Request", "RequestResponse")


#: Writes an object and other writes in one transaction; returns its revision.
Commit = Callable[[Sequence[Write]], Awaitable[int]]
#: Adds a plugin's writes to the transaction of the request: it receives a L{Commit} and must call it.
Charge = Callable[[Commit], Awaitable[int]]


#: Old names of the methods of L{AdmissionContext}, and the new ones.
RENAMED_CONTEXT_METHODS: Final[Mapping[str, str]] = {
    "appears": "wait_for_object",
    "commit_with": "commit_with_status_updates",
    "load": "ensure_cached",
    "loaders": "list_lazy",
    "lookup": "get_copy",
    "lookup_all": "list_copies",
    "resources_of": "resources_for_kind",
    "view": "get_decoded",
    "views": "list_decoded",
}


class AdmissionContext(Protocol):
    """
    The services that the server offers to admission plugins.

    @ivar reactor: The reactor, or a clock in tests.
    @ivar toleration_seconds: How long pods stay on a node that is not ready, and on one that cannot be reached:
        C{--default-not-ready-toleration-seconds}, C{--default-unreachable-toleration-seconds}.
    """

    reactor: Any
    toleration_seconds: tuple[int, int]

    @property
    def authorizer(self) -> Authorizer | None:
        """Return the authorizer for further permission checks; L{None} allows none."""

    @property
    def outgoing(self) -> object | None:
        """
        Return the factory of clients, L{kubetwist.client.factory.ClientFactory}; L{None} without outgoing requests.
        """

    @property
    def release(self) -> str:
        """Return the Kubernetes release that the server emulates: C{"1.36"}."""

    @property
    def features(self) -> FeatureGates:
        """Return the feature gates and the release of the server, which plugins ask when they are created."""

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """
        Return a copy of an object in the watch caches, without I/O; L{None} if it does not exist.

        @param group: The API group.
        @param resource: The plural name.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name.
        @raise StorageUnavailable: The cache is not filled yet, see L{ensure_cached}.
        """

    def list_copies(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return copies of all objects of a namespace, or of all namespaces for C{""}, as L{get_copy} does."""

    async def ensure_cached(self, group: str, resource: str) -> bool:
        """
        Fill the cache of a resource, so that the other methods return its objects, in the stored version.

        The caches of built-in resources are filled at the start, except for config maps, events, jobs, replica sets and
        controller revisions if there are more than 500: before they are filled, the other methods fail.

        @return: Whether the resource is served.
        """

    def get_decoded(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """
        Return the object like L{get_copy}, but shared, frozen and decoded once for all callers.

        @param group: The API group.
        @param resource: The plural name.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name.
        """

    async def wait_for_object(
        self, group: str, resource: str, namespace: str, name: str, seconds: float
    ) -> JSONObject | None:
        """
        Return the object like L{get_decoded}, but wait for its creation if it does not exist.

        @param group: The API group.
        @param resource: The plural name.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name.
        @param seconds: Maximum time to wait.
        @return: The object; L{None} if it was not created in time.
        """

    def list_decoded(self, group: str, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return the objects like L{list_copies}, but shared and frozen."""

    def list_lazy(self, group: str, resource: str, namespace: str = "") -> list[Callable[[], JSONObject]]:
        """Return a function for each object of L{list_copies} that makes the copy when it is called, to save memory."""

    def resources_for_kind(self, group: str, version: str, kind: str) -> list[tuple[str, bool]]:
        """Return the served resources of a kind, each with whether it is namespaced."""

    async def create(self, group: str, resource: str, namespace: str, obj: JSONObject) -> None:
        """
        Create an object as the user C{system:apiserver}.

        @param group: The API group.
        @param resource: The plural name.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param obj: The object in the stored version; absent fields are defaulted.
        @raise APIStatusError: The object exists, or is rejected.
        """

    async def commit_with_status_updates(
        self,
        commit: Commit,
        group: str,
        resource: str,
        namespace: str,
        names: Sequence[str],
        change: Callable[[JSONObject], None],
    ) -> int:
        """
        Change the status of stored objects in the transaction of a write.

        @param commit: Commits the write of the request together with the given writes.
        @param group: The group of the objects.
        @param resource: The resource of the objects: C{"resourcequotas"}.
        @param namespace: The namespace of the objects.
        @param names: The names of the objects; those that do not exist any more are skipped.
        @param change: Modifies the newest state of an object; called again after a conflict.
        @return: The revision of the write.
        @raise APIStatusError: An error that C{change} raised.
        """


class ReinvocationContext:
    """
    State of the two rounds of the mutating phase; in the second round plugins see the changes of later plugins.

    @ivar is_reinvoke: Whether this is the second round.
    @ivar should_reinvoke: Whether a plugin requested the second round.
    @ivar plugin_values: State of plugins from the first round, by the name of the plugin.
    @see: kubernetes/apiserver, C{pkg/admission/reinvocation.go}.
    """

    __slots__ = ("is_reinvoke", "plugin_values", "should_reinvoke")

    def __init__(self) -> None:
        self.is_reinvoke = False
        self.should_reinvoke = False
        self.plugin_values: dict[str, Any] = {}

    def request_reinvocation(self) -> None:
        """Request a second run of all mutating plugins; there is no third run."""
        self.should_reinvoke = True


class AdmissionAttributes:
    """
    The attributes of a write or of a CONNECT request.

    @ivar object: The object to be stored; mutating plugins change it in place. For DELETE it is L{None}, for CONNECT
        the options in the query (C{PodExecOptions}). For subresources with another kind (C{Scale}, C{Binding}) it is
        that kind.
    @ivar operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
    @ivar resource: The plural; C{subresource} is C{""} for the main resource.
    @ivar version: The version of the request.
    @ivar kind: The kind of C{object} in the request.
    @ivar object_kind: The kind and version of C{object} and C{old_object}: built-in kinds are in the storage version,
        custom resources in the version of the request. The objects have no reliable C{kind} and C{apiVersion} fields.
    @ivar name: The name in the path; C{""} if the server generates it. Objects of kind Namespace are in the
        namespace:
        C{namespace} is their name.
    """

    __slots__ = (
        "_annotate",
        "_old",
        "_options",
        "_warn",
        "annotations",
        "charges",
        "computing",
        "context",
        "deadline",
        "dry_run",
        "group",
        "in_thread",
        "kind",
        "name",
        "namespace",
        "object",
        "object_kind",
        "operation",
        "reinvocation",
        "request_kind",
        "resource",
        "subresource",
        "user",
        "version",
    )

    def __init__(
        self,
        operation: str,
        group: str,
        version: str,
        resource: str,
        subresource: str,
        kind: str,
        namespace: str,
        name: str,
        object: JSONObject | None,
        old: JSONObject | Callable[[], JSONObject] | None,
        user: UserInfo,
        dry_run: bool,
        context: AdmissionContext,
        options: WriteOptions | DeleteOptions | None = None,
        *,
        request_kind: GroupVersionKind | None = None,
        object_kind: GroupVersionKind | None = None,
        warn: Callable[[str], object] | None = None,
        annotate: Callable[[str, str, str], object] | None = None,
        deadline: float | None = None,
        computing: Callable[..., Awaitable[Any]] | None = None,
        in_thread: Callable[..., Awaitable[Any]] | None = None,
    ) -> None:
        """
        @param operation: C{CREATE}, C{UPDATE}, C{DELETE} or C{CONNECT}.
        @param group: The API group.
        @param version: The version of the request.
        @param resource: The plural name.
        @param subresource: The subresource; C{""} for the main resource.
        @param kind: The kind of C{object} in the request.
        @param namespace: The namespace; C{""} for cluster-scoped resources.
        @param name: The name in the path; C{""} if the server generates it.
        @param object: The object to be stored; L{None} for DELETE.
        @param old: The stored object, or a function that copies it when it is needed.
        @param user: The user of the request.
        @param dry_run: Whether nothing is stored.
        @param context: The services of the server.
        @param options: The options of the request.
        @param request_kind: The kind that clients of this endpoint send; by default in the group of the resource.
        @param object_kind: The kind of the objects, if it differs.
        @param warn: Sends a warning to the client.
        @param annotate: Takes key, value and level of an audit annotation.
        @param deadline: Deadline of the request, in the reactor's time.
        @param computing: Calls a function with arguments in the computation thread; L{None} for objects that are not
            large.
        @param in_thread: The same for objects of any size; L{None} if there is no computation thread.
        """
        self.operation = operation
        self.group = group
        self.version = version
        self.resource = resource
        self.subresource = subresource
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.object = object
        self._old = old
        self.user = user
        self.dry_run = dry_run
        self.context = context
        self._options = options
        self.request_kind = request_kind or GroupVersionKind(group, version, kind)
        self.object_kind = object_kind or self.request_kind
        self._warn = warn
        self._annotate = annotate
        self.deadline = deadline
        self.computing = computing
        self.in_thread = in_thread
        self.annotations: dict[str, tuple[str, str]] | None = None
        self.reinvocation: ReinvocationContext | None = None
        self.charges: list[Charge] = []

    @property
    def old_object(self) -> JSONObject | None:
        """Return the stored object, frozen; for DELETE the object being deleted. L{None} for CREATE and CONNECT."""
        old = self._old
        if old is None:
            return None
        if callable(old) or type(old) is dict:
            old = self._old = frozen(old() if callable(old) else old)
        return old

    @property
    def request_resource(self) -> GroupVersionResource:
        """Return the resource in the version of the request."""
        return GroupVersionResource(self.group, self.version, self.resource)

    @property
    def options(self) -> JSONObject | None:
        """
        Return the C{CreateOptions}, C{UpdateOptions} or C{DeleteOptions} of the request; L{None} for CONNECT.

        A PATCH has the options of a create or an update, depending on whether the object exists.
        """
        return None if self._options is None else options_object(self._options, self.operation)

    @property
    def group_resource(self) -> GroupResource:
        """Return the resource for error messages."""
        return GroupResource(self.group, self.resource)

    @property
    def shown_name(self) -> str:
        """Return the object's name for error messages: C{generateName} while there is no name."""
        if self.name:
            return self.name
        obj = self.object
        if obj is None:
            return "Unknown"
        meta = obj.get("metadata")
        if not isinstance(meta, dict):
            return "Unknown/errorGettingName"
        return meta.get("name") or meta.get("generateName") or "Unknown"

    def forbidden(self, why: str) -> APIStatusError:
        """Return the 403 of a plugin that refuses."""
        return APIStatusError.forbidden(self.group_resource, self.shown_name, why)

    def charge(self, charge: Charge) -> None:
        """
        Add writes to the transaction of this request.

        For validating plugins; a dry run writes nothing.
        """
        self.charges.append(charge)

    def warn(self, text: str) -> None:
        """Send a warning to the client in a C{Warning} header."""
        if self._warn is not None:
            self._warn(text)

    def annotate(self, key: str, value: str, level: str = "Metadata") -> None:
        """
        Add an annotation to the audit event.

        @param key: A domain, a slash and a name: C{"podsecurity.example.org/violations"}.
        @param level: The lowest audit level at which it is recorded.
        @raise ValueError: The key is malformed, or has another value already.
        """
        if key.count("/") != 1 or not is_qualified_name(key):
            raise ValueError(f"invalid audit annotation key {key!r}: must be <domain>/<name>")
        if level not in AUDIT_LEVELS:
            raise ValueError(f"invalid audit level {level!r}")
        known = self.annotations
        if known is None:
            known = self.annotations = {}
        if known.setdefault(key, (value, level)) != (value, level):
            raise ValueError(
                f"admission annotations are not allowed to be overwritten: {key}: {known[key]}, not {value!r}"
            )
        if self._annotate is not None:
            self._annotate(key, value, level)

"""The context of a request for the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve

from .errors import FieldError
from .renamed import renamed_attributes
from .resource import UserInfo


def discard(text: str) -> None:
    """Discard a warning, for writes by the server."""


def ignore_audit_annotation(key: str, value: str, level: str) -> None:
    """Discard an audit annotation, for writes by the server."""


#: Maximum size, in bytes of JSON, of objects that are decoded, validated and merged in the reactor's thread. The
#: slowest kinds take about a microsecond per byte.
MAX_SIZE_IN_REACTOR: Final = 32 * 1024
#: The user of writes by the server.
SYSTEM_USER = UserInfo("system:apiserver", groups=("system:masters",))


@define
class RequestScope:
    """
    The attributes of a request that stores and strategies use.

    @ivar namespace: From the path; C{""} for cluster-scoped resources and for all namespaces.
    @ivar warn: Receives a text for a Warning header.
    @ivar user_agent: The header as sent.
    @ivar version: The version in the path; C{""} for the stored version.
    @ivar deadline: Deadline of the request, in the reactor's time; L{None} for none.
    @ivar admitted: Whether admission has already run on another form of this request.
    @ivar from_storage: Whether to read from the storage, since the cache is behind.
    @ivar collection: Whether the request is a deletecollection, which admission sees without a name.
    @ivar applied: Whether the object is the result of an apply. A custom object may then have nulls and unknown fields,
        which are dropped when it is read again.
    @ivar annotate: Takes key, value and level of an audit annotation.
    @ivar sent: The body that the object was decoded from, with the empty lists and maps that decoding drops.
    @ivar dry_run: Whether nothing is stored; the reference's messages then have keys without a prefix.
    @ivar floats: The body of a custom resource that may have whole floats, which decoding converts to integers.
    @ivar size: Size of the request's body, in bytes.
    @ivar weight: Cost of a byte relative to other kinds.
    @ivar in_thread: Calls a function with arguments in the computation thread and returns an awaitable of its result;
        L{None} if everything is computed immediately.
    @ivar ignores_error: Returns whether a validation error is ignored, for writes by the server; L{None} ignores none.
    @ivar pause: Returns an awaitable that lets the reactor serve other requests; L{None} if everything is computed
        immediately.
    """

    namespace: str = ""
    user: UserInfo = SYSTEM_USER
    warn: Callable[[str], object] = discard
    user_agent: str = ""
    version: str = ""
    annotate: Callable[[str, str, str], object] = ignore_audit_annotation
    deadline: float | None = None
    admitted: bool = False
    from_storage: bool = False
    collection: bool = False
    applied: bool = False
    sent: Any = None
    dry_run: bool = False
    floats: Any = None
    size: int = 0
    weight: int = 1
    in_thread: Callable[..., Any] | None = None
    pause: Callable[[], Any] | None = None
    ignores_error: Callable[[FieldError], bool] | None = None

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes("RequestScope", {"forgives": "ignores_error", "large": "is_large"})

    def is_large(self, size: int = 0) -> bool:
        """
        Return whether computations on the object run in the computation thread.

        @param size: Bytes of JSON that the computation reads besides the body.
        """
        if size < self.size:
            size = self.size
        return size * self.weight > MAX_SIZE_IN_REACTOR and self.in_thread is not None

    async def compute(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """
        Call a function: immediately for small objects, in the computation thread for L{is_large} ones.

        @param function: Accesses only its arguments and immutable objects.
        @param size: As in L{is_large}.
        """
        if self.is_large(size) and self.in_thread is not None:
            return await self.in_thread(function, *arguments)
        return function(*arguments)

    def within(self, namespace: str) -> RequestScope:
        """Return the same request, limited to one namespace."""
        return evolve(self, namespace=namespace)

    def of_collection(self) -> RequestScope:
        """Return the same request without the name of an object."""
        return evolve(self, collection=True)

    def without_admission(self) -> RequestScope:
        """Return the same request, marked as already admitted."""
        return evolve(self, admitted=True, sent=None, floats=None)

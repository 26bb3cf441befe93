"""What the store knows of the request it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import define, evolve

from ..api.errors import Cause
from ..api.resource import UserInfo
from ..cel.sparing import TakesLong, briefly


def discard(text: str) -> None:
    """A place for warnings that nobody reads: those of writes the server makes itself."""


def discard_annotation(key: str, value: str, level: str) -> None:
    """The same for audit annotations."""


#: Bytes of JSON of an object up to which it is decoded, validated and merged in the reactor's thread: the slowest kinds
#: take about a microsecond for each.
IN_REACTOR: Final = 32 * 1024
#: Who the server is when it writes by itself.
SYSTEM_USER = UserInfo("system:apiserver", groups=("system:masters",))


@define
class RequestScope:
    """
    One request, as far as the rules of resources depend on it.

    @ivar namespace: From the path; C{""} for cluster-scoped resources and for all namespaces.
    @ivar warn: Takes a text for a Warning header.
    @ivar user_agent: As sent.
    @ivar version: That the request names the resource in; C{""} for the version that is stored.
    @ivar deadline: When the request is over, in the reactor's time; L{None} for never.
    @ivar admitted: Admission was asked about this already, in another form: the server only carries it out.
    @ivar from_storage: The cache is behind and must not be asked.
    @ivar collection: The request is a deletecollection: admission sees no name.
    @ivar applied: The object is the result of an apply. A custom object may then have nulls and unknown fields,
        which are dropped when it is read again.
    @ivar annotate: Takes key, value and level of an annotation of the audit event.
    @ivar sent: What the object was decoded from, with the empty lists and maps that decoding drops.
    @ivar dry_run: Nothing is stored; the reference's storage calls keys without its prefix then.
    @ivar floats: What a custom resource was decoded from, if it may have whole floats, which decoding makes integers.
    @ivar size: Bytes of the request's body.
    @ivar weight: How many times as long a byte takes as one of other kinds.
    @ivar in_thread: Calls a function with arguments in the thread for long computations, and returns an awaitable of
        its result; L{None} where everything is done at once.
    @ivar forgives: Whether something that is wrong with an object does not count, as the server itself writes it;
        L{None} forgives nothing.
    @ivar pause: Returns an awaitable that lets others have a turn of the reactor; L{None} likewise.
    """

    namespace: str = ""
    user: UserInfo = SYSTEM_USER
    warn: Callable[[str], object] = discard
    user_agent: str = ""
    version: str = ""
    annotate: Callable[[str, str, str], object] = discard_annotation
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
    forgives: Callable[[Cause], bool] | None = None

    def large(self, size: int = 0) -> bool:
        """
        Whether what is computed of the object is to be computed in a thread.

        @param size: Bytes of JSON that the computation reads besides the body.
        """
        return self.in_thread is not None and max(self.size, size) * self.weight > IN_REACTOR

    async def compute(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """
        Call a function: at once for small objects, in the thread for long computations for L{large} ones.

        @param function: Touches nothing but its arguments, and what does not change.
        @param size: As in L{large}.
        """
        if self.in_thread is not None and max(self.size, size) * self.weight > IN_REACTOR:
            return await self.in_thread(function, *arguments)
        return function(*arguments)

    async def compute_rules(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """
        As L{compute} of a function that may evaluate expressions: where these cost much, it is called again there.

        @param function: It may be called twice with the same arguments.
        """
        if self.in_thread is None or max(self.size, size) * self.weight > IN_REACTOR:
            return await self.compute(size, function, *arguments)
        try:
            return briefly(function, *arguments)
        except TakesLong:
            return await self.in_thread(function, *arguments)

    def within(self, namespace: str) -> RequestScope:
        """The same request, as it concerns one namespace."""
        return evolve(self, namespace=namespace)

    def of_collection(self) -> RequestScope:
        """The same request, as one that names no object."""
        return evolve(self, collection=True)

    def carrying_out(self) -> RequestScope:
        """The same request, of which admission was asked already."""
        return evolve(self, admitted=True, sent=None, floats=None)

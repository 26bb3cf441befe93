"""The parts of a request that metrics and logs read, which is defined above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Named(Protocol):
    """A user, a priority level or a flow schema."""

    @property
    def name(self) -> str:
        """Its name."""


class AssignedRequest(Protocol):
    """The flow that a request belongs to: L{kubetwist.flowcontrol.controller.Assignment}."""

    @property
    def level(self) -> Named:
        """Its priority level."""

    @property
    def schema(self) -> Named:
        """Its flow schema."""


class MeasuredInfo(Protocol):
    """What a request is about: L{kubetwist.http.requestinfo.RequestInfo}."""

    #: A place for what is looked up for requests like this.
    counted: Any
    path: str
    verb: str
    group: str
    version: str
    namespace: str
    resource: str
    subresource: str
    name: str
    parts: tuple[str, ...]
    long_running: bool
    is_resource_request: bool


class MeasuredRequest(Protocol):
    """A request: L{kubetwist.http.request.KubeRequest}. All times are in seconds of L{time.perf_counter}."""

    #: When it was allowed; 0 as long as it is not.
    authorized_at: float

    @property
    def info(self) -> MeasuredInfo:
        """What it is about; not set if its path breaks off."""

    @property
    def begun(self) -> float:
        """When it was received."""

    @property
    def authenticated_at(self) -> float:
        """When its user was known; 0 as long as it is not."""

    @property
    def waited(self) -> float:
        """Seconds that were not the server's own."""

    @property
    def queued_for(self) -> float:
        """Seconds in a queue."""

    @property
    def times(self) -> Mapping[str, float] | None:
        """Seconds by what they went into; L{None} when that is not measured."""

    @property
    def user(self) -> Named | None:
        """Its user; L{None} until that is known."""

    @property
    def impersonator(self) -> Named | None:
        """The user that acts as C{user}."""

    @property
    def assigned(self) -> AssignedRequest | None:
        """The flow that it belongs to."""

    @property
    def method(self) -> bytes:
        """The HTTP method."""

    @property
    def uri(self) -> bytes:
        """Path and query."""

    @property
    def path(self) -> bytes:
        """The path."""

    @property
    def clientproto(self) -> bytes:
        """The version of HTTP."""

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters of the query."""

    @property
    def fields(self) -> Mapping[bytes, Sequence[bytes]]:
        """The header fields, by names in lower case."""

    @property
    def user_agent(self) -> str:
        """The header field of that name."""

    @property
    def audit_id(self) -> str:
        """The name of the request in logs."""

    @property
    def client(self) -> Any:
        """The address of the other end of the connection."""

    @property
    def body_length(self) -> int | None:
        """Bytes of its body; L{None} if that is not known."""

    @property
    def code(self) -> int:
        """The code of its answer."""

    @property
    def startedWriting(self) -> int:
        """Whether the answer has begun."""

    @property
    def sentLength(self) -> int:
        """Bytes of the answer's body."""

    @property
    def switched(self) -> bool:
        """Whether the connection is another protocol's."""

    @property
    def terminated(self) -> int:
        """The code with which the server put an end to it; 0 if it did not."""

    def header(self, name: bytes) -> bytes | None:
        """Return the last value of a header field."""

"""Protocols of the parts of a request that metrics and logs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Named(Protocol):
    """A user, a priority level or a flow schema."""

    @property
    def name(self) -> str:
        """Its name."""


class ClassifiedRequest(Protocol):
    """The flow that a request belongs to: L{kubetwist.flowcontrol.controller.Classification}."""

    @property
    def level(self) -> Named:
        """Its priority level."""

    @property
    def schema(self) -> Named:
        """Its flow schema."""


class MeasuredInfo(Protocol):
    """The parsed request: L{kubetwist.http.requestinfo.RequestInfo}."""

    #: Cached series of requests with this info.
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

    #: Time of authorization; 0 before.
    authorized_at: float

    @property
    def info(self) -> MeasuredInfo:
        """Return the request info; not set if the path is incomplete."""

    @property
    def started_at(self) -> float:
        """Return the time of its arrival."""

    @property
    def authenticated_at(self) -> float:
        """Return the time of authentication; 0 before."""

    @property
    def non_sli_seconds(self) -> float:
        """Return the seconds that the SLI excludes: webhooks and queue."""

    @property
    def apf_queue_seconds(self) -> float:
        """Return the seconds in a queue of priority and fairness."""

    @property
    def times(self) -> Mapping[str, float] | None:
        """Return the seconds per component; L{None} if they are not measured."""

    @property
    def user(self) -> Named | None:
        """Return the user; L{None} before authentication."""

    @property
    def impersonator(self) -> Named | None:
        """Return the user that impersonates C{user}."""

    @property
    def apf_classification(self) -> ClassifiedRequest | None:
        """Return its classification by priority and fairness."""

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
        """Return whether the connection was switched to another protocol."""

    @property
    def termination_code(self) -> int:
        """Return the status code with which the server terminated it; 0 if it did not."""

    def header(self, name: bytes) -> bytes | None:
        """Return the last value of a header field."""

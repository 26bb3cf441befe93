"""Protocols of the parts of a request that metrics and logs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Named(Protocol):
    """A user, a priority level or a flow schema."""

    @property
    def name(self) -> str:
        """The name."""


class ClassifiedRequest(Protocol):
    """Flow schema and priority level of a request: L{kubetwist.flowcontrol.controller.Classification}."""

    @property
    def level(self) -> Named:
        """The priority level."""

    @property
    def schema(self) -> Named:
        """The flow schema."""


class MeasuredInfo(Protocol):
    """Information about a request: L{kubetwist.http.requestinfo.RequestInfo}."""

    #: Cached series of requests with this information.
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

    #: Time of authorization; 0 before it.
    authorized_at: float

    @property
    def info(self) -> MeasuredInfo:
        """The request information. Not set if the path is incomplete."""

    @property
    def started_at(self) -> float:
        """The time of arrival."""

    @property
    def authenticated_at(self) -> float:
        """The time of authentication; 0 before it."""

    @property
    def non_sli_seconds(self) -> float:
        """The seconds that the SLI excludes: webhooks and queue wait."""

    @property
    def apf_queue_seconds(self) -> float:
        """The seconds in a queue of priority and fairness."""

    @property
    def times(self) -> Mapping[str, float] | None:
        """The seconds per component, or L{None} if they are not measured."""

    @property
    def user(self) -> Named | None:
        """The user; L{None} before authentication."""

    @property
    def impersonator(self) -> Named | None:
        """The user that impersonates C{user}, or L{None}."""

    @property
    def apf_classification(self) -> ClassifiedRequest | None:
        """The classification by priority and fairness, or L{None}."""

    @property
    def method(self) -> bytes:
        """The HTTP method."""

    @property
    def uri(self) -> bytes:
        """The path and query."""

    @property
    def path(self) -> bytes:
        """The path."""

    @property
    def clientproto(self) -> bytes:
        """The HTTP version."""

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The query parameters."""

    @property
    def fields(self) -> Mapping[bytes, Sequence[bytes]]:
        """The header fields, by lower-case name."""

    @property
    def user_agent(self) -> str:
        """The header field User-Agent."""

    @property
    def audit_id(self) -> str:
        """The audit id."""

    @property
    def client(self) -> Any:
        """The address of the peer."""

    @property
    def body_length(self) -> int | None:
        """The length of the request body in bytes, or L{None} if unknown."""

    @property
    def code(self) -> int:
        """The status code of the response."""

    @property
    def startedWriting(self) -> int:
        """Whether the response was started."""

    @property
    def sentLength(self) -> int:
        """The length of the response body in bytes."""

    @property
    def switched(self) -> bool:
        """Whether the connection was switched to another protocol."""

    @property
    def termination_code(self) -> int:
        """The status code with which the server terminated the request; 0 if it did not."""

    def header(self, name: bytes) -> bytes | None:
        """Return the last value of a header field, or L{None}."""

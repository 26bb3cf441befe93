"""Errors of calls to a member of etcd, by the known outcome of the request."""

from __future__ import annotations

from typing import Final

from txaioetcd import Error

from ..errors import StorageError

# The codes of gRPC used here.
OK: Final = 0
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
ABORTED: Final = 10
OUT_OF_RANGE: Final = 11
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
DATA_LOSS: Final = 15
UNAUTHENTICATED: Final = 16

#: The codes after which a write may have been applied, or may still be; other codes are refusals.
_UNCERTAIN: Final = frozenset({CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, ABORTED, INTERNAL, UNAVAILABLE, DATA_LOSS})


class NotSent(Exception):
    """The member cannot be reached, or refused the request: it was certainly not applied."""


class NoResponse(Exception):
    """The request was sent, but got no response: it may have been applied."""


class ResponseTimeout(NoResponse):
    """The response did not arrive before the timeout."""


class ProtocolError(StorageError):
    """The response is not etcd's: it is no HTTP/2, no gRPC, or no message of etcd."""


class RPCError(Error):  # type: ignore[misc] # txaioetcd has no annotations
    """
    etcd refuses a request.

    @ivar code: The code of gRPC.
    @ivar message: The text of etcd: C{"etcdserver: request is too large"}.
    """

    code: int
    message: str

    def __str__(self) -> str:
        return self.message

    @property
    def compacted(self) -> bool:
        """The requested revision is compacted."""
        return self.code == OUT_OF_RANGE and "compacted" in self.message

    @property
    def future(self) -> bool:
        """The requested revision is in the future."""
        return self.code == OUT_OF_RANGE and "future" in self.message

    @property
    def uncertain(self) -> bool:
        """Return whether a write with this error may have been applied, or may still be."""
        return self.code in _UNCERTAIN

    @property
    def retry_other_member(self) -> bool:
        """Return whether another member may respond differently."""
        return self.uncertain or self.message.endswith(("too many requests", "rpc not supported for learner"))

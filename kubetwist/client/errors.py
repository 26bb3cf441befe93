"""Errors of calls, with the texts of Go's C{net/http}, which users know from the reference."""

from __future__ import annotations

from typing import Final

from ..api.go.quote import quoted

#: The error for a certificate that has only a common name, which does not count for verification.
COMMON_NAME_ONLY: Final = "x509: certificate relies on legacy Common Name field, use SANs instead"


class CallError(Exception):
    """
    A call without a complete response; the text is Go's.

    @ivar reason: The text without the method and the URL.
    @ivar timed_out: Whether it timed out.
    @ivar retriable: Whether the connection broke, so that a retry may succeed.
    @ivar sent: Whether the server may have received the request.
    """

    def __init__(
        self,
        method: str,
        url: str,
        reason: str,
        *,
        timed_out: bool = False,
        retriable: bool = False,
        sent: bool = True,
    ) -> None:
        """
        @param method: The HTTP method.
        @param url: The URL.
        @param reason: See above, as C{timed_out}, C{retriable} and C{sent}.
        """
        super().__init__(f"{method.capitalize()} {quoted(url)}: {reason}")
        self.reason = reason
        self.timed_out = timed_out
        self.retriable = retriable
        self.sent = sent


class Unreachable(Exception):
    """
    A connection that failed or broke; the text is the part after the URL in a L{CallError}.

    @ivar retriable: As in L{CallError}.
    @ivar sent: As in L{CallError}.
    """

    sent = True

    def __init__(self, reason: str, *, retriable: bool = False) -> None:
        super().__init__(reason)
        self.retriable = retriable


class AddressNotAllowed(Unreachable):
    """The server must not connect to that address."""


class NoSuchHost(Unreachable):
    """A name resolves to no address."""


class InvalidRESTConfig(ValueError):
    """Invalid settings of a client; the text is the reason."""

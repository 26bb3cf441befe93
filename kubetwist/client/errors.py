"""Errors of calls, with the texts of Go's C{net/http}, which users know from the reference."""

from __future__ import annotations

from typing import Final

from ..api.go.quote import quoted

#: The error for a certificate that has only a common name, which does not count for verification.
COMMON_NAME_ONLY: Final = "x509: certificate relies on legacy Common Name field, use SANs instead"


class CallError(Exception):
    """
    A call to which there is no whole answer; the text is Go's.

    @ivar why: The text without the method and the URL in front.
    @ivar timed_out: Its time was up.
    @ivar retriable: The other side broke off: the same call may do better in a moment.
    """

    def __init__(self, method: str, url: str, why: str, *, timed_out: bool = False, retriable: bool = False) -> None:
        super().__init__(f"{method.capitalize()} {quoted(url)}: {why}")
        self.why = why
        self.timed_out = timed_out
        self.retriable = retriable


class Unreachable(Exception):
    """
    A connection that was not made, or broke; the text is what stands behind the URL in a L{CallError}.

    @ivar retriable: As in L{CallError}.
    """

    def __init__(self, why: str, *, retriable: bool = False) -> None:
        super().__init__(why)
        self.retriable = retriable


class AddressNotAllowed(Unreachable):
    """Nobody may have the server call that address."""


class NoSuchHost(Unreachable):
    """A name stands for no address."""


class InvalidRESTConfig(ValueError):
    """Invalid settings of a client; the text says why."""

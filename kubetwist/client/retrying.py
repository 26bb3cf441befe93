"""
Calls with retries.

@see: kubernetes/apiserver, C{pkg/util/webhook/webhook.go}: C{WithExponentialBackoff}, C{DefaultShouldRetry}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import random
from typing import Final, TypeVar

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ..api.errors import APIStatusError
from .errors import CallError

T = TypeVar("T")

_TRANSIENT_REASONS: Final = ("InternalError", "Timeout", "TooManyRequests")
_TRANSIENT_CODES: Final = (500, 504, 429)


@frozen
class Backoff:
    """
    The backoff between attempts.

    @ivar initial: Seconds after the first attempt.
    @ivar factor: Factor between consecutive delays.
    @ivar jitter: Maximum random fraction that is added to a delay.
    @ivar steps: Maximum number of attempts.
    """

    initial: float = 0.5
    factor: float = 1.5
    jitter: float = 0.2
    steps: int = 5


#: The backoff of the reference's webhooks.
DEFAULT_RETRY_BACKOFF: Final = Backoff()


async def with_backoff(
    reactor: IReactorTime,
    call: Callable[[], Awaitable[T]],
    backoff: Backoff = DEFAULT_RETRY_BACKOFF,
    retry: Callable[[Exception], bool] | None = None,
) -> T:
    """
    Call until it succeeds, fails with an error that is not retried, or the attempts are used up.

    @param retry: Returns whether an error is retried; L{should_retry} by default.
    @raise Exception: The error of the last call.
    """
    is_retriable = retry or should_retry
    delay = backoff.initial
    for _ in range(backoff.steps - 1):
        try:
            return await call()
        except Exception as error:
            if not is_retriable(error):
                raise
        await _sleep(reactor, delay * (1 + backoff.jitter * random()))
        delay *= backoff.factor
    return await call()


def should_retry(error: Exception) -> bool:
    """Return whether a retry may succeed: the connection broke, or the server is overloaded or asks for a retry."""
    if isinstance(error, CallError):
        return error.retriable
    if not isinstance(error, APIStatusError):
        return False
    if error.reason in _TRANSIENT_REASONS or (not error.reason and error.code in _TRANSIENT_CODES):
        return True
    return error.retry_after is not None or bool((error.details or {}).get("retryAfterSeconds"))


def _sleep(reactor: IReactorTime, seconds: float) -> Deferred[None]:
    done: Deferred[None] = Deferred(lambda _: timer.cancel())
    timer = reactor.callLater(seconds, done.callback, None)
    return done

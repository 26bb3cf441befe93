"""How documents of aggregated API servers can fail, and the threads that they are read in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from twisted.internet.defer import Deferred

from ..api.jsonpieces import BadJSON
from ..client.errors import CallError, Unreachable


class IRunInThread(Protocol):
    """C{functools.partial(deferToThreadPool, reactor, reactor.getThreadPool())}, or something like it."""

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """The result of C{function}, which may take long."""


class BadDocument(ValueError):
    """It can not be used; the text says why."""


class NoDocument(Exception):
    """A server answered something else; the text says what."""


#: What is no fault of ours when a server is asked.
FAILURES: Final = (CallError, Unreachable, BadDocument, BadJSON, NoDocument)

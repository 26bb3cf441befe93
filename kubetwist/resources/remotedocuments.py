"""How documents of aggregated API servers can fail, and the threads that they are read in."""

from __future__ import annotations

from typing import Final

from ..api.jsonpieces import BadJSON
from ..client.errors import CallError, Unreachable


class BadDocument(ValueError):
    """It cannot be used; the text says why."""


class UnexpectedResponse(Exception):
    """A server answered something else; the text says what."""


#: What is no fault of ours when a server is asked.
FAILURES: Final = (CallError, Unreachable, BadDocument, BadJSON, UnexpectedResponse)

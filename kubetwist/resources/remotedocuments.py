"""The errors of documents of aggregated API servers, and the threads that parse them."""

from __future__ import annotations

from typing import Final

from ..api.jsonpieces import BadJSON
from ..client.errors import CallError, Unreachable


class BadDocument(ValueError):
    """The document is invalid; the text has the reason."""


class UnexpectedResponse(Exception):
    """The server's response was unexpected; the text has the details."""


#: Errors of another server, which are not bugs.
FAILURES: Final = (CallError, Unreachable, BadDocument, BadJSON, UnexpectedResponse)

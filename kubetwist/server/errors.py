"""What ends a start."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start; the text is one line for whoever started it."""

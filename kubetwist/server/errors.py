"""The error of a failed start."""

from __future__ import annotations


class StartError(Exception):
    """The server cannot start; the text is a one-line message for the user."""

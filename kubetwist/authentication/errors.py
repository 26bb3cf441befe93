"""What authenticators raise."""

from __future__ import annotations


class AuthenticationFailed(Exception):
    """There are credentials, and they are bad; the text is for the log, not for the client."""

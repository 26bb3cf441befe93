"""Requests without credentials have a user, too."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from ..api.resource import UserInfo
from ..api.users import ANONYMOUS, UNAUTHENTICATED
from ..interfaces import IAuthenticator

_USER = UserInfo(ANONYMOUS, groups=(UNAUTHENTICATED,))


@implementer(IAuthenticator)
class Anonymous:
    """Takes every request for that of C{system:anonymous}."""

    def authenticate(self, request: Any) -> UserInfo:
        """@see: L{IAuthenticator.authenticate}."""
        return _USER


def make(options: Any, server: Any) -> Anonymous | None:
    """As C{--anonymous-auth} has it."""
    return Anonymous() if options["anonymous-auth"] else None

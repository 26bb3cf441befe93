"""Authentication of anonymous requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from twisted.logger import Logger
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..api.users import ANONYMOUS, UNAUTHENTICATED
from ..interfaces import IAuthenticator

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

#: The paths of anonymous requests with --hardened.
HEALTH_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})
_log = Logger()
_USER: Final = UserInfo(ANONYMOUS, groups=(UNAUTHENTICATED,))


@implementer(IAuthenticator)
class Anonymous:
    """Authenticates requests as C{system:anonymous}: all requests, or only requests for some paths."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        """
        @param paths: The exact paths that anonymous requests may have; empty for all paths.
        """
        self._paths = frozenset(path.encode() for path in paths)

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        if self._paths and unquote_to_bytes(request.path) not in self._paths:
            return None
        return _USER


def make(options: FlagValues, server: AuthenticationContext) -> Anonymous | None:
    """
    Return the authenticator for C{--authentication-config} or C{--anonymous-auth}; L{None} if it is disabled.

    @raise ValueError: The file allows more than C{--hardened}.
    """
    hardened = options.get("hardened")
    if options["authentication-config"]:
        from .oidc import configured

        anonymous = configured(options, server).anonymous
        if anonymous is not None:
            if hardened and anonymous.enabled and not (anonymous.paths and HEALTH_PATHS.issuperset(anonymous.paths)):
                raise ValueError(
                    "--hardened: --authentication-config allows anonymous requests to other paths than"
                    f" {', '.join(sorted(HEALTH_PATHS))}"
                )
            return Anonymous(anonymous.paths) if anonymous.enabled else None
    if options["anonymous-auth"] and "AlwaysAllow" in options["authorization-mode"]:
        _log.warn("--anonymous-auth is disabled: it is not allowed with --authorization-mode=AlwaysAllow")
        return None
    if not options["anonymous-auth"]:
        return None
    return Anonymous(sorted(HEALTH_PATHS)) if hardened else Anonymous()

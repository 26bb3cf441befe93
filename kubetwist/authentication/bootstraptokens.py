"""
Authentication of bootstrap tokens, with which nodes join a cluster. Each token is a Secret in C{kube-system}.

@see: kubernetes, C{plugin/pkg/auth/authenticator/token/bootstrap}.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from twisted.logger import Logger
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.go.quote import quoted
from ..api.resource import JSONObject, UserInfo
from ..api.times import posix_now, seconds_since_epoch
from ..interfaces import IAuthenticator
from .bearer import bearer_token
from .union import add_authenticated_group

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ..registry.stores import Stores
    from ._context import AuthenticationContext

_NAMESPACE: Final = "kube-system"
_TYPE: Final = "bootstrap.kubernetes.io/token"
_TOKEN: Final = re.compile(rb"([a-z0-9]{6})\.([a-z0-9]{16})")
_USER: Final = "system:bootstrap:"
#: The group of all users of bootstrap tokens.
_GROUP: Final = "system:bootstrappers"
_EXTRA_GROUP: Final = r"\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z"
_is_extra_group: Final = re.compile(_EXTRA_GROUP.replace(r"\z", r"\Z")).match


@implementer(IAuthenticator)
class BootstrapTokenAuthenticator:
    """
    Authenticates joining nodes by bootstrap tokens of the form C{id.secret}.

    Tokens of another form are ignored without a lookup. If the Secret exists but does not match, the reason is logged.
    """

    _log = Logger()

    def __init__(self, stores: Stores, now: Callable[[], float] = posix_now) -> None:
        """
        @param stores: The stores of the server, which are read at each request.
        @param now: Returns the time in seconds since the epoch.
        """
        self._stores = stores
        self._now = now

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        parts = _TOKEN.fullmatch(token)
        if parts is None:
            return None
        token_id = parts[1].decode()
        name = f"bootstrap-token-{token_id}"
        secret = self._stores.get_copy("", "secrets", _NAMESPACE, name)
        if secret is None:
            return None
        problem = self._invalid_reason(secret, token_id, parts[2])
        groups = _groups(_text(secret, "auth-extra-groups"))
        if not problem and isinstance(groups, str):
            problem = f"has invalid value for key auth-extra-groups: {groups}"
        if problem:
            self._log.info(
                "the bootstrap secret {namespace}/{name} matching a bearer token {problem}",
                namespace=_NAMESPACE,
                name=name,
                problem=problem,
            )
            return None
        assert not isinstance(groups, str)
        return add_authenticated_group(UserInfo(f"{_USER}{token_id}", groups=groups))

    def _invalid_reason(self, secret: JSONObject, token_id: str, token_secret: bytes) -> str:
        """Return why a token is invalid; C{""} for a valid one. The text contains no secret."""
        if "deletionTimestamp" in secret["metadata"]:
            return "is deleted and awaiting removal"
        if secret.get("type") != _TYPE or secret.get("data") is None:
            return f"has invalid type, expected {_TYPE}"
        if not compare_digest(_data(secret, "token-secret"), token_secret):
            return "has invalid value for key token-secret"
        if _text(secret, "token-id") != token_id:
            return f"has invalid value for key token-id, expected {token_id}"
        expires = _text(secret, "expiration")
        if expires:
            try:
                expires_at = seconds_since_epoch(expires)
            except ValueError:
                return f"has an expiration that cannot be read, {quoted(expires)}: it counts as expired"
            if expires_at <= self._now():
                return f"has expired at {expires}"
        if _text(secret, "usage-bootstrap-authentication") != "true":
            return "is not marked usage-bootstrap-authentication=true"
        return ""


def _groups(extra: str) -> tuple[str, ...] | str:
    """Return the groups of a token, or the error text for an invalid extra group."""
    groups = {_GROUP}
    for group in extra.split(",") if extra else ():
        if not _is_extra_group(group):
            return f"bootstrap group {quoted(group)} is invalid (must match {_EXTRA_GROUP})"
        groups.add(group)
    return tuple(sorted(groups))


def _data(secret: JSONObject, key: str) -> bytes:
    try:
        return b64decode((secret.get("data") or {}).get(key) or "")
    except ValueError:
        return b""


def _text(secret: JSONObject, key: str) -> str:
    return _data(secret, key).decode("utf-8", "replace")


def make(options: FlagValues, server: AuthenticationContext) -> BootstrapTokenAuthenticator | None:
    """Return the authenticator of bootstrap tokens; L{None} without C{--enable-bootstrap-token-auth}."""
    return BootstrapTokenAuthenticator(server.stores) if options["enable-bootstrap-token-auth"] else None

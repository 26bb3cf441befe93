"""
Authentication by tokens that contain a user, with all fields of a user, and are signed with a key.

A holder of the key can be any user: this is for servers in tests (L{kubetwist.testing.Connection.as_user}).
C{--plugin-config-file=UserTokens=PATH} enables it; the file has the key.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

import orjson

from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .bearer import bearer_token
from .union import add_authenticated_group

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

NAME: Final = "UserTokens"
#: Minimum length of a key in bytes.
MIN_KEY_LENGTH: Final = 32
_PREFIX: Final = b"kubetwist-user."


def sign_user(key: bytes, user: UserInfo) -> str:
    """Return a token of a user, which does not expire."""
    content = {"name": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra}
    payload = urlsafe_b64encode(orjson.dumps(content))
    return (_PREFIX + payload + b"." + _signature(key, payload)).decode()


def _signature(key: bytes, payload: bytes) -> bytes:
    return urlsafe_b64encode(hmac.digest(key, payload, hashlib.sha256))


def parse_key(content: bytes) -> bytes:
    """
    Return the key in a file, without surrounding white space.

    @raise ValueError: It is too short.
    """
    key = content.strip()
    if len(key) < MIN_KEY_LENGTH:
        raise ValueError(f"the key has {len(key)} bytes, must have at least {MIN_KEY_LENGTH}")
    return key


@implementer(IAuthenticator)
class UserTokens:
    """Authenticates the tokens of L{sign_user}."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def set_key(self, key: bytes) -> None:
        """Replace the key: tokens of the previous one are invalid."""
        self.key = key

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None or not token.startswith(_PREFIX):
            return None
        payload, _, signature = token[len(_PREFIX) :].partition(b".")
        if not hmac.compare_digest(signature, _signature(self.key, payload)):
            return None
        # The payload is from a holder of the key.
        content = orjson.loads(urlsafe_b64decode(payload))
        extra = {name: tuple(values) for name, values in content["extra"].items()}
        return add_authenticated_group(UserInfo(content["name"], content["uid"], tuple(content["groups"]), extra))


def make(options: FlagValues, server: AuthenticationContext) -> UserTokens | None:
    """Return the authenticator; L{None} without a file for it."""

    def use(key: bytes) -> None:
        tokens.set_key(key)

    key = server.watch_config(NAME, parse_key, use)
    if key is None:
        return None
    tokens = UserTokens(key)
    return tokens

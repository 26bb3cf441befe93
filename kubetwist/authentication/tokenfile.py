"""Authentication by static bearer tokens from C{--token-auth-file}."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.logger import Logger
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .bearer import bearer_token
from .union import add_authenticated_group

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

_log = Logger()


class BadTokenFile(ValueError):
    """The file cannot be used; the text has the reason."""


@implementer(IAuthenticator)
class TokenFile:
    """Authenticates bearer tokens that a file lists (C{tokenfile.TokenAuthenticator})."""

    def __init__(self, users: dict[str, UserInfo]) -> None:
        """
        @param users: Users by token.
        """
        self.set_users(users)

    def set_users(self, users: dict[str, UserInfo]) -> None:
        """
        Replace the users.

        @param users: Users by token.
        """
        # The duration of a lookup by digest does not depend on the token.
        self._users = {sha256(token.encode()).digest(): add_authenticated_group(user) for token, user in users.items()}

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        users, remembered = self._users, request.connection.remembered
        last: tuple[bytes, object, UserInfo] | None = remembered.get(self)
        # Equal hashes first, as for the digests: the time of a comparison depends on the number of equal bytes.
        if last is not None and last[1] is users and hash(last[0]) == hash(token) and last[0] == token:
            return last[2]
        user = users.get(sha256(token).digest())
        if user is not None:
            remembered[self] = token, users, user
        return user

    @classmethod
    def read(cls, path: Path) -> TokenFile:
        """
        Read a token file.

        @raise BadTokenFile: The file cannot be read, or L{users_of_file} rejects it.
        """
        try:
            return cls(users_of_file(path.read_bytes(), path))
        except OSError as error:
            raise BadTokenFile(f"cannot read the token file {path}: {error.strerror}") from error


def users_of_file(content: bytes, path: Path) -> dict[str, UserInfo]:
    """
    Return the users by token of a CSV file with the columns token, user name, uid and (quoted) groups.

    @param content: The content of the file.
    @param path: The path for error texts.
    @raise BadTokenFile: The format is invalid.
    """
    users: dict[str, UserInfo] = {}
    try:
        rows = [row for row in csv.reader(StringIO(content.decode(), newline=""), strict=True) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadTokenFile(f"cannot read the token file {path}: {error}") from error
    for number, row in enumerate(rows, 1):
        if len(row) < 3:
            raise BadTokenFile(
                f"the token file {path} must have at least 3 columns (token, user name, user uid),"
                f" found {len(row)} in record {number}"
            )
        token, name, uid, *groups = row
        if not token:
            _log.warn("empty token in the token file {path}, record {number}", path=str(path), number=number)
            continue
        if token in users:
            _log.warn("repeated token in the token file {path}, record {number}", path=str(path), number=number)
        users[token] = UserInfo(name, uid, tuple(groups[0].split(",")) if groups else ())
    return users


def make(options: FlagValues, server: AuthenticationContext) -> TokenFile | None:
    """Return the authenticator of C{--token-auth-file}, which is read again when it changes; L{None} without it."""
    if not options["token-auth-file"]:
        return None
    path = Path(options["token-auth-file"])

    def load(contents: Sequence[bytes]) -> dict[str, UserInfo]:
        return users_of_file(contents[0], path)

    def use(users: dict[str, UserInfo]) -> None:
        tokens.set_users(users)

    try:
        tokens = TokenFile(server.files.watch([path], load, use, "--token-auth-file"))
    except OSError as error:
        raise BadTokenFile(f"cannot read the token file {path}: {error.strerror}") from error
    return tokens

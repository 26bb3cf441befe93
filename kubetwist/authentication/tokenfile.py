"""The users of C{--token-auth-file}."""

from __future__ import annotations

import csv
from hashlib import sha256
from pathlib import Path
from typing import Any

from twisted.logger import Logger
from zope.interface import implementer

from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .bearer import bearer_token
from .union import authenticated


class BadTokenFile(ValueError):
    """The file can not be used; the text says why."""


@implementer(IAuthenticator)
class TokenFile:
    """Knows the users whose bearer tokens stand in a file."""

    _log = Logger()

    def __init__(self, users: dict[str, UserInfo]) -> None:
        """
        @param users: By token.
        """
        # By digest: how long a look-up of a digest takes tells nothing about the token.
        self._users = {sha256(token.encode()).digest(): authenticated(user) for token, user in users.items()}

    def authenticate(self, request: Any) -> UserInfo | None:
        """@see: L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        if token is None:
            return None
        return self._users.get(sha256(token).digest())

    @classmethod
    def read(cls, path: Path) -> TokenFile:
        """
        Read a file with the columns token, user name, uid and, in quotes, groups.

        @raise BadTokenFile: It can not be read, or is not of that form.
        """
        users: dict[str, UserInfo] = {}
        try:
            with path.open(encoding="utf-8", newline="") as file:
                rows = [row for row in csv.reader(file, strict=True) if row]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise BadTokenFile(f"can not read the token file {path}: {error}") from error
        for number, row in enumerate(rows, 1):
            if len(row) < 3:
                raise BadTokenFile(
                    f"the token file {path} must have at least 3 columns (token, user name, user uid),"
                    f" found {len(row)} in record {number}"
                )
            token, name, uid, *groups = row
            if not token:
                cls._log.warn("empty token in the token file {path}, record {number}", path=str(path), number=number)
                continue
            if token in users:
                cls._log.warn("repeated token in the token file {path}, record {number}", path=str(path), number=number)
            users[token] = UserInfo(name, uid, tuple(groups[0].split(",")) if groups else ())
        return cls(users)


def make(options: Any, server: Any) -> TokenFile | None:
    """As C{--token-auth-file} has it."""
    path = options["token-auth-file"]
    return TokenFile.read(Path(path)) if path else None

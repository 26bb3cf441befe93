"""Entries of token files (C{--token-auth-file})."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from secrets import token_urlsafe
from typing import Final
from uuid import uuid4

from ..authentication.tokenfile import BadTokenFile, users_of_file
from ..server.files import write_file
from .command import CommandError

#: Random bytes of a token.
TOKEN_BYTES: Final = 32
#: Maximum size in bytes of a token file.
MAX_SIZE: Final = 64 * 1024 * 1024


def format_entry(token: str, name: str, uid: str, groups: Sequence[str]) -> str:
    """
    Return a line of a token file, with its newline.

    @raise CommandError: A value cannot be in such a file.
    """
    for value in (name, uid, *groups):
        if not value.isprintable():
            raise CommandError(f"names and groups must be printable: {value!r}")
    if not name:
        raise CommandError("the name of the user must not be empty")
    if any("," in group or not group for group in groups):
        raise CommandError("groups must not be empty or contain commas")
    output = StringIO()
    csv.writer(output, lineterminator="\n").writerow([token, name, uid, *([",".join(groups)] if groups else [])])
    return output.getvalue()


def new_entry(name: str, uid: str, groups: Sequence[str]) -> tuple[str, str]:
    """Return a new random token, and its line; a random UID replaces an empty one."""
    token = token_urlsafe(TOKEN_BYTES)
    return token, format_entry(token, name, uid or str(uuid4()), groups)


def add_entry(path: Path, name: str, uid: str, groups: Sequence[str]) -> str:
    """
    Add a user with a random token to a token file, which is created if it does not exist. Blocks.

    The file is replaced atomically: a server that watches it reads the old or the new content.

    @param path: The file.
    @param name: The name of the user.
    @param uid: The UID of the user; C{""} for the UID that the user has in the file already, or a random one.
    @param groups: The groups of the user.
    @return: The token.
    @raise CommandError: The file or a value is invalid, or the file cannot be read or written.
    """
    path = path.resolve()
    try:
        content, mode = path.read_bytes(), path.stat().st_mode & 0o777
    except FileNotFoundError:
        content, mode = b"", 0o600
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MAX_SIZE:
        raise CommandError(f"{path} is longer than {MAX_SIZE} bytes")
    try:
        users = users_of_file(content, path)
    except BadTokenFile as error:
        raise CommandError(str(error)) from error
    if not uid:
        uid = next((user.uid for user in users.values() if user.name == name), "")
    token, line = new_entry(name, uid, groups)
    if content and not content.endswith(b"\n"):
        content += b"\n"
    try:
        write_file(path, content + line.encode(), mode)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    return token

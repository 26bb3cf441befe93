"""
Continue tokens: the position of the next page of a list, and its revision.

The format is the reference's (kubernetes/apiserver, C{pkg/storage/continue.go}), so that all servers of an etcd accept
the same tokens.
"""

from __future__ import annotations

import base64
import posixpath
from typing import Final

import orjson

from .documents import (
    BodyError,
    json_type,
)
from .jsondecoding import decode_json
from .jsontypes import JSONObject

_VERSION: Final = "meta.k8s.io/v1"
_INVALID: Final = "continue key is not valid"

#: Revision in a token that continues at the newest revision.
_NEWEST: Final = -1


class ContinueTokenError(ValueError):
    """An invalid continue token; C{str} of it is the reference's message."""


def encode_continue(key: str, revision: int, prefix: str = "", *, slash: bool = False) -> str:
    """
    Return a continue token.

    @param key: The last key of the page, which starts with C{prefix}; the next page starts after it.
    @param revision: The revision of the list; 0 for the newest at the time of the next request.
    @param prefix: The part of the key that is not in the token, so that clients cannot change it.
    @param slash: Whether the key in the token begins with a slash, as in tokens of the reference's watch cache, whose
        prefix ends before the slash (C{pkg/storage/cacher/cacher.go}); the prefix of its etcd store includes it.
    """
    start = f"{'/' if slash else ''}{key.removeprefix(prefix)}\0"
    content = {"v": _VERSION, "rv": revision or _NEWEST, "start": start}
    return base64.urlsafe_b64encode(orjson.dumps(content)).rstrip(b"=").decode()


def decode_continue(token: str, prefix: str = "") -> tuple[int, str]:
    """
    Decode a continue token, whose key may start with a slash.

    @return: The revision (0 for the newest) and the last key of the previous page.
    @raise ContinueTokenError: The token is malformed, or its key is outside of C{prefix}.
    """
    content = _content(_bytes(token))
    version = content.get("v") or ""
    if version != _VERSION:
        raise ContinueTokenError(f"{_INVALID}: server does not recognize this encoded version {version}")
    revision, start = content.get("rv") or 0, content.get("start") or ""
    if revision == 0:
        raise ContinueTokenError(f"{_INVALID}: incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise ContinueTokenError(f"{_INVALID}: encoded start key empty (version {_VERSION})")
    path = start if start.startswith("/") else f"/{start}"
    # normpath keeps two leading slashes; Go does not.
    if posixpath.normpath(path) != path or path.startswith("//"):
        raise ContinueTokenError(f"{_INVALID}: {start}")
    return max(revision, 0), prefix + path[1:].removesuffix("\0")


def _bytes(token: str) -> bytes:
    """
    Decode base64 as Go does: newlines are ignored, other characters outside of the alphabet are errors.

    @raise ContinueTokenError: The token is not base64; the error gives the position.
    """
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    known = [character for character in token if character not in "\r\n"]
    if not token.isascii() or any(character not in alphabet for character in known):
        encoded = token.encode("utf-8", "surrogatepass")
        allowed = alphabet.encode() + b"\r\n"
        position = next(index for index, byte in enumerate(encoded) if byte not in allowed)
        raise ContinueTokenError(f"{_INVALID}: illegal base64 data at input byte {position}")
    if len(known) % 4 == 1:
        raise ContinueTokenError(f"{_INVALID}: illegal base64 data at input byte {len(token) - 1}")
    return base64.urlsafe_b64decode("".join(known) + "=" * (-len(known) % 4))


def _content(data: bytes) -> JSONObject:
    try:
        content = decode_json(data).value
    except BodyError as error:
        raise ContinueTokenError(f"{_INVALID}: {error}") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        reason = f"json: cannot unmarshal {json_type(content)} into Go value of type storage.continueToken"
        raise ContinueTokenError(f"{_INVALID}: {reason}")
    for name, kind, go_type in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            path = f"Go struct field continueToken.{name} of type {go_type}"
            raise ContinueTokenError(f"{_INVALID}: json: cannot unmarshal {json_type(value)} into {path}")
    return content

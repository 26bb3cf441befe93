"""
Functions on strings: version 2 of cel-go's extension.

See google/cel-go, C{ext/strings.go}. Indices count code points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetwist.cel.errors import CelError, CostLimitExceeded
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.library.stringformat import format_string
from kubetwist.cel.types import DYN, INT, STRING, list_of
from kubetwist.cel.values import Value

#: Maximum length of results in characters, since the cost limit does not limit a single call.
_MAX_RESULT_LENGTH: Final = 64 << 20

_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
#: White space of Go's unicode.IsSpace: fewer characters than Python's str.strip() removes.
_SPACES: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, substring: str, offset: int = 0) -> int:
    if not substring:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(substring, offset) if offset < len(text) else -1


def _last_index_of(text: str, substring: str) -> int:
    return text.rfind(substring)


def _last_index_before(text: str, substring: str, offset: int) -> int:
    if not substring:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.rfind(substring, 0, offset + len(substring)) if offset < len(text) else -1


def _lower_ascii(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) > len(old):
        occurrences = text.count(old) if count < 0 else min(text.count(old), count)
        if len(text) + occurrences * (len(new) - len(old)) > _MAX_RESULT_LENGTH:
            raise CostLimitExceeded
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if not count:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if 0 < count < len(text):
        return [*text[: count - 1], text[count - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACES)


def _join(values: Sequence[Value], separator: str = "") -> str:
    texts = list(values)
    length = len(separator) * len(texts)
    for text in texts:
        if type(text) is not str:
            raise CelError(f"join: invalid input: {_format_value(text)}")
        length += len(text)
    if length > _MAX_RESULT_LENGTH:
        raise CostLimitExceeded
    return separator.join(texts)


def _format_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


STRINGS: Final = Library(
    "cel.lib.ext.strings",
    [
        function("charAt", member("string_char_at_int", (STRING, INT), STRING, _char_at)),
        function(
            "indexOf",
            member("string_index_of_string", (STRING, STRING), INT, _index_of),
            member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ),
        function(
            "lastIndexOf",
            member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
            member("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_before),
        ),
        function("lowerAscii", member("string_lower_ascii", (STRING,), STRING, _lower_ascii)),
        function("upperAscii", member("string_upper_ascii", (STRING,), STRING, _upper_ascii)),
        function(
            "replace",
            member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
            member("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
        ),
        function(
            "split",
            member("string_split_string", (STRING, STRING), list_of(STRING), _split),
            member("string_split_string_int", (STRING, STRING, INT), list_of(STRING), _split),
        ),
        function(
            "substring",
            member("string_substring_int", (STRING, INT), STRING, _substring),
            member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_between),
        ),
        function("trim", member("string_trim", (STRING,), STRING, _trim)),
        function("format", member("string_format", (STRING, list_of(DYN)), STRING, format_string)),
        function("strings.quote", overload("strings_quote", (STRING,), STRING, _quote)),
        function(
            "join",
            member("list_join", (list_of(STRING),), STRING, _join),
            member("list_join_string", (list_of(STRING), STRING), STRING, _join),
        ),
    ],
)

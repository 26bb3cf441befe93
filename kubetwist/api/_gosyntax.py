"""
Values of Go types as C{fmt} prints them with C{%#v}: the bad values in messages of releases before 1.34.

C{gosyntax.txt} has the structs of such values, with their fields in the order of their declaration. They are facts of
kubernetes, C{pkg/apis}, and apimachinery, C{pkg/apis/meta/v1}. Each line has a type and its fields by their Go names:
C{GoName=name:type@release}. The default of the JSON name is the Go name that begins with a small letter, the
default type is C{string}, which also stands for named string types; numbers and booleans stand for their named types.
C{@release} is the first release with the field. C{+GoName} is an embedded struct, whose fields are in the
object itself, except for C{ObjectMeta}. A named list or map has both types:
C{core.ResourceList=map[core.ResourceName]resource.Quantity}. A line that starts with a blank continues the previous
one.

A pointer within a value is printed with its address, as in the reference, so that such messages differ each time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from .featuregates import Release, parse_release
from .go.durations import format_duration, parse_nanoseconds
from .go.quote import quoted
from .go.syntax import float_text
from .go.text import go_syntax as untyped_syntax
from .jsontypes import JSONValue
from .quantity import int64_amount
from .resource import JSONObject
from .times import seconds_since_epoch

_MAP: Final = re.compile(r"map\[(?P<key>[\w.]+)\](?P<value>.*)")
#: The types of embedded structs that have a JSON name.
_EMBEDDED: Final = {"v1.ObjectMeta": "metadata"}
_ZERO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Field(NamedTuple):
    """
    A field of a struct.

    @ivar name: The JSON name; C{""} for an embedded struct, which has the fields of the object.
    """

    go_name: str
    name: str
    go_type: str
    since: Release


def shown_in_go(value: JSONValue, go_type: str, release: Release) -> str:
    """
    Return a bad value as apimachinery's C{field.Error.ErrorBody} formatted it before 1.34.

    @param value: The value in JSON.
    @param go_type: The Go type of the value; C{""} for strings, numbers, booleans, and lists and maps of strings.
    @param release: The release whose struct is printed.
    """
    go_type = go_type or _inferred(value)
    if go_type.startswith("*"):
        if value is None:
            return '"null"'
        go_type = go_type[1:]
    show = _STRINGERS.get(go_type)
    if show is not None:
        return show(value)
    return _syntax(value, go_type, release)


def _inferred(value: JSONValue) -> str:
    """Return the type of a value for which no other type is given."""
    if value is None:
        return "*"
    if isinstance(value, list):
        return "[]string" if all(isinstance(item, str) for item in value) else "[]interface_{}"
    if isinstance(value, dict):
        texts = all(isinstance(item, str) for item in value.values())
        return "map[string]string" if texts else "map[string]interface_{}"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "float64"
    return "int64" if isinstance(value, int) else "string"


def _syntax(value: JSONValue, go_type: str, release: Release) -> str:
    if go_type in _SCALARS:
        return _SCALARS[go_type](value)
    if go_type.startswith("*"):
        return _pointer(value, go_type)
    name, _, underlying = go_type.partition("=")
    form = underlying or name
    shown = name.replace("_", " ")
    if form.startswith("[]"):
        if value is None:
            return f"{shown}(nil)"
        return f"{shown}{{{', '.join(_syntax(item, form[2:], release) for item in value)}}}"
    mapping = _MAP.match(form)
    if mapping is not None:
        if value is None:
            return f"{shown}(nil)"
        items = (f"{quoted(key)}:{_syntax(value[key], mapping['value'], release)}" for key in sorted(value))
        return f"{shown}{{{', '.join(items)}}}"
    fields = (
        f"{field.go_name}:{_syntax(_within(value, field), field.go_type, release)}"
        for field in _structs().get(name) or ()
        if field.since <= release
    )
    # A type without fields here is a named string.
    return f"{name}{{{', '.join(fields)}}}" if name in _structs() else quoted(value or "")


def _within(value: JSONObject | None, field: _Field) -> JSONValue:
    if value is None:
        return None
    return value.get(field.name) if field.name else value


def _pointer(value: JSONValue, go_type: str) -> str:
    pointed = go_type[1:]
    if pointed in ("v1.Time", "v1.MicroTime"):
        # The type has a GoString method, which panics for nil.
        return "<nil>" if value is None else _time(value)
    return f"({go_type})(nil)" if value is None else f"({go_type})({id(value):#x})"


def _moment(text: str | None) -> datetime:
    return _EPOCH + timedelta(seconds=seconds_since_epoch(text)) if text else _ZERO_TIME


def _time(text: str | None) -> str:
    at = _moment(text)
    place = "Local" if text else "UTC"
    parts = (at.year, f"time.{at:%B}", at.day, at.hour, at.minute, at.second, at.microsecond * 1000, f"time.{place}")
    return f"time.Date({', '.join(map(str, parts))})"


def _time_text(text: str | None) -> str:
    """Return C{time.Time.String} of a time in UTC."""
    at = _moment(text)
    fraction = f".{at.microsecond:06d}".rstrip("0") if at.microsecond else ""
    return f"{at.year:04d}-{at:%m-%d %H:%M:%S}{fraction} +0000 UTC"


def _quantity(text: JSONValue) -> str:
    text = "0" if text is None else str(text)
    amount = int64_amount(text)
    family = (
        "BinarySI" if text.endswith("i") else "DecimalExponent" if re.search("[eE][+-]?[0-9]", text) else "DecimalSI"
    )
    if amount is None:
        number, digits = "resource.int64Amount{value:0, scale:0}", f"(*inf.Dec)({id(text):#x})"
    else:
        number, digits = f"resource.int64Amount{{value:{amount[0]}, scale:{amount[1]}}}", "(*inf.Dec)(nil)"
    cached = quoted(text) if amount is not None and _keeps_text(text, family) else '""'
    return f'resource.Quantity{{i:{number}, d:resource.infDecAmount{{Dec:{digits}}}, s:{cached}, Format:"{family}"}}'


def _keeps_text(text: str, family: str) -> bool:
    """Return whether C{resource.ParseQuantity} keeps the text of a quantity in canonical form."""
    digits = re.sub("[^0-9].*", "", text.lstrip("-"))
    return bool(int(digits) & 7) if family == "BinarySI" else text == "0" or not digits.endswith("000")


def _int_or_string(value: JSONValue) -> str:
    if isinstance(value, str):
        return f"intstr.IntOrString{{Type:1, IntVal:0, StrVal:{quoted(value)}}}"
    return f'intstr.IntOrString{{Type:0, IntVal:{value or 0}, StrVal:""}}'


def _raw(value: JSONValue) -> str:
    shown = "[]uint8(nil)"
    if value is not None:
        encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        shown = _hexadecimal("[]uint8", encoded)
    return f"runtime.RawExtension{{Raw:{shown}, Object:runtime.Object(nil)}}"


def _hexadecimal(go_type: str, content: bytes) -> str:
    return f"{go_type}{{{', '.join(f'{byte:#x}' for byte in content)}}}"


def _integer(value: JSONValue) -> str:
    return str(value or 0)


#: Types that C{%#v} prints in another form than structs.
_SCALARS: Final[dict[str, Callable[[JSONValue], str]]] = {
    "string": lambda value: quoted(value or ""),
    "bool": lambda value: "true" if value else "false",
    "int": _integer,
    "int32": _integer,
    "int64": _integer,
    "uint64": lambda value: f"{value or 0:#x}",
    "uint8": lambda value: f"{value or 0:#x}",
    "float64": lambda value: float_text(float(value or 0)),
    "interface_{}": untyped_syntax,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "v1.Time": _time,
    "v1.MicroTime": _time,
    "v1.Duration": lambda value: f"v1.Duration{{Duration:{parse_nanoseconds(value) if value else 0}}}",
}
#: Types with a C{String} method, whose value is not quoted.
_STRINGERS: Final[dict[str, Callable[[JSONValue], str]]] = {
    "v1.Time": _time_text,
    "v1.MicroTime": _time_text,
    "v1.Duration": lambda value: format_duration(parse_nanoseconds(value) if value else 0),
    "core.ResourceName": lambda value: value or "",
    "[]byte": lambda value: _hexadecimal("[]byte", base64.b64decode(value or "")),
}


@cache
def _structs() -> dict[str, tuple[_Field, ...]]:
    """Return the fields for each type."""
    text = files(__package__).joinpath("gosyntax.txt").read_text(encoding="ascii")
    structs = {}
    for line in text.replace("\n ", " ").splitlines():
        if not line.startswith("#"):
            name, *words = line.split()
            structs[name] = tuple(map(_field, words))
    return structs


def _field(word: str) -> _Field:
    word, _, since = word.partition("@")
    names, _, go_type = word.partition(":")
    go_name, _, name = names.partition("=")
    release = parse_release(since) if since else (1, 0)
    if go_name.startswith("+"):
        return _Field(go_name[1:], _EMBEDDED.get(go_type, ""), go_type, release)
    return _Field(go_name, name or go_name[0].lower() + go_name[1:], go_type or "string", release)

"""
Named formats of strings: C{format.dns1123Label().validate(name)}.

See kubernetes/apiserver, C{pkg/cel/library/format.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.api.go.url import (
    URLError,
    parse_request_uri,
)
from kubetwist.api.names import (
    validate_dns1035_label,
    validate_dns1123_label,
    validate_dns1123_subdomain,
    validate_label_value,
    validate_qualified_name,
)
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import STRING, ObjectType, list_of, optional_of
from kubetwist.cel.values import NONE, OpaqueValue, Optional, Value

FORMAT_TYPE: Final = ObjectType("kubernetes.NamedFormat")


class Format(OpaqueValue):
    """
    A named format.

    @ivar validate: Returns the error messages for a string.
    @ivar pattern_length: The length of an equivalent regular expression, on which the cost of C{validate} depends.
    """

    __slots__ = ("name", "pattern_length", "validate")
    cel_type = FORMAT_TYPE

    def __init__(self, name: str, pattern_length: int, validate: Callable[[str], Sequence[str]]) -> None:
        self.name = name
        self.pattern_length = pattern_length
        self.validate = validate

    def equals(self, other: Value) -> bool:
        """Compare by name."""
        return isinstance(other, Format) and self.name == other.name


def _prefix(validate: Callable[[str, bool], Sequence[str]]) -> Callable[[str], Sequence[str]]:
    return lambda text: validate(text, True)


def _validate_uri(text: str) -> Sequence[str]:
    try:
        parse_request_uri(text)
    except URLError as error:
        return [str(error)]
    return []


def _openapi_format(name: str, message: str) -> Callable[[str], Sequence[str]]:
    def validate(text: str) -> Sequence[str]:
        from kubetwist.api.formats import FORMATS

        return [] if FORMATS[name](text) else [message]

    return validate


#: Length of strfmt's pattern for times, which also stands for dates.
_TIME_PATTERN: Final = len("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
_UUID_PATTERN: Final = len("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")

#: Formats by their names in expressions.
FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", 30, validate_dns1123_label),
    "dns1123Subdomain": Format("DNS1123Subdomain", 60, validate_dns1123_subdomain),
    "dns1035Label": Format("DNS1035Label", 30, validate_dns1035_label),
    "qualifiedName": Format("QualifiedName", 60, validate_qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", 30, _prefix(validate_dns1123_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", 60, _prefix(validate_dns1123_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", 30, _prefix(validate_dns1035_label)),
    "labelValue": Format("LabelValue", 40, validate_label_value),
    "uri": Format("URI", 1103, _validate_uri),
    "uuid": Format("uuid", _UUID_PATTERN, _openapi_format("uuid", "does not match the UUID format")),
    "byte": Format("byte", 84, _openapi_format("byte", "invalid base64")),
    "date": Format("date", _TIME_PATTERN, _openapi_format("date", "invalid date")),
    "datetime": Format("datetime", _TIME_PATTERN, _openapi_format("datetime", "invalid datetime")),
}


def _named(name: str) -> Optional:
    named_format = FORMATS.get(name)
    return NONE if named_format is None else Optional(named_format)


def _validate(format: Format, text: str) -> Optional:
    # Messages that differ between releases are of a subclass of str, which is no string of CEL.
    messages = [str(message) for message in format.validate(text)]
    return Optional(messages) if messages else NONE


def _constant(format: Format) -> Callable[[], Format]:
    return lambda: format


NAMED_FORMATS: Final = Library(
    "kubernetes.format",
    [
        function("validate", member("format-validate", (FORMAT_TYPE, STRING), optional_of(list_of(STRING)), _validate)),
        function("format.named", overload("format-named", (STRING,), optional_of(FORMAT_TYPE), _named)),
        *(
            function(f"format.{name}", overload(f"format.{name}", (), FORMAT_TYPE, _constant(format)))
            for name, format in FORMATS.items()
        ),
    ],
)

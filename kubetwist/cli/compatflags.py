"""
Flags that are accepted for compatibility with command lines of kube-apiserver.

A value is accepted if the server behaves as the flag demands. Other values are rejected with the reason.
"""

from __future__ import annotations

from .flagtypes import BOOLEAN, NATURAL, PORT, FlagType, Row


def restrict_values(kind: FlagType, *values: object, reason: str) -> FlagType:
    """
    Return a flag type that accepts only C{values}.

    @param kind: The flag type that parses the value.
    @param reason: The error message for other values.
    """

    def parse(text: str) -> object:
        value = kind.parse(text)
        if value not in values:
            raise ValueError(reason)
        return value

    return FlagType(parse, kind.metavar, value_optional=kind.value_optional)


def unsupported_flag(name: str, kind: FlagType, reason: str) -> Row:
    """
    Return a flag of an unsupported feature, which accepts only its default.

    @param reason: The reason, for the help and the error message.
    """
    default = {BOOLEAN: False, NATURAL: 0, PORT: 0}.get(kind, "")
    return name, restrict_values(kind, default, reason=reason), default, f"Not supported: {reason}."

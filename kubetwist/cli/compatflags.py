"""
Flags that are accepted for compatibility with command lines of kube-apiserver.

A value is accepted if the server behaves as the flag demands. Other values are rejected with the reason. The page
F{docs/flags.md} lists these flags.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from attrs import frozen

from .flagtypes import BOOLEAN, NATURAL, PORT, Flag, FlagType, Row


class Support(Enum):
    """What a flag of kube-apiserver does here, in the words of the documentation."""

    REFUSED = "refused"
    RESTRICTED = "some values"
    PARTIAL = "partly"
    NONE = "no effect"


@frozen
class LimitedFlagType(FlagType):
    """
    The type of a flag that does not do all that it does in kube-apiserver.

    @ivar base: The type of its values.
    @ivar support: What it does.
    @ivar reason: Why.
    """

    base: FlagType | None = None
    support: Support = Support.NONE
    reason: str = ""

    @property
    def kind(self) -> FlagType:
        """See L{FlagType.kind}."""
        return self.base or self


def limited_flags(flags: Iterable[Flag]) -> dict[str, LimitedFlagType]:
    """Return the types of the flags that do not do all that they do in kube-apiserver, by name."""
    return {flag.name: flag.flag_type for flag in flags if isinstance(flag.flag_type, LimitedFlagType)}


def _limited(kind: FlagType, support: Support, reason: str, values: tuple[object, ...] = ()) -> LimitedFlagType:
    """
    Return a limited type.

    @param values: The accepted values; all values of C{kind} if empty.
    """

    def parse(text: str) -> object:
        value = kind.parse(text)
        if values and value not in values:
            raise ValueError(reason)
        return value

    return LimitedFlagType(parse, kind.metavar, kind.merge, kind.value_optional, kind, support, reason)


def restrict_values(kind: FlagType, *values: object, reason: str) -> FlagType:
    """
    Return a flag type that accepts only C{values}.

    @param kind: The flag type that parses the value.
    @param reason: The error message for other values.
    """
    return _limited(kind, Support.RESTRICTED, reason, values)


def unsupported_flag(name: str, kind: FlagType, reason: str) -> Row:
    """
    Return a flag of an unsupported feature, which accepts only its default.

    @param reason: The reason, for the help and the error message.
    """
    default = {BOOLEAN: False, NATURAL: 0, PORT: 0}.get(kind, "")
    return name, _limited(kind, Support.REFUSED, reason, (default,)), default, f"Not supported: {reason}."


def ineffective_flag(name: str, kind: FlagType, default: Any, reason: str) -> Row:
    """
    Return a flag that is parsed and has no effect.

    @param reason: The reason, for the help.
    """
    return name, _limited(kind, Support.NONE, reason), default, f"No effect: {reason}."


def partial_flag(name: str, kind: FlagType, default: Any, reason: str) -> Row:
    """
    Return a flag that has only a part of its effect.

    @param reason: The effect, for the help: a sentence without its period.
    """
    return name, _limited(kind, Support.PARTIAL, reason), default, f"{reason}."

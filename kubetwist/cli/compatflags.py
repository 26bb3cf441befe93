"""
Flags of kube-apiserver that are only one way here, and those that have nothing to do.

Command lines that were written for kube-apiserver stand as they are wherever what they ask for is what happens; where
it is not, the flag is refused with the reason.
"""

from __future__ import annotations

from .flagtypes import BOOLEAN, NATURAL, PORT, FlagType, Row


def restrict_values(kind: FlagType, *values: object, why: str) -> FlagType:
    """
    What takes C{values} and nothing else.

    @param why: What others are told.
    """

    def parse(text: str) -> object:
        value = kind.parse(text)
        if value not in values:
            raise ValueError(why)
        return value

    return FlagType(parse, kind.metavar, value_optional=kind.value_optional)


def unsupported_flag(name: str, kind: FlagType, why: str) -> Row:
    """A flag for what is not there, which can at most say so."""
    default = {BOOLEAN: False, NATURAL: 0, PORT: 0}.get(kind, "")
    return name, restrict_values(kind, default, why=why), default, f"Can not be set: {why}."

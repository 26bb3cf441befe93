"""
Typed command-line flags with the syntax of pflag: C{--flag=value}, C{--flag value} and C{--switch}.

Twisted's L{usage.Options} supports neither switches with values nor repeated flags that are merged.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from textwrap import wrap
from typing import Any, Final

from attrs import field, frozen

from ..api.componentglobals import merge_components, split_components
from ..api.go.durations import parse_duration
from ..api.go.parsebool import parse_bool
from ..http.connection.memorylimit import parse_memory
from ..logs.verbosity import parse_level, parse_modules

#: The only single-letter flag: -v=3, -v3, -v 3.
_SHORT: Final = re.compile("-v(=|[0-9]|$)")


@frozen
class FlagType:
    """
    The type of a flag (pflag: C{Value}).

    @ivar parse: Parses an argument. Raises L{ValueError} with a message.
    @ivar metavar: Placeholder of the argument in the help.
    @ivar merge: Merges the values of a repeated flag; L{None} if the last one wins.
    @ivar value_optional: Whether the flag can be set without a value (pflag: C{NoOptDefVal}).
    """

    parse: Callable[[str], Any]
    metavar: str = ""
    merge: Callable[[Any, Any], Any] | None = None
    value_optional: bool = False

    @property
    def kind(self) -> FlagType:
        """The type of the values: C{self}, or the type that C{self} restricts."""
        return self


@frozen
class Flag:
    """A flag. C{default} is a parsed value, not an argument."""

    name: str
    flag_type: FlagType
    default: Any
    help: str
    section: str = field(default="")


#: Flags by their names of the previous release.
RENAMED_FLAGS: Final = {"pretend-nodes": "fake-nodes"}

#: Name, type, default and help.
Row = tuple[str, FlagType, Any, str]


def flag_group(section: str, rows: Iterable[Row]) -> tuple[Flag, ...]:
    """Return the flags of one section of the help."""
    return tuple(Flag(name, kind, default, text, section) for name, kind, default, text in rows)


class FlagError(ValueError):
    """Invalid command-line arguments."""


def _boolean(text: str) -> bool:
    try:
        return parse_bool(text)
    except ValueError:
        raise ValueError("it must be true or false") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError("it must be a number")
    return value


def _rate(text: str) -> float:
    value = _number(text)
    if value < 0:
        raise ValueError("it must not be negative")
    return value


def _port(text: str) -> int:
    value = _integer(text)
    if not 0 <= value <= 65535:
        raise ValueError("it must be a port between 0 and 65535")
    return value


def _positive(text: str) -> int:
    value = _integer(text)
    if value < 1:
        raise ValueError("it must be greater than 0")
    return value


def _natural(text: str) -> int:
    value = _integer(text)
    if value < 0:
        raise ValueError("it must not be negative")
    return value


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError("it must be an IP address") from None


def _networks(text: str) -> tuple[str, ...]:
    try:
        networks = [ipaddress.ip_network(one.strip()) for one in text.split(",")]
    except ValueError:
        raise ValueError("it must be one network such as 10.0.0.0/24, or two of different IP families") from None
    if len(networks) > 2 or len({one.version for one in networks}) != len(networks):
        raise ValueError("it must be one network, or two of different IP families")
    if any(one.num_addresses < 4 for one in networks):
        raise ValueError("it must have room for several addresses")
    return tuple(str(one) for one in networks)


def _cidrs(text: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    try:
        return tuple(ipaddress.ip_network(one) for one in _list(text))
    except ValueError as error:
        raise ValueError(f"it must be networks such as 169.254.0.0/16: {error}") from None


def _duration(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < 0:
        raise ValueError("it must not be negative")
    return seconds


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _mapping(text: str) -> dict[str, str]:
    mapping: dict[str, str] = {}
    for item in _list(text):
        key, _, value = item.partition("=")
        mapping[key.strip()] = value.strip()
    return mapping


def _pair(text: str) -> dict[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise ValueError("malformed pair, expect string=string")
    return {key.strip(): value.strip()}


def _sizes(text: str) -> dict[str, int]:
    sizes = {}
    for item in _list(text):
        resource, hash_sign, size = item.partition("#")
        if not hash_sign or not resource or not size.isdigit():
            raise ValueError("each item must be resource[.group]#size")
        sizes[resource] = int(size)
    return sizes


def _port_range(text: str) -> tuple[int, int]:
    first, separator, last = text.partition("-")
    if not separator:
        first, separator, count = text.partition("+")
        if separator:
            last = str(_natural(first) + _natural(count))
    low, high = _port(first), _port(last or first)
    if low > high:
        raise ValueError("the first port must not be greater than the last")
    return low, high


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, **other}


def one_of(*choices: str) -> FlagType:
    """Return a flag type that accepts one of C{choices}."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return text

    return FlagType(parse, "string")


STRING = FlagType(str, "string")
MEMORY = FlagType(parse_memory, "quantity")
BOOLEAN = FlagType(_boolean, value_optional=True)
PORT = FlagType(_port, "int")
INTEGER = FlagType(_integer, "int")
FLOAT = FlagType(_number, "float")
RATE = FlagType(_rate, "float")
POSITIVE = FlagType(_positive, "int")
NATURAL = FlagType(_natural, "int")
LEVEL = FlagType(parse_level, "level")
MODULES = FlagType(parse_modules, "pattern=N,...")
ADDRESS = FlagType(_address, "ip")
NETWORKS = FlagType(_networks, "string")
CIDRS = FlagType(_cidrs, "cidrs", merge=lambda one, other: one + other)
DURATION = FlagType(_duration, "duration")
STRINGS = FlagType(_list, "strings", merge=lambda one, other: one + other)
STRING_ARRAY = FlagType(lambda text: (text,), "stringArray", merge=lambda one, other: one + other)
MAPPING = FlagType(_mapping, "mapStringString", merge=_merge)
#: One pair at a time: commas belong to the value.
PAIR = FlagType(_pair, "mapStringString", merge=_merge)
#: Settings of feature gates by component.
FEATURE_GATES = FlagType(split_components, "colonSeparatedMultimapStringString", merge=merge_components)
SIZES = FlagType(_sizes, "strings", merge=_merge)
PORT_RANGE = FlagType(_port_range, "portRange")


def validated_strings(check: Callable[[tuple[str, ...]], object]) -> FlagType:
    """
    Return a flag type for lists of strings.

    @param check: Validates the list. Raises L{ValueError} with a message.
    """

    def parse(text: str) -> Any:
        values: tuple[str, ...] = STRINGS.parse(text)
        check(values)
        return values

    return FlagType(parse, STRINGS.metavar, merge=STRINGS.merge)


def parse_flags(
    flags: Sequence[Flag], arguments: Sequence[str], warn: Callable[[str], object] = lambda text: None
) -> dict[str, Any]:
    """
    Parse a command line.

    @param flags: The known flags.
    @param arguments: The command line, without the name of the command.
    @param warn: Called with a text, in pflag's words, for each deprecated flag.
    @return: The values of the flags that are set, by name.
    @raise FlagError: The command line is invalid. The message is a single line.
    """
    known = {flag.name: flag for flag in flags}
    values: dict[str, Any] = {}
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        if _SHORT.match(argument):
            value_text = argument[2:]
            argument = "--v=" + value_text.removeprefix("=") if value_text else "--v"
        if not argument.startswith("--") or argument == "--":
            raise FlagError(f'unexpected argument "{argument}"')
        name, equals, value_text = argument[2:].partition("=")
        # As in kube-apiserver, underscores are accepted instead of dashes.
        flag = known.get(name.replace("_", "-"))
        if flag is None and (flag := known.get(RENAMED_FLAGS.get(name.replace("_", "-"), ""))):
            warn(f"Flag --{name} has been deprecated, use --{flag.name}")
        if flag is None:
            raise FlagError(f"unknown flag: --{name}{_suggestion(name, known)}")
        if not equals:
            if flag.flag_type.value_optional:
                value_text = "true"
            elif remaining:
                value_text = remaining.pop(0)
            else:
                raise FlagError(f"flag needs an argument: --{name}")
        try:
            value = flag.flag_type.parse(value_text)
        except ValueError as error:
            raise FlagError(f'invalid argument "{value_text}" for "--{flag.name}" flag: {error}') from None
        if flag.flag_type.merge is not None and flag.name in values:
            value = flag.flag_type.merge(values[flag.name], value)
        values[flag.name] = value
    return values


def _suggestion(name: str, known: Iterable[str]) -> str:
    similar = get_close_matches(name.replace("_", "-"), known, n=1, cutoff=0.7)
    return f"; did you mean --{similar[0]}?" if similar else ""


def describe_flags(flags: Sequence[Flag], width: int = 100) -> str:
    """Return the help of the flags, grouped by section."""
    sections: dict[str, list[Flag]] = {}
    for flag in flags:
        sections.setdefault(flag.section, []).append(flag)
    lines: list[str] = []
    for section, members in sections.items():
        lines += ["", f"{section} flags:", ""]
        for flag in members:
            lines.append(f"    --{flag.name} {flag.flag_type.metavar}".rstrip())
            text = flag.help
            default = format_default(flag)
            if default:
                text += f" (default {default})"
            for paragraph in text.split("\n"):
                lines += wrap(paragraph, width, initial_indent=" " * 12, subsequent_indent=" " * 12)
    return "\n".join(lines) + "\n"


def format_default(flag: Flag) -> str:
    """Return the default as an argument; C{""} for zero values."""
    value = flag.default
    if value in (None, "", False, (), {}, 0):
        return ""
    if flag.flag_type.kind is DURATION:
        return format_duration(value)
    if isinstance(value, bool):
        return "true"
    if flag.flag_type.kind is PORT_RANGE:
        return f"{value[0]}-{value[1]}"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f'"{value}"' if isinstance(value, str) else str(value)


def format_duration(seconds: float) -> str:
    """Format whole seconds as Go's C{time.Duration}."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minute}m" if minutes else "") + f"{second}s"

"""
The function C{format}: C{"%s is %.2f".format([name, number])}, version 2 of cel-go's extension for strings.

See google/cel-go, C{ext/formatting.go}. Numbers are formatted as in American English: C{1,234.500000} and
C{1.052033 × 10⁰³}.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from kubetwist.api.go.quote import quoted
from kubetwist.cel.ast import Call, Expr, ListExpr, Literal, MapExpr, walk
from kubetwist.cel.checker import Checked
from kubetwist.cel.errors import CelError, CostLimitExceeded
from kubetwist.cel.standard.gonumbers import format_g
from kubetwist.cel.standard.times import format_duration, format_timestamp
from kubetwist.cel.types import Kind, Type
from kubetwist.cel.values import LISTS, MAPS, Duration, Timestamp, UInt, Value, entries, type_of

_clause = re.compile(r"%(?:(%)|(?:(\.)([0-9]*))?(.)?)", re.DOTALL).search

_DEFAULT_PRECISION: Final = 6
#: Maximum number of fraction digits.
_MAX_PRECISION: Final = 1000
#: golang.org/x/text stores the minimum number of fraction digits in a byte.
_FRACTION_MODULUS: Final = 256
#: Maximum length of a result in characters.
_MAX_RESULT_LENGTH: Final = 64 << 20

_STRING_RULE: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps"
)
_DECIMAL_RULE: Final = "decimal clause can only be used on integers"
_FIXED_RULE: Final = "fixed-point clause can only be used on doubles"
_SCIENTIFIC_RULE: Final = "scientific clause can only be used on doubles"
_BINARY_RULE: Final = "only integers and bools can be formatted as binary"
_HEXADECIMAL_RULE: Final = "only integers, byte buffers, and strings can be formatted as hex"
_OCTAL_RULE: Final = "octal clause can only be used on integers"

_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def _format_error(problem: str) -> CelError:
    return CelError(f"error during formatting: {problem}")


def _type_name(value: Value) -> str:
    name: str = type_of(value).name
    return name


def _text(value: Value) -> str:
    """Return the result of C{string(value)}."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_g(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            problem = "invalid UTF-8 in bytes, cannot convert to string"
            raise _format_error(f"could not convert argument {quoted(problem)} to string") from None
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Type):
        return value.name
    return str(value) if type(value) is str else str(int(value))


def _format_value(value: Value) -> str:
    """Format C{%s}."""
    if value is None:
        return "null"
    if isinstance(value, LISTS):
        return _format_list(value)
    if isinstance(value, MAPS) and _type_name(value) == "map":
        return _format_map(value)
    if isinstance(value, (bool, int, float, str, bytes, Timestamp, Duration, Type)):
        return _text(value)
    raise _format_error(f"{_STRING_RULE}, was given {_type_name(value)}")


def _format_nested(value: Value) -> str:
    """Format a value within a list or map as a CEL literal."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(_text(value))}"
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{_text(value)}"'
    if isinstance(value, Timestamp):
        return f"timestamp({quoted(_text(value))})"
    if isinstance(value, Duration):
        return f"duration({quoted(_text(value))})"
    if value is None or isinstance(value, (bool, int, Type, *LISTS)):
        return _format_value(value)
    if isinstance(value, MAPS) and _type_name(value) == "map":
        return _format_map(value)
    raise _format_error(f"no formatting function for {_type_name(value)}")


def _format_list(values: Sequence[Value]) -> str:
    return f"[{', '.join(map(_format_nested, values))}]"


def _format_map(values: Mapping[Value, Value]) -> str:
    pairs = []
    for key, value in entries(values):
        if not isinstance(key, (str, bool, int)):
            raise _format_error(f"no formatting function for map key of type {_type_name(key)}")
        pairs.append((_format_nested(key), _format_nested(value)))
    pairs.sort(key=lambda pair: pair[0].encode("utf-8", "replace"))
    return f"{{{', '.join(f'{key}:{value}' for key, value in pairs)}}}"


def _decimal(value: Value) -> str:
    """Format C{%d}."""
    if type(value) is not int and type(value) is not UInt:
        raise _format_error(f"{_DECIMAL_RULE}, was given {_type_name(value)}")
    return str(int(value))


def _number(value: Value, rule: str) -> float:
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL_NUMBERS:
        return _SPECIAL_NUMBERS[value]
    raise _format_error(f"{rule}, was given {_type_name(value)}")


def _format_non_finite(number: float) -> str | None:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return None


def _fixed(value: Value, precision: int) -> str:
    """Format C{%f}."""
    number = _number(value, _FIXED_RULE)
    special = _format_non_finite(number)
    if special:
        return special
    # Zero is formatted without a sign.
    text = format(number or 0.0, f",.{precision}f")
    if precision < _FRACTION_MODULUS:
        return text
    whole, _, digits = text.partition(".")
    digits = digits.rstrip("0").ljust(precision % _FRACTION_MODULUS, "0")
    return f"{whole}.{digits}" if digits else whole


def _scientific(value: Value, precision: int) -> str:
    """Format C{%e}: the precision is used as the minimum width, and there are always six digits."""
    number = _number(value, _SCIENTIFIC_RULE)
    special = _format_non_finite(number)
    if special:
        return special.rjust(precision)
    digits, _, exponent = format(number or 0.0, f".{_DEFAULT_PRECISION}e").partition("e")
    return f"{digits}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}".rjust(precision)


def _binary(value: Value) -> str:
    """Format C{%b}."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, int):
        raise _format_error(f"{_BINARY_RULE}, was given {_type_name(value)}")
    return f"{int(value):b}"


def _octal(value: Value) -> str:
    """Format C{%o}."""
    if type(value) is not int and type(value) is not UInt:
        raise _format_error(f"{_OCTAL_RULE}, was given {_type_name(value)}")
    return f"{int(value):o}"


def _hexadecimal(value: Value) -> str:
    """Format C{%x}."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    if type(value) is not int and type(value) is not UInt:
        raise _format_error(f"{_HEXADECIMAL_RULE}, was given {_type_name(value)}")
    return f"{int(value):x}"


def _upper_hexadecimal(value: Value) -> str:
    """Format C{%X}."""
    return _hexadecimal(value).upper()


_PLAIN: Final[Mapping[str, Callable[[Value], str]]] = {
    "s": _format_value,
    "d": _decimal,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
}
_PRECISE: Final[Mapping[str, Callable[[Value, int], str]]] = {"f": _fixed, "e": _scientific}


def _clause_error(reason: str) -> CelError:
    return CelError(f"could not parse formatting clause: {reason}")


#: Formats a clause with the index of the argument, the verb and the precision.
_Render = Callable[[int, str, int], str]


def format_string(text: str, values: Sequence[Value]) -> str:
    """
    Format a string with arguments.

    @raise CelError: The format is invalid, or an argument has the wrong type for its clause.
    """

    def render(index: int, letter: str, precision: int) -> str:
        value = values[index]
        return _PLAIN[letter](value) if letter in _PLAIN else _PRECISE[letter](value, precision)

    return _expand(text, len(values), render)[0]


def _expand(text: str, count: int, render: _Render, checking: bool = False) -> tuple[str, int]:
    """
    Replace the clauses of a format.

    @param text: The format.
    @param count: The number of arguments.
    @param render: Formats a clause.
    @param checking: Whether an incomplete clause is reported before a missing argument.
    @return: The result, and the number of clauses.
    """
    subexpressions: list[str] = []
    offset, used_count, length = 0, 0, 0
    while match := _clause(text, offset):
        subexpressions.append(text[offset : match.start()])
        offset = match.end()
        percent, dot, digits, letter = match.groups()
        if percent:
            subexpressions.append("%")
            continue
        if checking and not dot and letter is None:
            raise CelError("unexpected end of string")
        if used_count >= count:
            raise CelError(f"index {used_count} out of range")
        subexpressions.append(render(used_count, *_parsed(dot, digits, letter)))
        used_count += 1
        length += len(subexpressions[-1])
        if length > _MAX_RESULT_LENGTH:
            raise CostLimitExceeded
    subexpressions.append(text[offset:])
    return "".join(subexpressions), used_count


def _parsed(dot: str | None, digits: str, letter: str | None) -> tuple[str, int]:
    precision = _DEFAULT_PRECISION
    if dot:
        if letter is None:
            raise _clause_error("error while parsing precision: could not find end of precision specifier")
        precision = _precision(digits)
    if letter is None:
        raise CelError("unexpected end of string")
    if letter not in _PLAIN and letter not in _PRECISE:
        # cel-go reads one byte.
        shown = letter if letter.isascii() else chr(letter.encode("utf-8", "replace")[0])
        raise _clause_error(f'unrecognized formatting clause "{shown}"')
    return letter, precision


def _precision(digits: str) -> int:
    problem = "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing"
    if not digits:
        raise _clause_error(f'{problem} "": invalid syntax')
    if len(digits) > 18 or int(digits) > _MAX_PRECISION:
        raise _clause_error(f"{problem} {quoted(digits)}: value out of range")
    return int(digits)


# Literal formats whose arguments are a list literal are checked when they are compiled.

_ALL_KINDS: Final = frozenset(
    (
        *(Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING),
        *(Kind.TIMESTAMP, Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL),
    )
)
_INTEGERS: Final = frozenset((Kind.INT, Kind.UINT))
_DOUBLES: Final = frozenset((Kind.DOUBLE, Kind.STRING))
_KINDS: Final = {
    "s": (_ALL_KINDS, _STRING_RULE),
    "d": (_INTEGERS, _DECIMAL_RULE),
    "f": (_DOUBLES, _FIXED_RULE),
    "e": (_DOUBLES, _SCIENTIFIC_RULE),
    "b": (_INTEGERS | {Kind.BOOL}, _BINARY_RULE),
    "x": (_INTEGERS | {Kind.STRING, Kind.BYTES}, _HEXADECIMAL_RULE),
    "X": (_INTEGERS | {Kind.STRING, Kind.BYTES}, _HEXADECIMAL_RULE),
    "o": (_INTEGERS, _OCTAL_RULE),
}


def check_formats(checked: Checked) -> Iterator[tuple[Expr, str]]:
    """Report calls of C{format} that cannot succeed; a validator."""
    for expr in walk(checked.root):
        if not isinstance(expr, Call) or expr.function != "format" or len(expr.args) != 1:
            continue
        text, arguments = expr.target, expr.args[0]
        if isinstance(text, Literal) and type(text.value) is str and isinstance(arguments, ListExpr):
            yield from _check_format(checked, expr, text.value, arguments.elements)


def _check_format(checked: Checked, call: Call, text: str, arguments: Sequence[Expr]) -> Iterator[tuple[Expr, str]]:
    location: Expr = call

    def render(index: int, letter: str, precision: int) -> str:
        nonlocal location
        kinds, rule = _KINDS[letter]
        mismatch = _find_mismatch(checked, arguments[index], kinds, inside=letter == "s")
        if mismatch is not None:
            location = mismatch
            raise _format_error(f"{rule}, was given {checked.types[mismatch.id].name}")
        return ""

    try:
        _, used_count = _expand(text, len(arguments), render, checking=True)
    except CelError as error:
        yield location, error.message
        return
    if len(arguments) > used_count:
        problem = f"too many arguments supplied to string.format (expected {used_count}, got {len(arguments)})"
        yield call, problem


def _find_mismatch(checked: Checked, argument: Expr, kinds: frozenset[Kind], inside: bool) -> Expr | None:
    """Return the part of an argument whose type has none of these kinds, or C{None}."""
    type_ = checked.types[argument.id]
    if not type_.is_dyn and type_.kind not in kinds:
        return argument
    if not inside:
        return None
    subexpressions: list[Expr] = []
    if isinstance(argument, ListExpr):
        subexpressions = argument.elements
    elif isinstance(argument, MapExpr):
        subexpressions = [subexpression for entry in argument.entries for subexpression in (entry.key, entry.value)]
    mismatches = (_find_mismatch(checked, subexpression, kinds, inside) for subexpression in subexpressions)
    return next((subexpression for subexpression in mismatches if subexpression is not None), None)

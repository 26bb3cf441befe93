"""The standard library of CEL, C{cel.bind} and comprehensions with two variables."""

from __future__ import annotations

from typing import Final

from kubetwist.cel import types
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Function, Library, function, overload
from kubetwist.cel.macros import BINDING_MACROS, MAP_INSERT, STANDARD_MACROS, TWO_VARIABLE_MACROS
from kubetwist.cel.standard import conversions, operators, times
from kubetwist.cel.types import Type, list_of, map_of, type_parameter
from kubetwist.cel.values import MISSING, Value, find

_K: Final = type_parameter("K")
_V: Final = type_parameter("V")
_MAP: Final = map_of(_K, _V)


def _named_types() -> dict[str, Type]:
    plain = (
        types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL, types.STRING, types.TIMESTAMP,
        types.TYPE, types.UINT,
    )  # fmt: skip
    named = {type_.name: type_ for type_ in plain}
    named["list"] = list_of(operators.A)
    named["map"] = map_of(operators.A, operators.B)
    return named


def _insert(entries: dict[Value, Value], key: Value, value: Value) -> dict[Value, Value]:
    if find(entries, key) is not MISSING:
        raise CelError(f"insert failed: key {operators.format_key(key)} already exists")
    return {**entries, key: value}


def _insert_all(entries: dict[Value, Value], more: dict[Value, Value]) -> dict[Value, Value]:
    for key, value in more.items():
        entries = _insert(entries, key, value)
    return entries


STANDARD: Final = Library(
    "standard",
    functions=(*operators.FUNCTIONS, *conversions.FUNCTIONS, *times.FUNCTIONS),
    macros=STANDARD_MACROS,
    types=_named_types(),
)

BINDINGS: Final = Library("cel.lib.ext.cel.bindings", macros=BINDING_MACROS)


def _map_insert() -> Function:
    return function(
        MAP_INSERT,
        overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
        overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert),
    )


TWO_VARIABLE_COMPREHENSIONS: Final = Library(
    "cel.lib.ext.comprev2", functions=(_map_insert(),), macros=TWO_VARIABLE_MACROS
)

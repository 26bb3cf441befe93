"""Assignability of types with type parameters; see cel-go, C{checker/types.go}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubetwist.cel.types import DYN, Kind, Type

_NAMES: Final = {
    Kind.DURATION: "duration",
    Kind.ERROR: "!error!",
    Kind.NULL: "null",
    Kind.TIMESTAMP: "timestamp",
}
_NULLABLE: Final = frozenset({Kind.OPAQUE, Kind.STRUCT, Kind.DURATION, Kind.TIMESTAMP})
_CONTAINERS: Final = frozenset({Kind.OPAQUE, Kind.LIST, Kind.MAP})
_WILD: Final = frozenset({Kind.DYN, Kind.ERROR})
_LOOSE: Final = _WILD | {Kind.TYPE_PARAM, Kind.NULL}


def format_cel_type(type_: Type) -> str:
    """Return a type as shown in errors."""
    name = _NAMES.get(type_.kind)
    if name is not None:
        return name
    if not type_.parameters:
        return f"wrapper({type_.name})" if type_.nullable else type_.name
    return f"{type_.name}({', '.join(map(format_cel_type, type_.parameters))})"


class TypeSubstitutions:
    """Substitutions of type parameters, with rollback of failed assignments; see cel-go, C{checker/mapping.go}."""

    __slots__ = ("_undo_log", "mapping")

    def __init__(self) -> None:
        self.mapping: dict[str, Type] = {}
        self._undo_log: list[tuple[str, Type | None]] = []

    def set(self, name: str, type_: Type) -> None:
        """Bind a type parameter to a type."""
        self._undo_log.append((name, self.mapping.get(name)))
        self.mapping[name] = type_

    def _commit_or_rollback(self, commit: bool) -> bool:
        """Commit the bindings since the last commit, or roll them back."""
        if not commit:
            for name, previous in reversed(self._undo_log):
                if previous is None:
                    del self.mapping[name]
                else:
                    self.mapping[name] = previous
        self._undo_log.clear()
        return commit

    def assign(self, first: Type, second: Type) -> bool:
        """
        Return whether one of two types is assignable to the other, as cel-go's C{isAssignable}.

        If so, their type parameters are bound.
        """
        return self._commit_or_rollback(_assignable(self, first, second))

    def assign_all(self, first: Sequence[Type], second: Sequence[Type]) -> bool:
        """Call L{assign} for pairs of types, and bind the type parameters only if all pairs are assignable."""
        if len(first) != len(second):
            return False
        for one, other in zip(first, second, strict=True):
            if one.kind is not other.kind and one.kind not in _LOOSE and other.kind not in _LOOSE:
                return False
        return self._commit_or_rollback(_all_assignable(self, first, second))


def _all_assignable(substitutions: TypeSubstitutions, first: Sequence[Type], second: Sequence[Type]) -> bool:
    return len(first) == len(second) and all(
        _assignable(substitutions, one, other) for one, other in zip(first, second, strict=True)
    )


def _assignable(substitutions: TypeSubstitutions, first: Type, second: Type) -> bool:
    kind, other = first.kind, second.kind
    if other is Kind.TYPE_PARAM:
        valid, bound = _is_valid_type_substitution(substitutions, first, second)
        if valid:
            return True
        if bound:
            return False
    if kind is Kind.TYPE_PARAM:
        return _is_valid_type_substitution(substitutions, second, first)[0]
    if kind in _WILD or other in _WILD:
        return True
    if kind is Kind.NULL:
        return _is_assignable_to_null(second)
    if other is Kind.NULL:
        return _is_assignable_to_null(first)
    if kind is Kind.TYPE:
        return other is Kind.TYPE
    if kind in _CONTAINERS:
        return (
            kind is other
            and first.name == second.name
            and _all_assignable(substitutions, first.parameters, second.parameters)
        )
    return kind is other and first.name == second.name


def _is_assignable_to_null(type_: Type) -> bool:
    return type_.kind is Kind.NULL or type_.nullable or type_.kind in _NULLABLE


def _is_valid_type_substitution(substitutions: TypeSubstitutions, type_: Type, variable: Type) -> tuple[bool, bool]:
    """Return whether a type parameter can be bound to a type, and whether it was bound before."""
    if type_ == variable:
        return True, True
    bound = substitutions.mapping.get(variable.name)
    if bound is not None:
        if type_ == bound:
            return True, True
        if _assignable(substitutions, type_, bound):
            general = most_general(type_, bound)
            if not _occurs(substitutions, variable, general):
                substitutions.set(variable.name, general)
            return True, True
        return False, True
    if not _occurs(substitutions, variable, type_):
        substitutions.set(variable.name, type_)
        return True, False
    return False, False


def _occurs(substitutions: TypeSubstitutions, variable: Type, within: Type) -> bool:
    if variable == within:
        return True
    if within.kind is Kind.TYPE_PARAM:
        bound = substitutions.mapping.get(within.name)
        return bound is not None and _occurs(substitutions, variable, bound)
    return any(_occurs(substitutions, variable, parameter) for parameter in within.parameters)


def most_general(first: Type, second: Type) -> Type:
    """Return the more general of two compatible types."""
    return first if _is_equal_or_less_specific(first, second) else second


def _is_equal_or_less_specific(first: Type, second: Type) -> bool:
    if first.kind in (Kind.DYN, Kind.TYPE_PARAM):
        return True
    if second.kind in (Kind.DYN, Kind.TYPE_PARAM) or first.kind is not second.kind:
        return False
    if first.kind in _CONTAINERS:
        return (
            first.name == second.name
            and len(first.parameters) == len(second.parameters)
            and all(map(_is_equal_or_less_specific, first.parameters, second.parameters))
        )
    return first.kind is Kind.TYPE or first == second


def substitute(substitutions: Mapping[str, Type], type_: Type, free_to_dyn: bool = False) -> Type:
    """
    Return a type with its type parameters substituted.

    @param free_to_dyn: Whether unbound type parameters become L{DYN}.
    """
    if type_.kind is Kind.TYPE_PARAM:
        bound = substitutions.get(type_.name)
        if bound is not None:
            return substitute(substitutions, bound, free_to_dyn)
        return DYN if free_to_dyn else type_
    if not type_.parameters:
        return type_
    parameters = tuple(substitute(substitutions, parameter, free_to_dyn) for parameter in type_.parameters)
    return type_ if parameters == type_.parameters else Type(type_.kind, type_.name, parameters, type_.nullable)


def type_params(types: Sequence[Type]) -> set[str]:
    """Return the names of the type parameters in types."""
    names: set[str] = set()
    for type_ in types:
        if type_.kind is Kind.TYPE_PARAM:
            names.add(type_.name)
        else:
            names |= type_params(type_.parameters)
    return names

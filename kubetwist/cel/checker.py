"""Type checker: determines the type of every subexpression and the candidate overloads of every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field

from kubetwist.cel import types
from kubetwist.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)
from kubetwist.cel.errors import Issue
from kubetwist.cel.functions import Overload
from kubetwist.cel.parser import Parsed
from kubetwist.cel.runtimetypes import is_certain
from kubetwist.cel.source import Source
from kubetwist.cel.types import Kind, Type
from kubetwist.cel.unify import (
    TypeSubstitutions,
    format_cel_type,
    most_general,
    substitute,
    type_params,
)
from kubetwist.cel.values import MISSING, type_of

_DYNAMIC: Final = frozenset({Kind.DYN, Kind.ERROR, Kind.TYPE_PARAM})


#: Maximum size of the cache of resolved calls, by the types of their arguments.
_MAX_RESOLVED_CALLS: Final = 2000


@define
class Declarations:
    """
    Declarations of an environment.

    @ivar variables: Types of variables, by name.
    @ivar constants: Types and values of constants.
    @ivar types: Types by the names that expressions may use.
    @ivar find_type: Finds further types by name.
    @ivar functions: Overloads by the name of their function, in the order of their declaration.
    @ivar container: The namespace in which unqualified names are looked up first.
    """

    variables: Mapping[str, Type]
    constants: Mapping[str, tuple[Type, Any]]
    types: Mapping[str, Type]
    functions: Mapping[str, Sequence[Overload]]
    container: str = ""
    find_type: Callable[[str], Type | None] = lambda name: None
    signatures: dict[int, set[str]] = field(factory=dict)
    resolved: dict[tuple[Any, ...], tuple[Resolution, Type]] = field(factory=dict)

    def cache_resolution(self, key: tuple[object, ...], resolution: Resolution, result: Type) -> None:
        """Cache the overloads and the result type of a call, unless the cache is full."""
        if len(self.resolved) < _MAX_RESOLVED_CALLS:
            self.resolved[key] = resolution, result

    def candidates(self, name: str) -> Sequence[str]:
        """Return the qualified names that a name may stand for, the most specific first."""
        if name.startswith("."):
            return (name[1:],)
        if not self.container:
            return (name,)
        parts = self.container.split(".")
        return [".".join([*parts[:count], name]) for count in range(len(parts), -1, -1)]


@define
class Resolved:
    """
    The declaration that a name resolves to.

    @ivar value: The value of a constant or type; L{MISSING} for variables.
    """

    name: str
    type: Type
    value: Any = MISSING


@define
class Resolution:
    """
    The candidate overloads of a call.

    @ivar function: The qualified name, which may include a target that is only a namespace.
    @ivar member: Whether the target is the first argument.
    """

    function: str
    overloads: list[Overload]
    member: bool


@define
class Checked:
    """
    A checked expression.

    @ivar types: The types by node id.
    @ivar names: The declarations of simple and qualified names, by node id.
    @ivar calls: The candidate overloads of calls, by node id.
    """

    parsed: Parsed
    types: dict[int, Type]
    names: dict[int, Resolved]
    calls: dict[int, Resolution]

    @property
    def root(self) -> Expr:
        """Return the root of the syntax tree."""
        return self.parsed.root


def qualified_name(expr: Expr) -> str | None:
    """Return the qualified name that an expression forms, or C{None}."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.test_only:
        prefix = qualified_name(expr.operand)
        return None if prefix is None else f"{prefix}.{expr.field}"
    return None


class Checker:
    """Type checker of one expression."""

    def __init__(self, parsed: Parsed, source: Source, declarations: Declarations) -> None:
        self.issues: list[Issue] = []
        self._parsed = parsed
        self._source = source
        self._declared = declarations
        self._types: dict[int, Type] = {}
        self._names: dict[int, Resolved] = {}
        self._calls: dict[int, Resolution] = {}
        self._substitutions = TypeSubstitutions()
        self._scopes: list[dict[str, Type]] = []
        self._fresh_count = 0
        self._checks: dict[type[Expr], Callable[[Any], Type]] = {
            Literal: self._literal,
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListExpr: self._list,
            MapExpr: self._map,
            StructExpr: self._struct,
            Comprehension: self._comprehension,
        }

    def check(self) -> Checked | None:
        """
        Check the expression.

        @return: C{None} if there are L{issues}.
        """
        self._check(self._parsed.root)
        if self.issues:
            return None
        bindings = self._substitutions.mapping
        types_by_id = {node: substitute(bindings, type_, free_to_dyn=True) for node, type_ in self._types.items()}
        return Checked(self._parsed, types_by_id, self._names, self._calls)

    def _report(self, node: int, message: str) -> None:
        self.issues.append(Issue(message, *self._source.position(self._parsed.offsets.get(node, -1))))

    def _undeclared(self, expr: Expr, name: str) -> Type:
        container = self._declared.container
        self._report(expr.id, f"undeclared reference to '{name}' (in container '{container}')")
        return types.ERROR

    def _mismatch(self, expr: Expr, expected: Type, actual: Type) -> None:
        self._report(expr.id, f"expected type '{format_cel_type(expected)}' but found '{format_cel_type(actual)}'")

    def _assign(self, first: Type, second: Type) -> bool:
        return self._substitutions.assign(first, second)

    def _substitute(self, type_: Type, free_to_dyn: bool = False) -> Type:
        """Return a type with its type parameters substituted."""
        return substitute(self._substitutions.mapping, type_, free_to_dyn)

    def _fresh_type_param(self) -> Type:
        self._fresh_count += 1
        return types.type_parameter(f"_var{self._fresh_count - 1}")

    def _check(self, expr: Expr) -> Type:
        type_ = self._checks[type(expr)](expr)
        self._types[expr.id] = type_
        return type_

    # Names

    def _lookup(self, name: str) -> Resolved | None:
        declared = self._declared
        for candidate in declared.candidates(name):
            for scope in reversed(self._scopes):
                if candidate in scope:
                    return Resolved(candidate, scope[candidate])
            if candidate in declared.variables:
                return Resolved(candidate, declared.variables[candidate])
            if candidate in declared.constants:
                return Resolved(candidate, *declared.constants[candidate])
            type_ = declared.types.get(candidate) or declared.find_type(candidate)
            if type_ is not None:
                return Resolved(candidate, types.type_of_type(type_), type_)
        return None

    def _functions(self, name: str) -> tuple[str, Sequence[Overload]] | None:
        for candidate in self._declared.candidates(name):
            overloads = self._declared.functions.get(candidate)
            if overloads is not None:
                return candidate, overloads
        return None

    def _literal(self, expr: Literal) -> Type:
        return type_of(expr.value)

    def _ident(self, expr: Ident) -> Type:
        resolved = self._lookup(expr.name)
        if resolved is None:
            return self._undeclared(expr, expr.name)
        self._names[expr.id] = resolved
        return resolved.type

    def _select(self, expr: Select) -> Type:
        name = qualified_name(expr)
        if name is not None:
            resolved = self._lookup(name)
            if resolved is not None:
                self._names[expr.id] = resolved
                return resolved.type
        field_type = self._field(expr, expr.operand, expr.field, optional=False)
        return types.BOOL if expr.test_only else self._substitute(field_type)

    def _field(self, expr: Expr, operand: Expr, name: str, optional: bool) -> Type:
        """Check an operand and return the type of its field."""
        target = self._substitute(self._check(operand))
        wrapped = types.is_optional(target)
        if wrapped:
            target = target.parameters[0]
        field_type = types.DYN
        if target.kind is Kind.MAP:
            field_type = target.parameters[1]
        elif target.kind is Kind.STRUCT:
            field_type = self._declared_field(expr.id, target, name)
        elif target.kind is Kind.TYPE_PARAM:
            self._assign(types.DYN, target)
        elif target.kind not in _DYNAMIC:
            self._report(expr.id, f"type '{format_cel_type(target)}' does not support field selection")
        return types.optional_of(field_type) if wrapped or optional else field_type

    def _declared_field(self, node: int, type_: Type, name: str) -> Type:
        field_type = type_.fields().get(name)
        if field_type is None:
            closed = isinstance(type_, types.ObjectType) and type_.closed
            problem = f"unexpected failed resolution of '{type_.name}'" if closed else f"undefined field '{name}'"
            self._report(node, problem)
            return types.ERROR
        return field_type

    # Calls

    def _call(self, expr: Call) -> Type:
        if expr.function == "_?._":
            field_name = expr.args[1]
            assert isinstance(field_name, Literal)
            field_type = self._field(expr, expr.args[0], field_name.value, optional=True)
            self._types[field_name.id] = types.STRING
            return self._substitute(field_type)
        arguments = [self._check(argument) for argument in expr.args]
        if expr.target is None:
            functions = self._functions(expr.function)
            if functions is None:
                return self._undeclared(expr, expr.function)
            return self._resolve(expr, *functions, arguments, member=False)
        prefix = qualified_name(expr.target)
        if prefix is not None:
            functions = self._functions(f"{prefix}.{expr.function}")
            if functions is not None:
                return self._resolve(expr, *functions, arguments, member=False)
        target = self._check(expr.target)
        functions = self._functions(expr.function)
        if functions is None:
            return self._undeclared(expr, expr.function)
        return self._resolve(expr, *functions, [target, *arguments], member=True)

    def _resolve(
        self, expr: Call, name: str, overloads: Sequence[Overload], arguments: list[Type], member: bool
    ) -> Type:
        """Determine the matching overloads and the result type, which is C{dyn} if the overloads differ in it."""
        if name in ("_&&_", "_||_"):
            return self._logical(expr, name, overloads, arguments)
        # Calls whose argument types are fully known always resolve to the same overloads.
        key = (name, member, *arguments) if all(map(is_certain, arguments)) else None
        cached = self._declared.resolved.get(key) if key else None
        if cached is not None:
            self._calls[expr.id] = cached[0]
            return cached[1]
        generic = False
        matching: list[Overload] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member is not member or len(overload.parameters) != len(arguments):
                continue
            parameters, returned = self._instance(overload)
            if not self._substitutions.assign_all(arguments, parameters):
                continue
            matching.append(overload)
            generic = generic or overload.result is not returned
            candidate = self._substitute(returned)
            if result is None:
                result = candidate
            elif result.kind is not Kind.DYN and candidate != result:
                result = types.DYN
        if result is None:
            self._no_overload(expr, name, arguments, member)
            return types.ERROR
        self._calls[expr.id] = Resolution(name, matching, member)
        if key and not generic:
            self._declared.cache_resolution(key, self._calls[expr.id], result)
        return result

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Return the parameters and the result of an overload with fresh type parameters."""
        signatures = self._declared.signatures
        names = signatures.get(id(overload))
        if names is None:
            names = signatures[id(overload)] = type_params((*overload.parameters, overload.result))
        if not names:
            return overload.parameters, overload.result
        fresh = {name: self._fresh_type_param() for name in sorted(names)}
        return (
            tuple(substitute(fresh, parameter) for parameter in overload.parameters),
            substitute(fresh, overload.result),
        )

    def _logical(self, expr: Call, name: str, overloads: Sequence[Overload], arguments: list[Type]) -> Type:
        fits = True
        for argument, type_ in zip(expr.args, arguments, strict=True):
            if not self._assign(type_, types.BOOL):
                self._mismatch(argument, types.BOOL, type_)
                fits = False
        if not fits:
            return types.ERROR
        self._calls[expr.id] = Resolution(name, list(overloads), False)
        return types.BOOL

    def _no_overload(self, expr: Call, name: str, arguments: list[Type], member: bool) -> None:
        formatted = [format_cel_type(self._substitute(type_, free_to_dyn=True)) for type_ in arguments]
        signature = f"{formatted[0]}.({', '.join(formatted[1:])})" if member else f"({', '.join(formatted)})"
        self._report(expr.id, f"found no matching overload for '{name}' applied to '{signature}'")

    # Aggregates

    def _join_types(self, previous: Type | None, current: Type) -> Type:
        """Return the join of two types; a validator checks that literals have homogeneous elements."""
        if previous is None:
            return current
        return most_general(previous, current) if self._assign(previous, current) else types.DYN

    def _optional_element_type(self, expr: Expr, type_: Type) -> Type:
        """Return the type of the value of an optional element."""
        if types.is_optional(type_):
            return type_.parameters[0]
        if not type_.is_dyn:
            self._mismatch(expr, types.optional_of(type_), type_)
        return type_

    def _list(self, expr: ListExpr) -> Type:
        joined: Type | None = None
        for index, element in enumerate(expr.elements):
            element_type = self._check(element)
            if index in expr.optional:
                element_type = self._optional_element_type(element, element_type)
            joined = self._join_types(joined, element_type)
        return types.list_of(self._fresh_type_param() if joined is None else joined)

    def _map(self, expr: MapExpr) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in expr.entries:
            keys = self._join_types(keys, self._check(entry.key))
            values = self._join_types(values, self._entry_value(entry))
        if keys is None or values is None:
            keys, values = self._fresh_type_param(), self._fresh_type_param()
        return types.map_of(keys, values)

    def _entry_value(self, entry: Entry) -> Type:
        value_type = self._check(entry.value)
        return self._optional_element_type(entry.value, value_type) if entry.optional else value_type

    def _struct(self, expr: StructExpr) -> Type:
        resolved = self._lookup(expr.type_name)
        if resolved is None:
            return self._undeclared(expr, expr.type_name)
        result = types.ERROR
        if resolved.type.kind is not Kind.TYPE:
            self._report(expr.id, f"'{resolved.type.name}' is not a type")
        elif resolved.type.parameters[0].kind is not Kind.STRUCT:
            self._report(expr.id, f"'{resolved.type.parameters[0].name}' is not a message type")
        else:
            result = resolved.type.parameters[0]
        self._names[expr.id] = resolved
        for entry in expr.entries:
            actual = self._check(entry.value)
            expected = types.ERROR
            if result.kind is Kind.STRUCT:
                expected = self._declared_field(entry.id, result, entry.key)
            if entry.optional:
                actual = self._optional_element_type(entry.value, actual)
            if not self._assign(expected, actual):
                self._report(
                    entry.id,
                    f"expected type of field '{entry.key}' is '{format_cel_type(expected)}' "
                    f"but provided type is '{format_cel_type(actual)}'",
                )
        return result

    # Comprehensions

    def _comprehension(self, expr: Comprehension) -> Type:
        self._check(expr.iter_range)
        accumulated = self._check(expr.accu_init)
        range_type = self._substitute(self._types[expr.iter_range.id])
        self._scopes.append({expr.accu_var: accumulated})
        first, second = self._iteration_types(expr, range_type)
        scope = {expr.iter_var: first}
        if expr.iter_var2:
            scope[expr.iter_var2] = second
        self._scopes.append(scope)
        self._require(expr.condition, types.BOOL)
        self._require(expr.step, accumulated)
        self._scopes.pop()
        result = self._check(expr.result)
        self._scopes.pop()
        return self._substitute(result)

    def _require(self, expr: Expr, expected: Type) -> None:
        actual = self._check(expr)
        if not self._assign(expected, actual):
            self._mismatch(expr, expected, actual)

    def _iteration_types(self, expr: Comprehension, range_type: Type) -> tuple[Type, Type]:
        """Return the types of both iteration variables; with a single variable only the first is used."""
        if range_type.kind is Kind.LIST:
            element = range_type.parameters[0]
            return (types.INT, element) if expr.iter_var2 else (element, element)
        if range_type.kind is Kind.MAP:
            return range_type.parameters[0], range_type.parameters[1]
        if range_type.kind in _DYNAMIC:
            self._assign(types.DYN, range_type)
            return types.DYN, types.DYN
        self._report(
            expr.iter_range.id,
            f"expression of type '{format_cel_type(range_type)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return types.ERROR, types.ERROR

"""Macros of the language and of its extensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.ast import Builder, Expr, Ident, Macro, MacroError, Select

#: The accumulator name of older releases, which iteration variables still must not have.
_OLD_ACCUMULATOR: Final = "__result__"
_UNUSED: Final = "#unused"

NOT_STRICTLY_FALSE: Final = "@not_strictly_false"
MAP_INSERT: Final = "cel.@mapInsert"

Fold = Callable[[Builder, Expr, str, str, Sequence[Expr]], Expr]


def _has(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    argument = args[0]
    if not isinstance(argument, Select) or argument.test_only:
        raise MacroError("invalid argument to has() macro", argument)
    return builder.select(argument.operand, argument.field, test_only=True)


def _variable(argument: Expr, message: str) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(message, argument)
    return argument.name


def _check_not_accumulator(name: str, argument: Expr) -> str:
    if name in (Builder.accumulator, _OLD_ACCUMULATOR):
        raise MacroError("iteration variable overwrites accumulator variable", argument)
    return name


def _one_variable(fold: Fold, message: str) -> Callable[[Builder, Expr | None, Sequence[Expr]], Expr]:
    """Return a macro with one variable: C{list.all(x, ...)}."""

    def expand(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
        assert target is not None
        return fold(builder, target, _check_not_accumulator(_variable(args[0], message), args[0]), "", args[1:])

    return expand


def _two_variables(fold: Fold) -> Callable[[Builder, Expr | None, Sequence[Expr]], Expr]:
    """Return a macro with two variables: C{map.all(key, value, ...)}."""

    def expand(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
        assert target is not None
        first = _variable(args[0], "argument must be a simple name")
        second = _variable(args[1], "argument must be a simple name")
        if first == second:
            raise MacroError(f"duplicate variable name: {first}", args[1])
        return fold(
            builder, target, _check_not_accumulator(first, args[0]), _check_not_accumulator(second, args[1]), args[2:]
        )

    return expand


def _all(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return builder.fold(
        iter_range,
        first,
        init=builder.literal(True),
        condition=builder.call(NOT_STRICTLY_FALSE, builder.result()),
        step=builder.call("_&&_", builder.result(), args[0]),
        result=builder.result(),
        variable2=second,
    )


def _exists(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return builder.fold(
        iter_range,
        first,
        init=builder.literal(False),
        condition=builder.call(NOT_STRICTLY_FALSE, builder.call("!_", builder.result())),
        step=builder.call("_||_", builder.result(), args[0]),
        result=builder.result(),
        variable2=second,
    )


def _exists_one(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return builder.fold(
        iter_range,
        first,
        init=builder.literal(0),
        condition=builder.literal(True),
        step=builder.call(
            "_?_:_", args[0], builder.call("_+_", builder.result(), builder.literal(1)), builder.result()
        ),
        result=builder.call("_==_", builder.result(), builder.literal(1)),
        variable2=second,
    )


def _filtered(builder: Builder, step: Expr, predicate: Expr | None) -> Expr:
    """Return a step, or a conditional step if there is a condition."""
    return step if predicate is None else builder.call("_?_:_", predicate, step, builder.result())


def _to_list(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    *predicate, element = args
    step = builder.call("_+_", builder.result(), builder.list_of(element))
    return builder.fold(
        iter_range,
        first,
        init=builder.list_of(),
        condition=builder.literal(True),
        step=_filtered(builder, step, predicate[0] if predicate else None),
        result=builder.result(),
        variable2=second,
    )


def _to_map(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr], keyed: bool) -> Expr:
    *predicate, value = args
    inserted = (builder.ident(first), value) if keyed else (value,)
    step = builder.call(MAP_INSERT, builder.result(), *inserted)
    return builder.fold(
        iter_range,
        first,
        init=builder.map_of(),
        condition=builder.literal(True),
        step=_filtered(builder, step, predicate[0] if predicate else None),
        result=builder.result(),
        variable2=second,
    )


def _transform_map(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return _to_map(builder, iter_range, first, second, args, keyed=True)


def _transform_map_entry(builder: Builder, iter_range: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return _to_map(builder, iter_range, first, second, args, keyed=False)


def _filter(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    assert target is not None
    name = _check_not_accumulator(_variable(args[0], "argument is not an identifier"), args[0])
    return _to_list(builder, target, name, "", (args[1], args[0]))


_NAME: Final = "argument must be a simple name"
_IDENTIFIER: Final = "argument is not an identifier"

STANDARD_MACROS: Final = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _one_variable(_all, _NAME)),
    Macro("exists", 2, True, _one_variable(_exists, _NAME)),
    Macro("exists_one", 2, True, _one_variable(_exists_one, _NAME)),
    Macro("existsOne", 2, True, _one_variable(_exists_one, _NAME)),
    Macro("map", 2, True, _one_variable(_to_list, _IDENTIFIER)),
    Macro("map", 3, True, _one_variable(_to_list, _IDENTIFIER)),
    Macro("filter", 2, True, _filter),
)

TWO_VARIABLE_MACROS: Final = (
    Macro("all", 3, True, _two_variables(_all)),
    Macro("exists", 3, True, _two_variables(_exists)),
    Macro("exists_one", 3, True, _two_variables(_exists_one)),
    Macro("existsOne", 3, True, _two_variables(_exists_one)),
    Macro("transformList", 3, True, _two_variables(_to_list)),
    Macro("transformList", 4, True, _two_variables(_to_list)),
    Macro("transformMap", 3, True, _two_variables(_transform_map)),
    Macro("transformMap", 4, True, _two_variables(_transform_map)),
    Macro("transformMapEntry", 3, True, _two_variables(_transform_map_entry)),
    Macro("transformMapEntry", 4, True, _two_variables(_transform_map_entry)),
)


def bind(builder: Builder, name: str, value: Expr, result: Expr) -> Expr:
    """
    Return an expression with a bound variable, whose value is computed at most once.

    @param builder: Makes the nodes.
    @param name: The name of the variable.
    @param value: The expression of its value.
    @param result: The expression that uses the variable.
    """
    return builder.fold(
        builder.list_of(),
        _UNUSED,
        init=value,
        condition=builder.literal(False),
        step=builder.ident(name),
        result=result,
        accumulator=name,
    )


def _bind(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return bind(builder, name, args[1], args[2])


BINDING_MACROS: Final = (Macro("bind", 3, True, _bind),)


def _optional(builder: Builder, target: Expr | None, args: Sequence[Expr], wrap_result: bool, message: str) -> Expr:
    assert target is not None
    name = _variable(args[0], message)
    mapped = bind(builder, name, builder.member("value", builder.copy(target)), args[1])
    return builder.call(
        "_?_:_",
        builder.member("hasValue", target),
        builder.call("optional.of", mapped) if wrap_result else mapped,
        builder.call("optional.none"),
    )


def _opt_map(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    return _optional(builder, target, args, True, "optMap() variable name must be a simple identifier")


def _opt_flat_map(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    return _optional(builder, target, args, False, "optFlatMap() variable name must be a simple identifier")


OPTIONAL_MACROS: Final = (
    Macro("optMap", 2, True, _opt_map),
    Macro("optFlatMap", 2, True, _opt_flat_map),
)

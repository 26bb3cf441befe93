"""The macros of the language and of the extensions that change how it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.ast import Builder, Expr, Ident, Macro, MacroError, Select

#: The name that the accumulator had once; still no iteration variable may have it.
_OLD_ACCUMULATOR: Final = "__result__"
_UNUSED: Final = "#unused"

NOT_STRICTLY_FALSE: Final = "@not_strictly_false"
MAP_INSERT: Final = "cel.@mapInsert"

Fold = Callable[[Builder, Expr, str, str, Sequence[Expr]], Expr]


def _has(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    argument = args[0]
    if not isinstance(argument, Select) or argument.test_only:
        raise MacroError("invalid argument to has() macro", argument)
    return build.select(argument.operand, argument.field, test_only=True)


def _variable(argument: Expr, problem: str) -> str:
    if not isinstance(argument, Ident):
        raise MacroError(problem, argument)
    return argument.name


def _free(name: str, argument: Expr) -> str:
    if name in (Builder.accumulator, _OLD_ACCUMULATOR):
        raise MacroError("iteration variable overwrites accumulator variable", argument)
    return name


def _one(fold: Fold, problem: str) -> Callable[[Builder, Expr | None, Sequence[Expr]], Expr]:
    """Return a macro with one variable: C{list.all(x, ...)}."""

    def expand(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
        assert target is not None
        return fold(build, target, _free(_variable(args[0], problem), args[0]), "", args[1:])

    return expand


def _two(fold: Fold) -> Callable[[Builder, Expr | None, Sequence[Expr]], Expr]:
    """Return a macro with two variables: C{map.all(key, value, ...)}."""

    def expand(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
        assert target is not None
        first = _variable(args[0], "argument must be a simple name")
        second = _variable(args[1], "argument must be a simple name")
        if first == second:
            raise MacroError(f"duplicate variable name: {first}", args[1])
        return fold(build, target, _free(first, args[0]), _free(second, args[1]), args[2:])

    return expand


def _all(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return build.fold(
        over,
        first,
        init=build.literal(True),
        condition=build.call(NOT_STRICTLY_FALSE, build.result()),
        step=build.call("_&&_", build.result(), args[0]),
        result=build.result(),
        variable2=second,
    )


def _exists(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return build.fold(
        over,
        first,
        init=build.literal(False),
        condition=build.call(NOT_STRICTLY_FALSE, build.call("!_", build.result())),
        step=build.call("_||_", build.result(), args[0]),
        result=build.result(),
        variable2=second,
    )


def _exists_one(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return build.fold(
        over,
        first,
        init=build.literal(0),
        condition=build.literal(True),
        step=build.call("_?_:_", args[0], build.call("_+_", build.result(), build.literal(1)), build.result()),
        result=build.call("_==_", build.result(), build.literal(1)),
        variable2=second,
    )


def _filtered(build: Builder, step: Expr, where: Expr | None) -> Expr:
    """Return a step, or a conditional step if there is a condition."""
    return step if where is None else build.call("_?_:_", where, step, build.result())


def _to_list(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    *where, element = args
    step = build.call("_+_", build.result(), build.list_of(element))
    return build.fold(
        over,
        first,
        init=build.list_of(),
        condition=build.literal(True),
        step=_filtered(build, step, where[0] if where else None),
        result=build.result(),
        variable2=second,
    )


def _to_map(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr], keyed: bool) -> Expr:
    *where, value = args
    inserted = (build.ident(first), value) if keyed else (value,)
    step = build.call(MAP_INSERT, build.result(), *inserted)
    return build.fold(
        over,
        first,
        init=build.map_of(),
        condition=build.literal(True),
        step=_filtered(build, step, where[0] if where else None),
        result=build.result(),
        variable2=second,
    )


def _transform_map(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return _to_map(build, over, first, second, args, keyed=True)


def _transform_map_entry(build: Builder, over: Expr, first: str, second: str, args: Sequence[Expr]) -> Expr:
    return _to_map(build, over, first, second, args, keyed=False)


def _filter(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    assert target is not None
    name = _free(_variable(args[0], "argument is not an identifier"), args[0])
    return _to_list(build, target, name, "", (args[1], args[0]))


_NAME: Final = "argument must be a simple name"
_IDENTIFIER: Final = "argument is not an identifier"

STANDARD_MACROS: Final = (
    Macro("has", 1, False, _has),
    Macro("all", 2, True, _one(_all, _NAME)),
    Macro("exists", 2, True, _one(_exists, _NAME)),
    Macro("exists_one", 2, True, _one(_exists_one, _NAME)),
    Macro("existsOne", 2, True, _one(_exists_one, _NAME)),
    Macro("map", 2, True, _one(_to_list, _IDENTIFIER)),
    Macro("map", 3, True, _one(_to_list, _IDENTIFIER)),
    Macro("filter", 2, True, _filter),
)

TWO_VARIABLE_MACROS: Final = (
    Macro("all", 3, True, _two(_all)),
    Macro("exists", 3, True, _two(_exists)),
    Macro("exists_one", 3, True, _two(_exists_one)),
    Macro("existsOne", 3, True, _two(_exists_one)),
    Macro("transformList", 3, True, _two(_to_list)),
    Macro("transformList", 4, True, _two(_to_list)),
    Macro("transformMap", 3, True, _two(_transform_map)),
    Macro("transformMap", 4, True, _two(_transform_map)),
    Macro("transformMapEntry", 3, True, _two(_transform_map_entry)),
    Macro("transformMapEntry", 4, True, _two(_transform_map_entry)),
)


def bind(build: Builder, name: str, value: Expr, result: Expr) -> Expr:
    """Return an expression with a name bound to the value of another, which is computed once, at its first use."""
    return build.fold(
        build.list_of(),
        _UNUSED,
        init=value,
        condition=build.literal(False),
        step=build.ident(name),
        result=result,
        accumulator=name,
    )


def _bind(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return bind(build, name, args[1], args[2])


BINDING_MACROS: Final = (Macro("bind", 3, True, _bind),)


def _optional(build: Builder, target: Expr | None, args: Sequence[Expr], wrapped: bool, problem: str) -> Expr:
    assert target is not None
    name = _variable(args[0], problem)
    mapped = bind(build, name, build.member("value", build.copy(target)), args[1])
    return build.call(
        "_?_:_",
        build.member("hasValue", target),
        build.call("optional.of", mapped) if wrapped else mapped,
        build.call("optional.none"),
    )


def _opt_map(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    return _optional(build, target, args, True, "optMap() variable name must be a simple identifier")


def _opt_flat_map(build: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr:
    return _optional(build, target, args, False, "optFlatMap() variable name must be a simple identifier")


OPTIONAL_MACROS: Final = (
    Macro("optMap", 2, True, _opt_map),
    Macro("optFlatMap", 2, True, _opt_flat_map),
)

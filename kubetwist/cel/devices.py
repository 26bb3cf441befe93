"""
Validation of expressions that select devices, in DeviceClasses and ResourceClaims.

See kubernetes/dynamic-resource-allocation, C{cel/compile.go}. Schedulers evaluate the expressions; the API server only
compiles them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from kubetwist.cel.errors import CompileErrors, ProgramError
from kubetwist.cel.estimates import Estimate

if TYPE_CHECKING:
    from kubetwist.cel.environment import Environment
    from kubetwist.cel.types import Type

#: The cost limit of one expression.
MAX_COST: Final = 1_000_000

# Maximum sizes in the variable "device"; attributes and capacity contain maps of maps.
_MAX_DRIVER_LENGTH: Final = 63
_MAX_KEY_LENGTHS: Final = {"attributes": (63, 32), "capacity": (63, 32)}
_MAX_ENTRIES: Final = 32
_MAX_VALUE_LENGTH: Final = {"attributes": 64, "capacity": 64}


class SelectorError(Exception):
    """An expression is invalid; C{str} of the exception is the message for the client."""


class SelectorCostError(SelectorError):
    """The estimated cost of an expression exceeds the limit."""


class SelectorProgramError(SelectorError):
    """The evaluation of a constant subexpression fails."""


def check_selector(text: str) -> None:
    """
    Validate an expression that selects devices.

    @raise SelectorError: The expression is invalid.
    """
    try:
        program = _environment().compile(text)
    except ProgramError as error:
        _check_type(error.output_type)
        raise SelectorProgramError(f"program instantiation failed: {error}") from None
    except CompileErrors as error:
        raise SelectorError(f"compilation failed: {error}") from None
    _check_type(program.output_type)
    if program.estimated_cost(_size_of).max > MAX_COST:
        raise SelectorCostError("too complex, exceeds cost limit")


def _check_type(output_type: Type) -> None:
    from kubetwist.cel.types import BOOL, DYN

    if output_type not in (BOOL, DYN):
        raise SelectorError(f"must evaluate to bool or the unknown type, not {output_type}")


def _size_of(path: tuple[str, ...], type_: Type) -> Estimate | None:
    """Return the size of the value at a path below C{device}."""
    if not path or path[0] != "device":
        return None
    field, *rest = path[1:] or ("",)
    if field == "driver" and not rest:
        return Estimate(0, _MAX_DRIVER_LENGTH)
    if field == "allowMultipleAllocations" and not rest:
        return Estimate(0, 1)
    keys = _MAX_KEY_LENGTHS.get(field)
    if keys is None or len(rest) > len(keys):
        return None
    if rest and rest[-1] == "@keys":
        return Estimate(0, keys[len(rest) - 1])
    return Estimate(0, _MAX_ENTRIES if len(rest) < len(keys) else _MAX_VALUE_LENGTH[field])


@cache
def _environment() -> Environment:
    from kubetwist.cel.environment import Environment
    from kubetwist.cel.library.costs import KubernetesCosts
    from kubetwist.cel.library.environments import kubernetes_libraries
    from kubetwist.cel.library.quantities import QUANTITY_TYPE
    from kubetwist.cel.library.stringformat import check_formats
    from kubetwist.cel.standard import BINDINGS
    from kubetwist.cel.types import BOOL, DYN, STRING, ObjectType, map_of

    device = ObjectType(
        "kubernetes.DRADevice",
        {
            "driver": STRING,
            "allowMultipleAllocations": BOOL,
            "attributes": map_of(STRING, map_of(STRING, DYN)),
            "capacity": map_of(STRING, map_of(STRING, QUANTITY_TYPE)),
        },
    )
    return Environment(
        variables={"device": device},
        libraries=(*kubernetes_libraries(), BINDINGS),
        costs=KubernetesCosts(),
        validators=(check_formats,),
    )

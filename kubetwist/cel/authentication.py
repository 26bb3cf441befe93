"""
Expressions of C{AuthenticationConfiguration} on the claims of a token and on the resulting user.

See kubernetes/apiserver, C{pkg/authentication/cel}, and C{plugin/pkg/authenticator/token/oidc}.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kubetwist.api.errors import FieldError, internal, invalid
from kubetwist.api.resource import UserInfo

from ..api.jsontypes import JSONValue

if TYPE_CHECKING:
    from kubetwist.cel.environment import Environment, Program

_CLAIMS: Final = "claims"
_USER: Final = "user"

#: Values of the variables C{claims} and C{user}, made by L{claims_value} and L{user_value}.
Claims = Any
UserValue = Any


class CauseError(ValueError):
    """An expression of a configuration is invalid."""

    def __init__(self, cause: FieldError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ExpressionError(Exception):
    """The evaluation of an expression failed; the message equals kube-apiserver's."""


@cache
def _environment(variable: str) -> Environment:
    from kubetwist.cel.library.environments import kubernetes_environment
    from kubetwist.cel.types import DYN, STRING, ObjectType, list_of, map_of

    if variable == _CLAIMS:
        return kubernetes_environment().extend(variables={_CLAIMS: map_of(STRING, DYN)})
    texts = list_of(STRING)
    fields = {"username": STRING, "uid": STRING, "groups": texts, "extra": map_of(STRING, texts)}
    return kubernetes_environment().extend(variables={_USER: ObjectType("kubernetes.UserInfo", fields)})


def _evaluate(expression: str, program: Program, variable: str, value: JSONValue) -> JSONValue:
    from kubetwist.cel.environment import PER_CALL_LIMIT
    from kubetwist.cel.errors import EvaluationError

    try:
        return program.evaluate({variable: value}, cost_limit=PER_CALL_LIMIT)[0]
    except EvaluationError as error:
        raise ExpressionError(f"expression '{expression}' resulted in error: {error.message}") from None


@frozen
class ClaimsExpression:
    """
    An expression on C{claims}.

    @ivar uses_email: Whether it selects C{claims.email}, which must not be trusted unless C{email_verified} is checked.
    @ivar uses_email_verified: Whether it selects C{claims.email_verified}.
    """

    expression: str
    uses_email: bool
    uses_email_verified: bool
    _program: Program

    def evaluate(self, claims: Claims) -> JSONValue:
        """
        Evaluate the expression for the claims of a token.

        @raise ExpressionError: The evaluation failed.
        """
        return _evaluate(self.expression, self._program, _CLAIMS, claims)


@frozen
class UserExpression:
    """A condition on C{user}."""

    expression: str
    _program: Program

    def evaluate(self, user: UserValue) -> JSONValue:
        """
        Evaluate the expression for a user.

        @raise ExpressionError: The evaluation failed.
        """
        return _evaluate(self.expression, self._program, _USER, user)


def compile_claims_expression(expression: str, path: str, boolean: bool = False) -> ClaimsExpression:
    """
    Compile an expression on the claims of tokens.

    @param path: The path of the field.
    @param boolean: Whether the type must be bool, as for validation rules.
    @raise CauseError: The expression is invalid.
    """
    from kubetwist.cel.inspection import selects

    program = _compile(_CLAIMS, expression, path, boolean)
    root = program.checked.root
    return ClaimsExpression(
        expression, selects(root, _CLAIMS, "email"), selects(root, _CLAIMS, "email_verified"), program
    )


def compile_user_expression(expression: str, path: str) -> UserExpression:
    """
    Compile a validation rule for users.

    @param path: The path of the field.
    @raise CauseError: The expression is invalid.
    """
    return UserExpression(expression, _compile(_USER, expression, path, boolean=True))


def _compile(variable: str, expression: str, path: str, boolean: bool) -> Program:
    from kubetwist.cel.errors import CompileErrors, ProgramError
    from kubetwist.cel.types import BOOL

    try:
        program = _environment(variable).compile(expression)
    except ProgramError as error:
        if not boolean or error.output_type == BOOL:
            raise CauseError(internal(path, f"program instantiation failed: {error}")) from None
    except CompileErrors as errors:
        raise CauseError(invalid(path, expression, f"compilation failed: {errors}")) from None
    else:
        if not boolean or program.output_type == BOOL:
            return program
    raise CauseError(invalid(path, expression, "must evaluate to bool"))


def claims_value(claims: Mapping[str, JSONValue]) -> Claims:
    """Convert the claims of a token to CEL values: all numbers are doubles, and keys are found by escaped names."""
    return _to_cel_value(claims, top=True)


def user_value(user: UserInfo) -> UserValue:
    """Convert a user to CEL values."""
    extra = {key: list(values) for key, values in user.extra.items()}
    value = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return _to_cel_value(value, top=True)


def _to_cel_value(value: JSONValue, top: bool = False) -> JSONValue:
    if isinstance(value, Mapping):
        return _escaped_map_type()({key: _to_cel_value(item) for key, item in value.items()}, top)
    if isinstance(value, (list, tuple)):
        return [_to_cel_value(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


@cache
def _escaped_map_type() -> Callable[[Mapping[str, JSONValue], bool], JSONValue]:
    from kubetwist.cel.names import unescape
    from kubetwist.cel.values import MapValue

    class EscapedMap(MapValue):
        """A map whose keys are looked up by their names in expressions: C{a__dot__b} finds C{a.b}."""

        __slots__ = ("_fields", "_strict")

        def __init__(self, fields: Mapping[str, JSONValue], strict: bool) -> None:
            self._fields = fields
            self._strict = strict

        def __getitem__(self, name: JSONValue) -> JSONValue:
            if isinstance(name, str) and "__" in name:
                plain = unescape(name)
                if plain is None and self._strict:
                    raise KeyError(name)
                name = name if plain is None else plain
            return self._fields[name]

        def __iter__(self) -> Iterator[JSONValue]:
            return iter(self._fields)

        def __len__(self) -> int:
            return len(self._fields)

        def items(self) -> ItemsView[str, JSONValue]:
            return self._fields.items()

    return EscapedMap


def string_value(value: JSONValue) -> str | None:
    """Return a string, or L{None} for any other value."""
    return value if isinstance(value, str) else None


def string_list(value: JSONValue) -> list[str]:
    """
    Return a string or a list of strings as a list, without null and empty strings.

    @raise ValueError: The value has another type.
    """
    from kubetwist.cel.values import LISTS

    if value is None:
        return []
    values = [value] if isinstance(value, str) else list(value) if isinstance(value, LISTS) else [None]
    if not all(isinstance(item, str) for item in values):
        raise ValueError("expression must return a string or a list of strings")
    return [item for item in values if item]

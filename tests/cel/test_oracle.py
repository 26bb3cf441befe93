"""Comparison with another implementation, the CEL project's C++ one, if it is installed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hypothesis import assume, given, strategies
from hypothesis.strategies import SearchStrategy

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from kubetwist.cel import types
from kubetwist.cel.environment import Environment, Program
from kubetwist.cel.errors import CompileErrors, EvaluationError
from kubetwist.cel.values import UInt

try:
    from cel_expr_python import cel
except ImportError:  # There are not wheels for every platform.
    cel = None

_ENVIRONMENT = Environment(
    {
        "b": types.BOOL,
        "i": types.INT,
        "j": types.INT,
        "s": types.STRING,
        "d": types.DOUBLE,
        "l": types.list_of(types.INT),
        "m": types.map_of(types.STRING, types.INT),
        "x": types.DYN,
    }
)

Expressions = dict[str, SearchStrategy[str]]


def _binary(operands: SearchStrategy[str], operators: tuple[str, ...]) -> SearchStrategy[str]:
    return strategies.builds("({} {} {})".format, operands, strategies.sampled_from(operators), operands)


def _leaves() -> Expressions:
    """Return strategies of expressions without subexpressions, by the type of their value."""
    words = {
        "bool": "true|false|b|has(m.a)|x.k|x == 1|'a' in m|i in l|x.y.z == 1",
        "int": "0|1|-3|9223372036854775807|i|j|m.a|m['z']|l[0]|x.k|x",
        "double": "0.0|1.5|-2.25|1e300|d",
        "text": "''|'a'|'é\\n'|'42'|s|x.t|string(i)|string(b)",
        "list": "[]|[1, 2, 3]|l|x.l",
    }
    return {name: strategies.sampled_from(choices.split("|")) for name, choices in words.items()}


def _composed(part: Expressions) -> Expressions:
    """Return strategies of expressions composed of these."""
    bools, ints, doubles, texts, lists = (part[name] for name in ("bool", "int", "double", "text", "list"))
    builds, sampled = strategies.builds, strategies.sampled_from
    return {
        "bool": strategies.one_of(
            bools,
            _binary(bools, ("&&", "||", "==", "!=")),
            _binary(ints, ("<", "<=", ">", ">=", "==", "!=")),
            _binary(texts, ("<", "==", "!=")),
            _binary(doubles, ("<", "==")),
            builds("!({})".format, bools),
            builds("({} ? {} : {})".format, bools, bools, bools),
            builds("{}.{}(v, v > {} || {})".format, lists, sampled(("all", "exists")), ints, bools),
            builds("{}.exists_one(v, v == {})".format, lists, ints),
            builds("{}.{}({})".format, texts, sampled(("contains", "startsWith")), texts),
            builds("({} in {})".format, ints, sampled(("[1, 2, 3]", "l", "x.l"))),
        ),
        "int": strategies.one_of(
            ints,
            _binary(ints, ("+", "-", "*", "/", "%")),
            builds("size({})".format, strategies.one_of(lists, texts)),
            builds("{}[{}]".format, lists, ints),
            builds("({} ? {} : {})".format, bools, ints, ints),
            builds("int({})".format, texts),
        ),
        "double": strategies.one_of(doubles, _binary(doubles, ("+", "-", "*", "/")), builds("double({})".format, ints)),
        "text": strategies.one_of(texts, _binary(texts, ("+",))),
        "list": strategies.one_of(
            lists,
            builds("[{}, {}]".format, ints, ints),
            _binary(lists, ("+",)),
            builds("{}.map(v, v + {})".format, lists, ints),
            builds("{}.filter(v, v > {})".format, lists, ints),
        ),
    }


_EXPRESSIONS = strategies.one_of(*_composed(_composed(_composed(_leaves()))).values())


@lru_cache
def _reference() -> Any:
    type_ = cel.Type
    return cel.NewEnv(
        variables={
            "b": type_.BOOL,
            "i": type_.INT,
            "j": type_.INT,
            "s": type_.STRING,
            "d": type_.DOUBLE,
            "l": type_.List(type_.INT),
            "m": type_.Map(type_.STRING, type_.INT),
            "x": type_.DYN,
        }
    )


_VALUES = strategies.fixed_dictionaries(
    {
        "b": strategies.booleans(),
        "i": strategies.integers(-(2**63), 2**63 - 1) | strategies.integers(-3, 3),
        "j": strategies.integers(-3, 3),
        "s": strategies.text("aé4", max_size=4),
        "d": strategies.floats(allow_nan=False, width=32),
        "l": strategies.lists(strategies.integers(-3, 3), max_size=4),
        "m": strategies.dictionaries(strategies.sampled_from("az"), strategies.integers(-3, 3)),
        "x": strategies.sampled_from(
            (1, "a", True, {"k": 1, "t": "u", "l": [1]}, {"k": True, "y": {"z": 1}}, [1, 2], 1.5)
        ),
    }
)

_ERROR = object()


def _plain(value: Any) -> Any:
    """Return a value with its types, which Python's C{==} does not compare."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return ("uint" if isinstance(value, UInt) else type(value).__name__, repr(value))


def _ours(program: Program, values: dict[str, Any]) -> Any:
    try:
        return _plain(program.evaluate(values)[0])
    except EvaluationError as error:
        # As in cel-go; cel-cpp returns that the comparison does not hold.
        assume("NaN values cannot be ordered" not in str(error))
        return _ERROR


def _theirs(expression: Any, values: dict[str, Any]) -> Any:
    try:
        found = expression.eval(data=values)
    except RuntimeError:
        return _ERROR
    return _ERROR if found.type() == cel.Type.ERROR else _plain(found.plain_value())


class OracleTests(SynchronousTestCase):
    """Random expressions in both implementations."""

    def setUp(self) -> None:
        """Skip the test if the other implementation is not installed."""
        if cel is None:
            raise SkipTest("cel-expr-python is not installed")

    @given(_EXPRESSIONS, _VALUES)
    def test_agreement(self, text: str, values: dict[str, Any]) -> None:
        """
        Both implementations return the same value of the same type, or both fail. Differences of cel-go are left out:
        C{has} on values without fields, C{in} with an empty list, comparisons with NaN.
        """
        try:
            program = _ENVIRONMENT.compile(text)
        except CompileErrors:
            return
        self.assertEqual(_ours(program, values), _theirs(_reference().compile(text), values), (text, values))

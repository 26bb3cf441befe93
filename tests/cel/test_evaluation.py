"""Tests for what compiled expressions evaluate to: operators, selection, macros, the standard library."""

from __future__ import annotations

import math
from typing import Any

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.errors import CelError, EvaluationError
from kubetwist.cel.frame import Activation, LazyFields
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.types import ObjectType
from kubetwist.cel.values import NONE, Duration, Optional, Timestamp, UInt, Value

from .support import VALUES, CelTestCase

SECOND = 1_000_000_000


class OperatorTests(CelTestCase):
    """Operators on values whose types are known, and on those whose types are not."""

    def test_integers(self) -> None:
        """Integers are divided toward zero, and their results keep their type."""
        self.assertValues(
            {
                "i / 2": 3,
                "-7 / 2": -3,
                "-7 % 3": -1,
                "7 % -3": 1,
                "7u / 2u": UInt(3),
                "7u - 2u": UInt(5),
                "dyn(7) * dyn(2)": 14,
                "-i": -7,
            }
        )

    def test_integers_overflow(self) -> None:
        """What does not fit 64 bits is an error."""
        self.assertFails(
            {
                "9223372036854775807 + i": "integer overflow",
                "-9223372036854775808 - i": "integer overflow",
                "9223372036854775807 * i": "integer overflow",
                "-(-9223372036854775808 + i - 7)": "integer overflow",
                "(i - 7 - 9223372036854775807 - 1) / -1": "integer overflow",
                "(i - 7 - 9223372036854775807 - 1) % -1": "integer overflow",
                "1u - 2u": "unsigned integer overflow",
                "i / 0": "division by zero",
                "i % 0": "modulus by zero",
                "1u / 0u": "division by zero",
                "dyn(9223372036854775807) + 1": "integer overflow",
            }
        )

    def test_doubles(self) -> None:
        """Doubles follow IEEE 754; what is no number equals nothing."""
        self.assertValues(
            {
                "d * 2.0": 5.0,
                "1.0 / 0.0": math.inf,
                "-1.0 / 0.0": -math.inf,
                "(0.0 / 0.0) == (0.0 / 0.0)": False,
                "(0.0 / 0.0) != 1.0": True,
                "-d": -2.5,
            }
        )
        self.assertFails({"0.0 / 0.0 < 1.0": "NaN values cannot be ordered"})

    def test_joining(self) -> None:
        """C{+} joins texts, bytes and lists."""
        self.assertValues(
            {
                "s + 'é'": "texté",
                "b'a' + b'b'": b"ab",
                "ints + [4]": [1, 2, 3, 4],
                "ints + []": [1, 2, 3],
                "dyn('a') + 'b'": "ab",
                "dyn([1]) + [2]": [1, 2],
            }
        )

    def test_equality(self) -> None:
        """Numbers are equal across types, containers by their elements; a truth value is no number."""
        self.assertValues(
            {
                "dyn(1) == 1.0": True,
                "dyn(1u) == 1": True,
                "dyn(true) == 1": False,
                "dyn([1, 2]) == [1.0, 2.0]": True,
                "dyn({'a': 1}) == {'a': 1u}": True,
                "dyn({'a': 1}) == {'b': 1}": False,
                "dyn([true]) == [1]": False,
                "any.a.n == null": True,
                "any == null": False,
                "dyn('1') == 1": False,
                "s != 'text'": False,
                "ints == [1, 2, 3]": True,
                "ints != [1, 2]": True,
                "type(1.0) == double && type(1) != uint": True,
                "dyn(9007199254740993) == 9007199254740992.0": True,
            }
        )

    def test_order(self) -> None:
        """Everything that has an order can be compared, numbers across types."""
        self.assertValues(
            {
                "i > 6.5": True,
                "i <= 7u": True,
                "1u < 2.0": True,
                "'a' < 'b'": True,
                "b'a' >= b'b'": False,
                "false < true": True,
                "duration('1s') < duration('1m')": True,
                "timestamp('2020-01-01T00:00:00Z') > timestamp('2019-01-01T00:00:00Z')": True,
                "dyn(1) < dyn(1.5)": True,
            }
        )
        self.assertFails({"dyn(1) < dyn('a')": "no such overload", "dyn([1]) < dyn([2])": "no such overload"})

    def test_logic(self) -> None:
        """The logical operators know their result in spite of an error on the other side, whichever that is."""
        self.assertValues(
            {
                "1 / 0 > 0 || true": True,
                "true || 1 / 0 > 0": True,
                "1 / 0 > 0 && false": False,
                "flag && any.nosuch == 1 && !flag": False,
                "dyn(1) || true": True,
                "flag ? 1 : 1 / 0": 1,
            }
        )
        self.assertFails(
            {
                "1 / 0 > 0 || false": "division by zero",
                "true && 1 % 0 > 0": "modulus by zero",
                "1 / 0 > 0 && 1 % 0 > 0": "division by zero",
                "dyn(1) && true": "no such overload",
                "dyn(1) ? 1 : 2": "no such overload",
            }
        )

    def test_wrong_types(self) -> None:
        """Dynamic operands without an operator for them are an error that names it or not, as in the reference."""
        self.assertFails(
            {
                "dyn(1) + dyn('a')": "no such overload",
                "dyn(true) + dyn(1)": "no such overload: _+_",
                "dyn([1]) - dyn(1)": "no such overload: _-_",
                "-dyn('a')": "no such overload: -_",
                "!dyn(1)": "no such overload",
                "size(dyn(1))": "no such overload: size",
                "dyn(1).startsWith('a')": "no such overload",
                "int(dyn(ints))": "no such overload: int(list)",
                "dyn('a').getHours()": "no such overload: getHours(string)",
            }
        )


class SelectionTests(CelTestCase):
    """Fields, keys and indices."""

    def test_paths(self) -> None:
        """What is there is found, through maps and lists."""
        self.assertValues(
            {
                "any.a.b": "text",
                "any['a']['b']": "text",
                "any.list[2].x": 1.5,
                "any.list[size(texts) - 1].x": 1.5,
                "any.list[0.0]": 1,
                "any['dash-ed']": True,
                "counts.one + counts['two']": 3,
                "{1: 'int', 2: 'two'}[dyn(1u)]": "int",
                "{'a': 1}.a": 1,
                "(flag ? any.a : any).b": "text",
            }
        )

    def test_missing(self) -> None:
        """What is not there is an error that tells the key or index."""
        self.assertFails(
            {
                "any.nosuch": "no such key: nosuch",
                "any.a.b.c": "no such key: c",
                "any.a.n.c": "no such key: c",
                "counts['three']": "no such key: three",
                "any[1]": "no such key: 1",
                "any[true]": "no such key: true",
                "ints[3]": "index out of bounds: 3",
                "ints[i - 8]": "index out of bounds: -1",
                "any.list['a']": "unsupported index type 'string' in list",
                "any.list[0.5]": "unsupported index value 0.5 in list",
                "i == 7 ? any.nosuch.x : 1": "no such key: nosuch",
            }
        )

    def test_presence(self) -> None:
        """C{has} asks without failing, for the last step."""
        self.assertValues(
            {
                "has(any.a.b)": True,
                "has(any.a.n)": True,
                "has(any.nosuch)": False,
                "has(any.a.b.c)": False,
                "has(counts.one)": True,
                "has(any.?nosuch.x)": False,
                "'a' in any && !('z' in any)": True,
                "2 in any.list && !(5 in any.list)": True,
                "i in [1, 7]": True,
                "d in [2.5]": True,
                "dyn(1.0) in [1, 2]": True,
                "dyn(true) in [1]": False,
                "any.nosuch in [] || true": True,
            }
        )
        self.assertFails({"has(any.nosuch.x)": "no such key: nosuch"})

    def test_optionals(self) -> None:
        """Optional steps give nothing instead of failing, and so do the steps behind them."""
        self.assertValues({"any.?nosuch.b == optional.none()": True, "any.?a.b == optional.of('text')": True})
        self.assertIs(self.evaluate("any.?nosuch.b.c"), NONE)
        self.assertEqual(self.evaluate("any[?'a'].b").value, "text")
        self.assertEqual(self.evaluate("ints[?1]").value, 2)
        self.assertIs(self.evaluate("ints[?9]"), NONE)
        self.assertEqual(self.evaluate("[1, ?ints[?1], ?ints[?9]]"), [1, 2])
        self.assertEqual(self.evaluate("{'a': 1, ?'b': ints[?0], ?'c': ints[?9]}"), {"a": 1, "b": 1})
        self.assertEqual(self.evaluate("any.?a.optMap(x, x.b + '!').orValue('none')"), "text!")

    def test_keys_of_different_types(self) -> None:
        """Python takes True for 1; maps do not."""
        for key, found in ((1, "int"), (True, "bool")):
            environment = Environment({"m": types.DYN, "k": types.DYN})
            program = environment.compile("m[k]")
            self.assertEqual(program.evaluate({"m": {key: found}, "k": key})[0], found)
            other = True if key is not True else 1
            self.assertRaises(EvaluationError, program.evaluate, {"m": {key: found}, "k": other})
        both = "{dyn(1): 'int', dyn(true): 'bool', dyn('a'): 'text', dyn(0): 'zero'}"
        self.assertValues(
            {
                f"{both}[1]": "int",
                f"{both}[dyn(true)]": "bool",
                f"{both}[dyn(1.0)]": "int",
                f"{both}.size()": 4,
                f"dyn(false) in {both}": False,
                f"{both}.map(k, {both}[k]).size()": 4,
                f"{both} == {both}": True,
                "{dyn(true): 1, dyn(1): 1} == {dyn(1): 1, dyn(true): 1}": True,
                "{dyn(true): 1, ?dyn(1): optional.none()} == {dyn(true): 1}": True,
            }
        )


class MacroTests(CelTestCase):
    """Loops."""

    def test_quantifiers(self) -> None:
        """Quantifiers run over elements or keys and stop as soon as the result is known."""
        self.assertValues(
            {
                "ints.all(x, x > 0)": True,
                "ints.all(x, x > 1)": False,
                "ints.exists(x, x == 2)": True,
                "ints.exists(x, x > 3)": False,
                "ints.exists_one(x, x > 2)": True,
                "ints.existsOne(x, x > 1)": False,
                "counts.all(k, counts[k] > 0)": True,
                "[].all(x, false)": True,
                "[].exists(x, true)": False,
                "ints.all(n, v, n + 1 == v)": True,
                "counts.exists(k, v, k == 'two' && v == 2)": True,
                "counts.existsOne(k, v, v == 1)": True,
            }
        )

    def test_quantifiers_absorb_errors(self) -> None:
        """An element that decides makes up for errors; without one, the first error is the result."""
        self.assertValues(
            {
                "[0, 1].exists(x, 1 / x > 0)": True,
                "[0, 2].all(x, 4 / x > 3)": False,
            }
        )
        self.assertFails(
            {
                "[0, 1].all(x, 1 / x > 0)": "division by zero",
                "any.list.exists(x, x.y == 1)": "no such key: y",
                "[0, 1].exists_one(x, 1 / x > 0)": "division by zero",
                "dyn([1]).all(x, x)": "no such overload",
            }
        )

    def test_collecting(self) -> None:
        """Lists and maps are made of elements, of all or of some."""
        self.assertValues(
            {
                "ints.map(x, x * x)": [1, 4, 9],
                "ints.map(x, x > 1, x * x)": [4, 9],
                "ints.filter(x, x != 2)": [1, 3],
                "counts.map(k, counts[k])": [1, 2],
                "ints.map(x, 'same')": ["same", "same", "same"],
                "ints.map(x, ints.filter(y, y < x))": [[], [1], [1, 2]],
                "ints.transformList(n, v, n * v)": [0, 2, 6],
                "ints.transformList(n, v, n > 0, v)": [2, 3],
                "counts.transformMap(k, v, v * 10)": {"one": 10, "two": 20},
                "counts.transformMap(k, v, v > 1, k + '!')": {"two": "two!"},
                "counts.transformMapEntry(k, v, {v: k})": {1: "one", 2: "two"},
            }
        )
        self.assertFails(
            {
                "counts.transformMapEntry(k, v, {'same': v})": "insert failed: key same already exists",
                "ints.map(x, 1 / (x - 2))": "division by zero",
                "ints.filter(x, dyn(x))": "no such overload",
                "dyn(1).map(x, x)": "got 'types.Int', expected iterable type",
                "dyn('a').all(k, v, true)": "unsupported comprehension range type: types.String",
            }
        )

    def test_binding(self) -> None:
        """A bound name is computed once, and only if it is used."""
        self.assertValues(
            {
                "cel.bind(x, i * 2, x + x)": 28,
                "cel.bind(x, 1 / 0, true)": True,
                "cel.bind(x, ints.map(y, y + 1), x[0] + x[1])": 5,
                "cel.bind(x, 1, cel.bind(x, x + 1, x) + x)": 3,
                "ints.map(x, cel.bind(y, x * 10, y + x))": [11, 22, 33],
            }
        )
        self.assertFails({"cel.bind(x, 1 / 0, x == 1 || x == 2)": "division by zero"})


class StandardLibraryTests(CelTestCase):
    """Functions that are always there."""

    def test_sizes(self) -> None:
        """Texts have code points, bytes have bytes."""
        self.assertValues(
            {"size('é😀')": 2, "b'é'.size()": 2, "ints.size()": 3, "size(counts)": 2, "size(any.list)": 3}
        )

    def test_conversions(self) -> None:
        """Values are converted as Go writes and reads them."""
        self.assertValues(
            {
                "int('-42')": -42,
                "int(2.9)": 2,
                "int(-2.9)": -2,
                "int(duration('1s'))": SECOND,
                "int(timestamp('1970-01-01T00:00:09.9Z'))": 9,
                "uint('42')": UInt(42),
                "uint(i)": UInt(7),
                "double('1e3')": 1000.0,
                "double('-0x1.8P+1')": -3.0,
                "double(i)": 7.0,
                "bool('True')": True,
                "bytes('é')": b"\xc3\xa9",
                "string(b'\\xc3\\xa9')": "é",
                "string(1.0)": "1",
                "string(1e21)": "1e+21",
                "string(123456789.5)": "1.234567895e+08",
                "string(0.00001)": "1e-05",
                "string(1.5)": "1.5",
                "string(true)": "true",
                "string(5u)": "5",
                "string(duration('90.5s'))": "90.5s",
                "string(timestamp('2020-02-29T00:00:00.120Z'))": "2020-02-29T00:00:00.12Z",
                "string(timestamp('2020-02-29T00:00:00+02:00'))": "2020-02-29T00:00:00+02:00",
                "string(timestamp(0))": "1970-01-01T00:00:00Z",
            }
        )
        self.assertFails(
            {
                "int(s)": "type conversion error from 'string' to 'int'",
                "int(d * 1e300)": "integer overflow",
                "uint(-i)": "unsigned integer overflow",
                "bool(s)": "type conversion error from 'string' to 'bool'",
                "string(b'\\xff' + b'')": "invalid UTF-8 in bytes, cannot convert to string",
                "duration(s)": "type conversion error from 'string' to 'google.protobuf.Duration'",
                "timestamp(s)": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
                "timestamp(i * 1000000000000)": "timestamp overflow",
            }
        )

    def test_texts(self) -> None:
        """Texts are searched as they are, or with expressions of RE2."""
        self.assertValues(
            {
                "s.contains('ex')": True,
                "s.startsWith('te') && s.endsWith('xt')": True,
                "s.matches('^t.*t$')": True,
                "matches(s, 'ex')": True,
                "s.matches(s + '$')": True,
            }
        )
        self.assertFails({"s.matches(s + '(')": "error parsing regexp: missing closing ): `text(`"})

    def test_moments(self) -> None:
        """Moments have parts, in any time zone."""
        when = "timestamp('2024-03-01T23:30:15.250Z')"
        self.assertValues(
            {
                f"{when}.getFullYear()": 2024,
                f"{when}.getMonth()": 2,
                f"{when}.getDate()": 1,
                f"{when}.getDayOfMonth()": 0,
                f"{when}.getDayOfYear()": 60,
                f"{when}.getDayOfWeek()": 5,
                f"{when}.getHours()": 23,
                f"{when}.getMinutes()": 30,
                f"{when}.getSeconds()": 15,
                f"{when}.getMilliseconds()": 250,
                f"{when}.getHours('+01:00')": 0,
                f"{when}.getDate('01:00')": 2,
                f"{when}.getDate('+25:00')": 3,
                f"{when}.getMilliseconds('Local')": 250,
                f"{when}.getMinutes('-00:45')": 45,
                f"{when}.getHours('America/New_York')": 18,
                f"{when} + duration('30m') > {when}": True,
                f"{when} - timestamp('2024-03-01T23:30:15Z')": Duration(SECOND // 4),
                "timestamp('1970-01-01T00:00:01Z')": Timestamp(SECOND),
            }
        )
        self.assertFails(
            {
                f"{when}.getHours('Mars/Base')": "unknown time zone Mars/Base",
                f"{when}.getHours('../etc')": "time: invalid location name",
                f"{when}.getHours('a:b')": 'strconv.Atoi: parsing "a": invalid syntax',
                f"{when}.getHours('1:9223372036854775808')": (
                    'strconv.Atoi: parsing "9223372036854775808": value out of range'
                ),
                f"{when}.getHours('9223372036854775807:0')": "timestamp overflow",
                "timestamp('9999-12-31T23:59:59Z') + duration('1s')": "timestamp overflow",
            }
        )

    def test_durations(self) -> None:
        """Durations have parts, toward zero, and a range."""
        self.assertValues(
            {
                "duration('1h30m').getHours()": 1,
                "duration('1h30m').getMinutes()": 90,
                "duration('-90s').getMinutes()": -1,
                "duration('1.5s').getMilliseconds()": 1500,
                "duration('1h') - duration('30m')": Duration(1800 * SECOND),
                "duration('1h') + timestamp(0) == timestamp(3600)": True,
            }
        )
        self.assertFails({"duration('2500000h') + duration('2500000h')": "integer overflow"})


class FunctionTests(CelTestCase):
    """Functions of libraries."""

    def test_lazy_arguments(self) -> None:
        """A function may leave arguments unevaluated; they cost nothing then."""

        def otherwise(value: Value, alternative: Any) -> Value:
            return alternative() if value is None else value

        either = member("either", (types.DYN, types.DYN), types.DYN, otherwise, lazy=True)
        environment = Environment({"a": types.DYN}, (Library("test", (function("either", either),)),))
        program = environment.compile("a.either(1 / 0 + 2)")
        self.assertEqual(program.evaluate({"a": 5}), (5, 1))
        self.assertRaises(EvaluationError, program.evaluate, {"a": None})

    def test_dispatch(self) -> None:
        """Among overloads the types of the values choose, and the first element speaks for a list."""
        library = Library(
            "test",
            (
                function(
                    "kind",
                    overload("kind_texts", (types.list_of(types.STRING),), types.STRING, lambda _: "texts"),
                    overload("kind_ints", (types.list_of(types.INT),), types.STRING, lambda _: "ints"),
                    overload("kind_map", (types.map_of(types.STRING, types.DOUBLE),), types.STRING, lambda _: "map"),
                ),
            ),
        )
        program = Environment({"a": types.DYN}, (library,)).compile("kind(a)")
        for value, kind in ((["x"], "texts"), ([1, "x"], "ints"), ([], "texts"), ({"a": 1.5}, "map")):
            self.assertEqual(program.evaluate({"a": value})[0], kind)
        error = self.assertRaises(EvaluationError, program.evaluate, {"a": {"a": 1}})
        self.assertEqual(error.message, "no such overload: kind(map)")

    def test_values_of_wrong_types(self) -> None:
        """A variable that is not what its declaration says is an error, not a traceback."""
        program = Environment({"a": types.INT}).compile("a + 1 > 2")
        error = self.assertRaises(EvaluationError, program.evaluate, {"a": "text"})
        self.assertEqual(error.message, "no such overload")
        error = self.assertRaises(EvaluationError, program.evaluate, {})
        self.assertEqual(error.message, "no such attribute(s): a")

    def test_objects(self) -> None:
        """Messages are made by their type, or are maps."""
        point = ObjectType("Point", {"x": types.INT}, make=lambda fields: sorted(fields.items()))
        plain = ObjectType("Plain", {"x": types.INT})
        environment = Environment({"m": types.optional_of(types.INT)}, find_type={"Point": point, "Plain": plain}.get)
        self.assertEqual(environment.compile("Point{x: 1}").evaluate({})[0], [("x", 1)])
        self.assertEqual(environment.compile("Plain{x: 1}.x").evaluate({})[0], 1)
        self.assertEqual(environment.compile("Plain{?x: m}").evaluate({"m": NONE})[0], {})
        self.assertEqual(environment.compile("Plain{?x: m}").evaluate({"m": Optional(3)})[0], {"x": 3})


class LazyVariableTests(CelTestCase):
    """Variables that are computed when they are needed."""

    def test_only_what_is_read(self) -> None:
        """A lazy variable is computed once, and only if the expression comes to it."""
        calls: list[str] = []

        def compute() -> int:
            calls.append("computed")
            return 7

        program = self.compile("flag || i + i == 14")
        program.evaluate(Activation({"flag": True}, {"i": compute}))
        self.assertEqual(calls, [])
        self.assertIs(program.evaluate(Activation({"flag": False}, {"i": compute}))[0], True)
        self.assertEqual(calls, ["computed"])

    def test_fields(self) -> None:
        """So is a lazy field; where it fails it fails again, without being computed again."""
        calls: list[str] = []

        def fail() -> Value:
            calls.append("failed")
            raise CelError("nothing here")

        variables = LazyFields({"good": lambda: 1, "bad": fail})
        values = {**VALUES, "any": variables}
        self.assertEqual(self.compile("any.good + 1").evaluate(values)[0], 2)
        error = self.assertRaises(EvaluationError, self.compile("any.bad == 1 || any.bad == 2").evaluate, values)
        self.assertEqual((error.message, calls), ("nothing here", ["failed"]))

    def test_fields_not_ready(self) -> None:
        """A field that only has to wait for something can be computed later."""
        answers: list[Any] = [TimeoutError(), 1]

        def answer() -> Value:
            found = answers.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        values = {**VALUES, "any": LazyFields({"late": answer})}
        program = self.compile("any.late == 1 || true")
        self.assertRaises(TimeoutError, program.evaluate, values)
        self.assertIs(program.evaluate(values)[0], True)
        self.assertEqual(answers, [])

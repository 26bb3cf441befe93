"""Tests for L{kubetwist.cel.library.mutation} and L{kubetwist.cel.library.jsonpatches}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.errors import CelError, CompileErrors
from kubetwist.cel.library.environments import mutation_environment
from kubetwist.cel.library.mutation import (
    JSON_PATCHES_TYPE,
    OBJECT_TYPE,
    JSONPatch,
    to_object,
    type_mismatches,
)
from kubetwist.cel.types import DYN

_ENVIRONMENT = mutation_environment().extend({"object": DYN})


class MutationTests(SynchronousTestCase):
    """Tests for the values of mutations in MutatingAdmissionPolicies."""

    def value(self, text: str, object_: Any = None) -> Any:
        """Return the value of an expression."""
        return _ENVIRONMENT.compile(text).evaluate({"object": object_})[0]

    def test_object(self) -> None:
        """Objects are created with fields, maps, lists and nested objects."""
        program = _ENVIRONMENT.compile(
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{replicas: object.n + 1, "
            "containers: [Object.spec.containers{name: 'x', ?image: optional.none()}], nothing: null}}"
        )
        self.assertEqual(program.output_type, OBJECT_TYPE)
        value, _ = program.evaluate({"object": {"n": 2}})
        self.assertEqual(type_mismatches(value), "")
        self.assertEqual(
            to_object(value),
            {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"replicas": 3, "containers": [{"name": "x"}], "nothing": None},
            },
        )

    def test_mismatch(self) -> None:
        """A nested object whose type name does not match its path is reported at any depth."""
        value = self.value("Object{spec: Object.metadata{}, list: [Object.wrong{}], map: {'k': Object.map{}}}")
        self.assertEqual(
            type_mismatches(value),
            'unexpected type name "Object.metadata", expected "Object.spec", which matches field name path from root '
            'Object type\nunexpected type name "Object.wrong", expected "Object.list", which matches field name path '
            "from root Object type",
        )

    def test_fields(self) -> None:
        """Fields of created objects can be selected and tested."""
        self.assertEqual(
            self.value("[Object{a: 1}.a == 1, has(Object{a: 1}.a), has(Object{a: 1}.b), Object{} == Object{}]"),
            [True, True, False, True],
        )

    def test_map_keys(self) -> None:
        """Maps with keys that are not strings cannot be converted to objects."""
        with self.assertRaises(CelError) as raised:
            to_object(self.value("Object{data: {1: 'x'}}"))
        problem = 'fail to convert field "data": map key "1" is of type types.Int, not string'
        self.assertEqual(raised.exception.message, problem)

    def test_json_patch(self) -> None:
        """Operations of JSON patches are created with values of all types."""
        program = _ENVIRONMENT.compile(
            "[JSONPatch{op: 'test', path: '/spec/replicas', value: object.n}, JSONPatch{op: 'add', path: '/labels/' "
            "+ jsonpatch.escapeKey('a/b~c'), value: {'x': [duration('1s')]}}, "
            "JSONPatch{op: 'move', from: '/a', path: '/b'}, JSONPatch{op: 'replace', path: '/c', value: null}]"
        )
        self.assertEqual(program.output_type, JSON_PATCHES_TYPE)
        value, _ = program.evaluate({"object": {"n": 2}})
        self.assertEqual(
            [patch.operation() for patch in value],
            [
                {"op": "test", "path": "/spec/replicas", "value": 2},
                {"op": "add", "path": "/labels/a~1b~0c", "value": {"x": ["1s"]}},
                {"op": "move", "path": "/b", "from": "/a"},
                {"op": "replace", "path": "/c", "value": None},
            ],
        )

    def test_json_values(self) -> None:
        """Values without a JSON form are converted to strings, or are errors."""

        def json(text: str) -> Any:
            patch = self.value(f"JSONPatch{{op: 'add', path: '/', value: {text}}}")
            assert isinstance(patch, JSONPatch)
            return patch.operation()["value"]

        for text, expected in {
            "9007199254740993": "9007199254740993",
            "3u": 3,
            "1.5": 1.5,
            "b'hi'": "aGk=",
            "timestamp(0)": "1970-01-01T00:00:00Z",
            "{1: true}": {"1": True},
            "Object.spec{a: [1]}": {"a": [1]},
        }.items():
            self.assertEqual(json(text), expected)
        with self.assertRaises(CelError) as raised:
            json("quantity('1')")
        self.assertEqual(
            raised.exception.message,
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
            "type conversion error from 'kubernetes.Quantity' to '*structpb.Value'",
        )
        with self.assertRaises(CelError) as raised:
            json("Object.spec{a: Object.b{}}")
        self.assertTrue(raised.exception.message.startswith('type mismatch: unexpected type name "Object.b"'))

    def test_wrong_types(self) -> None:
        """The operation and paths of a JSON patch must be strings, and there are no other fields."""
        for text, message in {
            "JSONPatch{op: 1}": "expected type of field 'op' is 'string' but provided type is 'int'",
            "JSONPatch{operation: 'add'}": "expected type of field 'operation' is '' but provided type is 'string'",
            "Objects{}": "undeclared reference to 'Objects' (in container '')",
        }.items():
            with self.assertRaises(CompileErrors) as raised:
                _ENVIRONMENT.compile(text)
            self.assertEqual(raised.exception.issues[0].message, message)

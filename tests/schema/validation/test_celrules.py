"""Tests for L{kubetwist.schema.validation.celrules} and L{kubetwist.schema.validation.rulepaths}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import RatchetedError
from kubetwist.cel.errors import Interrupted
from kubetwist.cel.frame import Frame
from kubetwist.schema.validation import celrules
from kubetwist.schema.validation.celrules import CELValidator
from kubetwist.schema.validation.rulepaths import (
    has_rules,
    valid_field_path,
)
from kubetwist.schema.validation.validator import (
    CorrelatedObject,
    SchemaValidator,
)


def rule(text: str, **fields: Any) -> dict[str, Any]:
    """Return a rule."""
    return {"rule": text, **fields}


def spec(*rules: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Return the schema of a resource whose C{spec} has rules."""
    part = {"type": "object", "properties": properties, "x-kubernetes-validations": [*rules]}
    return {"type": "object", "properties": {"spec": part}}


def interrupt(frame: Frame) -> None:
    """Raise L{Interrupted}, in place of L{Frame.check_deadline}."""
    raise Interrupted


INTEGER: dict[str, Any] = {"type": "integer"}
STRING: dict[str, Any] = {"type": "string"}


class RuleTests(SynchronousTestCase):
    """Tests for L{CELValidator}."""

    def messages(self, schema: dict[str, Any], value: Any, old: Any = None, **options: Any) -> list[str]:
        """Return the messages of the errors, in brackets if they are tolerated."""
        tree = CELValidator.of(schema, root=True)
        assert tree is not None
        if old is not None:
            options["correlation"] = CorrelatedObject(value, old, SchemaValidator(schema))
        causes, _ = tree.validate(value, old, **options)
        return [f"({cause})" if isinstance(cause, RatchetedError) else str(cause) for cause in causes]

    def test_no_rules(self) -> None:
        """A schema without rules has no validator."""
        self.assertFalse(has_rules({"type": "object", "properties": {"a": {"type": "array", "items": STRING}}}))
        self.assertIsNone(CELValidator.of({"type": "object"}, root=True))

    def test_failure(self) -> None:
        """A failed rule is reported with its message, its expression, or the result of its messageExpression."""
        schema = spec(
            rule("self.a < 3"),
            rule("self.a < 4", message=" too large "),
            rule("self.a < 5", messageExpression="'is ' + string(self.a)"),
            rule("self.a < 6", message="plain", messageExpression="''"),
            a=INTEGER,
        )
        self.assertEqual(self.messages(schema, {"spec": {"a": 2}}), [])
        self.assertEqual(
            self.messages(schema, {"spec": {"a": 9}}),
            [
                "spec: Invalid value: failed rule: self.a < 3",
                "spec: Invalid value: too large",
                "spec: Invalid value: is 9",
                "spec: Invalid value: plain",
            ],
        )

    def test_value_is_shown(self) -> None:
        """Errors contain scalar values, but not objects and lists."""
        schema = spec(a={**INTEGER, "x-kubernetes-validations": [rule("self < 3")]})
        self.assertEqual(self.messages(schema, {"spec": {"a": 5}}), ["spec.a: Invalid value: 5: failed rule: self < 3"])

    def test_reason_and_path(self) -> None:
        """A rule defines the reason and the path of its errors."""
        schema = spec(
            rule("false", reason="FieldValueForbidden", message="no", fieldPath=".a"),
            rule("false", reason="FieldValueRequired", message="no", fieldPath=".m['x.y']"),
            rule("false", reason="FieldValueDuplicate", message="no"),
            a=INTEGER,
            m={"type": "object", "additionalProperties": STRING},
        )
        self.assertEqual(
            self.messages(schema, {"spec": {}}),
            ["spec.a: Forbidden: no", "spec.m[x.y]: Required value: no", "spec: Duplicate value"],
        )

    def test_field_paths(self) -> None:
        """A fieldPath must exist in the schema."""
        schema = spec(a=INTEGER, m={"type": "object", "additionalProperties": STRING})
        self.assertEqual(valid_field_path(".spec.a", schema), "spec.a")
        self.assertEqual(valid_field_path(".spec['m']['it\\'s']", schema), "spec.m[it's]")
        for path in (".spec.b", "spec", ".spec[0]", ".spec['m'", ".spec.a.b", ".", ".spec['m']['\\q']"):
            with self.assertRaises(ValueError, msg=path):
                valid_field_path(path, schema)

    def test_everywhere(self) -> None:
        """Rules are evaluated for items, map values, and parts of C{allOf}."""
        small = [rule("self < 3", message="large")]
        schema = spec(
            items={"type": "array", "items": {**INTEGER, "x-kubernetes-validations": small}},
            named={"type": "object", "additionalProperties": {**INTEGER, "x-kubernetes-validations": small}},
            both={**INTEGER, "allOf": [{"x-kubernetes-validations": small}]},
        )
        value = {"spec": {"items": [1, 7], "named": {"k": 8}, "both": 9}}
        self.assertEqual(
            sorted(self.messages(schema, value)),
            [
                "spec.both: Invalid value: 9: large",
                "spec.items[1]: Invalid value: 7: large",
                "spec.named[k]: Invalid value: 8: large",
            ],
        )

    def test_changes(self) -> None:
        """Transition rules are evaluated if there is an old value, with C{optionalOldSelf} always."""
        schema = spec(
            rule("self.a >= oldSelf.a", message="down"),
            rule("oldSelf.hasValue() || self.a == 0", message="not zero", optionalOldSelf=True),
            a=INTEGER,
        )
        self.assertEqual(self.messages(schema, {"spec": {"a": 4}}), ["spec: Invalid value: not zero"])
        self.assertEqual(
            self.messages(schema, {"spec": {"a": 4}}, {"spec": {"a": 5}}),
            ["spec: Invalid value: down"],
        )

    def test_messages_of_optional_rules(self) -> None:
        """In messages C{oldSelf} is the plain old value or absent, even if it is optional in rules."""
        for message, first, later in (
            ("oldSelf.hasValue() ? 'some' : 'none'", "failed rule: oldSelf == optional.of(self)", None),
            ("'was ' + string(dyn(oldSelf) == 5)", "failed rule: oldSelf == optional.of(self)", "was true"),
            ("string(oldSelf.orValue(7))", "failed rule: oldSelf == optional.of(self)", "5"),
            ("'self ' + string(self)", "self 4", "self 4"),
        ):
            checked = rule("oldSelf == optional.of(self)", messageExpression=message, optionalOldSelf=True)
            schema = spec(a={**INTEGER, "x-kubernetes-validations": [checked]})
            self.assertEqual(self.messages(schema, {"spec": {"a": 4}}), [f"spec.a: Invalid value: 4: {first}"])
            self.assertEqual(
                self.messages(schema, {"spec": {"a": 4}}, {"spec": {"a": 5}}),
                [f"spec.a: Invalid value: 4: {later or first}"],
                message,
            )

    def test_items_by_key(self) -> None:
        """Items of a list of type map are compared with the old items with the same keys."""
        item = {
            "type": "object",
            "properties": {"name": STRING, "n": INTEGER},
            "x-kubernetes-validations": [rule("self.n == oldSelf.n", message="changed")],
        }
        listed = {
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
        schema = spec(l=listed)
        old = {"spec": {"l": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]}}
        new = {"spec": {"l": [{"name": "b", "n": 2}, {"name": "c", "n": 3}, {"name": "a", "n": 9}]}}
        self.assertEqual(self.messages(schema, new, old), ["spec.l[2]: Invalid value: changed"])

    def test_ratcheting(self) -> None:
        """Failures of unchanged values are tolerated, except failures of transition rules."""
        schema = spec(
            rule("self.b == 0", message="b"),
            a={"type": "object", "properties": {"x": INTEGER}, "x-kubernetes-validations": [rule("self.x < 3")]},
            b=INTEGER,
        )
        old = {"spec": {"a": {"x": 5}, "b": 1}}
        self.assertEqual(
            self.messages(schema, {"spec": {"a": {"x": 5}, "b": 2}}, old),
            ["spec: Invalid value: b", "(spec.a: Invalid value: failed rule: self.x < 3)"],
        )

    def test_errors_of_evaluation(self) -> None:
        """A rule whose evaluation fails is reported with the error."""
        schema = spec(rule("self.m['k'] == 1"), m={"type": "object", "additionalProperties": INTEGER})
        self.assertEqual(
            self.messages(schema, {"spec": {"m": {}}}),
            ["spec: Invalid value: \"object\": no such key: k evaluating rule: self.m['k'] == 1"],
        )

    def test_wrong_type_at_run_time(self) -> None:
        """A type mismatch at run time has an explanation."""
        schema = spec(rule("self.p + 1 > 0"), p={"x-kubernetes-int-or-string": True})
        self.assertEqual(self.messages(schema, {"spec": {"p": 1}}), [])
        self.assertEqual(
            self.messages(schema, {"spec": {"p": "x"}}),
            [
                "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a supported "
                "operator, function or macro signature for rule: self.p + 1 > 0"
            ],
        )

    def test_compile_error(self) -> None:
        """A stored rule that no longer compiles is an error for every object."""
        (found,) = self.messages(spec(rule("self.nothere"), a=INTEGER), {"spec": {}})
        self.assertIn("rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'nothere'", found)

    def test_budget(self) -> None:
        """All rules of an object share a budget, after which no further rule is evaluated."""
        schema = spec(rule("self.l.all(x, x > 0)"), rule("self.l.all(x, x > 1)"), l={"type": "array", "items": INTEGER})
        value = {"spec": {"l": [5] * 100}}
        text = (
            'spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation '
            "rules will be run"
        )
        self.assertEqual(self.messages(schema, value, budget=700), [text])
        self.assertEqual(self.messages(schema, value), [])

    def test_expensive_rule_is_cancelled(self) -> None:
        """A rule that exceeds the cost limit is cancelled, and no further rule is evaluated."""
        schema = spec(
            rule("self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))"),
            l={"type": "array", "items": INTEGER},
        )
        (found,) = self.messages(schema, {"spec": {"l": [1] * 300}})
        self.assertIn("no further validation rules will be run due to call cost exceeds limit for rule", found)

    def test_time(self) -> None:
        """All rules of an object share a time limit, with the error of the cost budget."""
        times = iter(range(100))
        self.patch(celrules, "thread_time", lambda: float(next(times)))
        self.patch(celrules, "EXPENSIVE_EVALUATION_COST", 0)
        self.patch(celrules, "RULES_TIMEOUT", 2.5)
        value = {"spec": {"a": 1}}
        holds = [rule(f"self.a < {number + 2}") for number in range(10)]
        text = (
            'spec: Invalid value: "object": validation failed due to running out of cost budget, no further validation '
            "rules will be run"
        )
        self.assertEqual(self.messages(spec(*holds, a=INTEGER), value), [text])
        self.assertEqual(next(times), 4)
        self.patch(celrules, "RULES_TIMEOUT", 200.0)
        self.assertEqual(self.messages(spec(*holds, a=INTEGER), value), [])

    def test_many_cheap_rules(self) -> None:
        """Cheap evaluations are counted, so that their total time is limited, too."""
        times = iter(range(100))
        self.patch(celrules, "thread_time", lambda: float(next(times)))
        self.patch(celrules, "RULES_TIMEOUT", 0.5)
        items = {"type": "integer", "x-kubernetes-validations": [rule("self < 5")]}
        schema = spec(rule("true"), l={"type": "array", "items": items})
        self.assertEqual(self.messages(schema, {"spec": {"l": [1] * (celrules.EVALUATIONS_PER_TIME_CHECK - 2)}}), [])
        (found,) = self.messages(schema, {"spec": {"l": [1] * (2 * celrules.EVALUATIONS_PER_TIME_CHECK)}})
        self.assertIn("running out of cost budget", found)

    def test_slow_evaluation(self) -> None:
        """An evaluation that exceeds its time limit has the error of the cost budget."""
        self.patch(Frame, "check_deadline", interrupt)
        schema = spec(rule("self.l.all(x, x > 0)"), l={"type": "array", "items": INTEGER})
        (found,) = self.messages(schema, {"spec": {"l": [1] * 200}})
        self.assertIn("'operation cancelled: actual cost limit exceeded': no further validation rules will be", found)

    def test_escaped_names(self) -> None:
        """Fields whose names are not identifiers have escaped names, and their rules are evaluated."""
        schema = spec(
            rule("self.foo__dash__bar < 3", message="dash"),
            **{
                "foo-bar": INTEGER,
                "a b": {**INTEGER, "x-kubernetes-validations": [rule("self < 3", message="odd")]},
            },
        )
        self.assertEqual(
            sorted(self.messages(schema, {"spec": {"foo-bar": 5, "a b": 6}})),
            ["spec.a b: Invalid value: 6: odd", "spec: Invalid value: dash"],
        )

    def test_metadata_of_a_resource(self) -> None:
        """Rules of the root can read metadata.name, but no other metadata."""
        schema = {"type": "object", "x-kubernetes-validations": [rule("self.metadata.name.startsWith('a')")]}
        self.assertEqual(self.messages(schema, {"metadata": {"name": "abc"}}), [])
        self.assertEqual(len(self.messages(schema, {"metadata": {"name": "bcd"}})), 1)

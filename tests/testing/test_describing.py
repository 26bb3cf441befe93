"""Tests for L{kubetwist.testing._describing}."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis.strategies import dictionaries, integers, lists, recursive, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing._describing import (
    MAX_LINE_LENGTH,
    conditions_of,
    cut_lines,
    events_table,
    simplify,
    to_yaml,
)

VALUES = recursive(text() | integers(), lambda inner: lists(inner) | dictionaries(text(), inner), max_leaves=20)


class ObjectTests(SynchronousTestCase):
    """L{simplify} and L{to_yaml}."""

    def test_masked(self) -> None:
        """The data of a Secret, also in its annotation, and managed fields are not shown; the object is unchanged."""
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "a": "b"}
        meta = {"name": "s", "managedFields": [{"manager": "x"}], "annotations": annotations}
        secret = {"kind": "Secret", "metadata": meta, "data": {"p": "hunter2"}, "stringData": {"q": "hunter2"}}
        before = repr(secret)
        shown = to_yaml(secret)
        self.assertNotIn("hunter2", shown)
        self.assertNotIn("managedFields", shown)
        self.assertEqual(
            yaml.safe_load(shown),
            {
                "kind": "Secret",
                "metadata": {"name": "s", "annotations": {"a": "b"}},
                "data": {"p": "(masked)"},
                "stringData": {"q": "(masked)"},
            },
        )
        self.assertEqual(repr(secret), before)

    def test_bounded(self) -> None:
        """Long lists, strings and lines are cut."""
        shown = to_yaml(
            {"list": list(range(10_000)), "text": "x" * 100_000, "map": dict.fromkeys(map(str, range(999)))}
        )
        lines = shown.splitlines()
        self.assertEqual(len(lines), 81)
        self.assertRegex(lines[-1], r"^\.\.\. \([0-9]+ more lines\)$")
        self.assertEqual(cut_lines(["y" * 1000]), ["y" * MAX_LINE_LENGTH + "..."])

    @given(dictionaries(text(), VALUES))
    def test_any_object(self, obj: dict[str, Any]) -> None:
        """Any object is shown in a bounded number of characters."""
        simplify(obj)
        self.assertLess(len(to_yaml(obj)), 81 * (MAX_LINE_LENGTH + 10))


class LineTests(SynchronousTestCase):
    """L{conditions_of} and L{events_table}."""

    def test_conditions(self) -> None:
        """Conditions are aligned."""
        conditions = [
            {"type": "Ready", "status": "False", "reason": "No", "message": "two\nlines"},
            {"type": "A", "status": "True"},
        ]
        self.assertEqual(
            conditions_of({"status": {"conditions": conditions}}), ["Ready  False  No  two lines", "A      True"]
        )
        self.assertEqual(conditions_of({"status": None}), [])

    def test_events(self) -> None:
        """The newest events are shown in the order of their times."""
        events = [
            {
                "lastTimestamp": f"2020-01-01T00:00:{second:02}Z",
                "reason": f"r{second}",
                "message": "m",
                "involvedObject": {"kind": "Pod", "name": "p"},
                "count": second,
            }
            for second in (2, 3, 1)
        ]
        self.assertEqual(
            events_table(events, 2),
            [
                "... (1 older events)",
                "2020-01-01T00:00:02Z    r2  pod/p  m (x2)",
                "2020-01-01T00:00:03Z    r3  pod/p  m (x3)",
            ],
        )
        self.assertEqual(events_table([]), [])

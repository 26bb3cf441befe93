"""Tests for L{kubetwist.schema.protobuf.fieldnumbers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.protobuf.fieldnumbers import _lines, _numbered, field_numbers, lines_by_type

TABLE = """\
# A comment.
[apps]
Thing a b=5 c
 d
v1beta1.Thing a
[core]
Pod metadata
"""


class TableTests(SynchronousTestCase):
    """Tests for the table and its format."""

    def test_form(self) -> None:
        """A line may continue in the next one, and a version prefix restricts it to that version."""
        self.assertEqual(
            lines_by_type(TABLE), {"apps.Thing": "a b=5 c d", "apps.v1beta1.Thing": "a", "core.Pod": "metadata"}
        )

    def test_numbers(self) -> None:
        """A number is one higher than the previous one, unless it is explicit."""
        self.assertEqual(_numbered("a b=5 c"), {"a": 1, "b": 5, "c": 6})

    def test_known(self) -> None:
        """Fields of the API have the numbers of its C{generated.proto} files."""
        self.assertEqual(field_numbers("core", "v1", "Pod"), {"metadata": 1, "spec": 2, "status": 3})
        self.assertEqual(field_numbers("core", "v1", "ConfigMap")["immutable"], 4)
        self.assertRaises(KeyError, field_numbers, "", "v1", "Nothing")

    def test_possible(self) -> None:
        """Every number in the table is valid in protobuf."""
        for name, line in _lines().items():
            self.assertTrue(all(0 < number < 1 << 29 for number in _numbered(line).values()), name)

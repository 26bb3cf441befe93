"""Tests for L{kubetwist.registry.core.configmap.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class ConfigMapTests(SynchronousTestCase):
    """ConfigMaps."""

    def test_keys(self) -> None:
        """A key is a file's name, and is there once."""
        self.assertEqual(
            problems("", "ConfigMap", data={"same": "x"}, binaryData={"same": "eA=="}),
            ['data[same]: Invalid value: "same": duplicate of key present in binaryData'],
        )
        self.assertIn("a valid config key must consist of", problems("", "ConfigMap", data={"a/b": ""})[0])

    def test_size(self) -> None:
        """A megabyte is the most, over all keys."""
        self.assertEqual(problems("", "ConfigMap", data={"a": "x" * 2**20}), [])
        found = problems("", "ConfigMap", data={"a": "x" * 2**20, "b": "x"})
        self.assertEqual(found, ["[]: Too long: may not be more than 1048576 bytes"])

    def test_immutable(self) -> None:
        """What is marked immutable stays so and stays as it is."""
        old = {"immutable": True, "data": {"a": "1"}}
        self.assertEqual(change_problems("", "ConfigMap", old, old), [])
        self.assertEqual(
            change_problems("", "ConfigMap", old, {"data": {"a": "2"}}),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
        )

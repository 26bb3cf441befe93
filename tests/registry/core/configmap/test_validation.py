"""Tests of L{kubetwist.registry.core.configmap.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class ConfigMapTests(SynchronousTestCase):
    """Tests of ConfigMaps."""

    def test_keys(self) -> None:
        """A key must be a valid file name, and unique."""
        self.assertEqual(
            problems("", "ConfigMap", data={"same": "x"}, binaryData={"same": "eA=="}),
            ['data[same]: Invalid value: "same": duplicate of key present in binaryData'],
        )
        self.assertIn("a valid config key must consist of", problems("", "ConfigMap", data={"a/b": ""})[0])

    def test_size(self) -> None:
        """The maximum size of all values is 1 MiB."""
        self.assertEqual(problems("", "ConfigMap", data={"a": "x" * 2**20}), [])
        found = problems("", "ConfigMap", data={"a": "x" * 2**20, "b": "x"})
        self.assertEqual(found, ["[]: Too long: may not be more than 1048576 bytes"])

    def test_immutable(self) -> None:
        """An immutable ConfigMap cannot become mutable, and its data cannot be changed."""
        old = {"immutable": True, "data": {"a": "1"}}
        self.assertEqual(change_problems("", "ConfigMap", old, old), [])
        self.assertEqual(
            change_problems("", "ConfigMap", old, {"data": {"a": "2"}}),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
        )

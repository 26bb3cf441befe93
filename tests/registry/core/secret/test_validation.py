"""Tests of L{kubetwist.registry.core.secret.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class SecretTests(SynchronousTestCase):
    """Tests of Secrets."""

    def test_secret_type(self) -> None:
        """The type of a secret is immutable, and requires keys."""
        self.assertEqual(
            change_problems("", "Secret", {"type": "a"}, {"type": "b"}),
            ['type: Invalid value: "b": field is immutable'],
        )
        self.assertEqual(
            problems("", "Secret", type="kubernetes.io/tls"),
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        )

    def test_secret_is_not_shown(self) -> None:
        """Errors do not contain the values of a secret."""
        found = problems("", "Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "hush"})
        self.assertEqual(len(found), 1)
        self.assertNotIn("hush", found[0])
        self.assertTrue(found[0].endswith("invalid character 'h' looking for beginning of value"), found[0])
        found = problems("", "Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "[1]"})
        self.assertTrue(found[0].endswith("cannot unmarshal array into Go value of type map[string]interface {}"))

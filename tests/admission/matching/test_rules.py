"""Tests for L{kubetwist.admission.matching.rules}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.matching.rules import RuleWithOperations
from kubetwist.api.resource import GroupVersionResource


class RuleTests(SynchronousTestCase):
    """Tests for L{RuleWithOperations}."""

    def test_matching(self) -> None:
        """Operation, group, version, resource and scope must all match."""
        pods, scale = GroupVersionResource("", "v1", "pods"), GroupVersionResource("apps", "v1", "deployments")
        rule = RuleWithOperations.make(
            {
                "operations": ["CREATE", "CONNECT"],
                "apiGroups": ["", "apps"],
                "apiVersions": ["v1"],
                "resources": ["pods", "pods/exec", "*/scale"],
                "scope": "Namespaced",
            }
        )
        for arguments, expected in (
            (("CREATE", pods, "", True), True),
            (("UPDATE", pods, "", True), False),
            (("CONNECT", pods, "exec", True), True),
            (("CONNECT", pods, "attach", True), False),
            (("CREATE", scale, "scale", True), True),
            (("CREATE", scale, "", True), False),
            (("CREATE", pods._replace(version="v2"), "", True), False),
            (("CREATE", pods._replace(group="x"), "", True), False),
            (("CREATE", pods, "", False), False),
        ):
            self.assertEqual(rule.matches(*arguments), expected, arguments)

    def test_wildcards(self) -> None:
        """Asterisks match everything; an asterisk without a slash matches no subresource."""
        every = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"]}
        pods = GroupVersionResource("", "v1", "pods")
        main, both = (
            RuleWithOperations.make({**every, "resources": ["*"]}),
            RuleWithOperations.make({**every, "resources": ["*/*"]}),
        )
        self.assertEqual([main.matches("DELETE", pods, part, True) for part in ("", "status")], [True, False])
        self.assertEqual([both.matches("DELETE", pods, part, True) for part in ("", "status")], [True, True])
        self.assertFalse(RuleWithOperations.make({}).matches("CREATE", pods, "", True))

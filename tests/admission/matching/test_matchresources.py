"""Tests for L{kubetwist.admission.matching.matchresources}."""

from __future__ import annotations

from tests.admission_plugins.policies.policycase import MAPS, SCALERS, PolicyTestCase, rule


class MatchingTests(PolicyTestCase):
    """Tests for L{kubetwist.admission.matching.matchresources}."""

    def test_selection(self) -> None:
        """Rules, names, exclusions and selectors of policy and binding must all match."""
        constraints = {
            "resourceRules": [rule("configmaps", "secrets")],
            "excludeResourceRules": [rule("configmaps", resourceNames=["free"])],
            "objectSelector": {"matchLabels": {"watched": "yes"}},
        }
        resources = {"resourceRules": [rule("configmaps")], "namespaceSelector": {"matchLabels": {"team": "a"}}}
        self.policy(
            matchConstraints=constraints,
            validations=[{"expression": "false"}],
            binding={"matchResources": resources},
        )
        watched = {"watched": "yes"}
        self.create("free", labels=watched)
        self.create("plain")
        self.send_request("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s", "labels": watched}})
        self.request_error("POST", MAPS, {"metadata": {"name": "m", "labels": watched}})
        self.send_request("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        self.send_request("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "m", "labels": watched}})

    def test_versions(self) -> None:
        """A rule for another version of a resource matches, and the object is converted to that version."""
        rules = [rule("horizontalpodautoscalers", apiGroups=["autoscaling"], apiVersions=["v2"])]
        self.policy(
            matchConstraints={"resourceRules": rules},
            validations=[
                {
                    "expression": "object.apiVersion == 'autoscaling/v2'"
                    " && object.spec.metrics[0].resource.target.averageUtilization == 80"
                }
            ],
        )
        spec = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        self.send_request("POST", SCALERS, {"metadata": {"name": "a"}, "spec": {**spec}})
        spec["targetCPUUtilizationPercentage"] = 50
        self.request_error("POST", SCALERS, {"metadata": {"name": "b"}, "spec": spec})

"""Tests of L{kubetwist.registry.core.podtemplate.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import CONTAINER, problems


class TemplateTests(SynchronousTestCase):
    """Tests of L{validate_pod_template}."""

    def test_template(self) -> None:
        """Errors have the path of the template; ephemeral containers are forbidden."""
        self.assertEqual(problems("", "PodTemplate", template={"spec": {"containers": [CONTAINER]}}), [])
        [text] = problems("", "PodTemplate", template={"spec": {"containers": []}})
        self.assertEqual(text, "template.spec.containers: Required value")
        spec = {"containers": [CONTAINER], "ephemeralContainers": [{"name": "e", "image": "i"}]}
        fields = [text.partition(":")[0] for text in problems("", "PodTemplate", template={"spec": spec})]
        self.assertIn("template.spec.ephemeralContainers", fields)

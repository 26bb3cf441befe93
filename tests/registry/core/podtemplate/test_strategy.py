"""Tests of L{kubetwist.registry.core.podtemplate.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, defaulted, made, warnings_for


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of PodTemplates."""

    def test_template(self) -> None:
        """The template has the defaults of pods."""
        obj = defaulted("", "PodTemplate", template={"spec": {"containers": [{"name": "c", "image": "i"}]}})
        self.assertEqual(obj["template"]["spec"]["restartPolicy"], "Always")
        self.assertIn("template", defaulted("", "PodTemplate"))

    def test_gates(self) -> None:
        """Fields of disabled gates are dropped from new templates; existing values are kept."""
        spec = {"containers": [{"name": "c", "image": "i", "lifecycle": {"stopSignal": "SIGUSR1"}}]}
        obj = made("", "PodTemplate", template={"spec": copy(spec)})
        self.assertNotIn("lifecycle", obj["template"]["spec"]["containers"][0])
        new = {"template": {"spec": copy(spec)}}
        strategy_for("", "PodTemplate").prepare_for_update(new, {"template": {"spec": copy(spec)}})
        self.assertIn("lifecycle", new["template"]["spec"]["containers"][0])

    def test_warnings(self) -> None:
        """Templates cause the warnings of pods."""
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"beta.kubernetes.io/os": "linux"}}
        [text] = warnings_for("", "PodTemplate", template={"spec": spec})
        self.assertTrue(text.startswith("template.spec.nodeSelector[beta.kubernetes.io/os]"), text)

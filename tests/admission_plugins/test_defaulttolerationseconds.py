"""Tests for L{DefaultTolerationSeconds}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.defaulttolerationseconds import DefaultTolerationSeconds
from tests.admission_plugins.fakes import Context, PluginTestCase, pod, write
from tests.admission_plugins.objects import attributes, call_plugin


class TolerationTests(SynchronousTestCase):
    """Tests for L{DefaultTolerationSeconds}."""

    def admit(self, **spec: Any) -> list[Any]:
        """Return the tolerations of a pod after admission."""
        obj = pod(**spec)
        self.successResultOf(call_plugin(DefaultTolerationSeconds().admit, attributes(obj)))
        result: list[Any] = obj["spec"].get("tolerations", [])
        return result

    def test_added(self) -> None:
        """A pod tolerates a failed node for five minutes."""
        keys = [(one["key"], one["tolerationSeconds"]) for one in self.admit()]
        self.assertEqual(keys, [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)])

    def test_existing(self) -> None:
        """Existing tolerations are kept; a pod that tolerates everything gets none."""
        existing = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        self.assertEqual(len(self.admit(tolerations=[existing])), 2)
        everything = [{"operator": "Exists"}]
        self.assertEqual(self.admit(tolerations=everything), everything)


class ConfiguredTests(PluginTestCase):
    """Tests of plugins that use flags of the server."""

    def test_toleration_seconds(self) -> None:
        """The durations are set by flags."""
        plugin = DefaultTolerationSeconds.configured(Context(toleration_seconds=(10, 0)), None)
        spec = self.admit_twice(plugin, write(pod()))["spec"]
        self.assertEqual([one["tolerationSeconds"] for one in spec["tolerations"]], [10, 0])

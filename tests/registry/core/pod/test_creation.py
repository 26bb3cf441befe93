"""Tests for L{kubetwist.registry.core.pod.creation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.creation import (
    app_armor_warnings,
    apply_app_armor_annotations,
    merge_match_label_keys,
)

KEY = "container.apparmor.security.beta.kubernetes.io/c"


class LabelKeyTests(SynchronousTestCase):
    """Tests for L{merge_match_label_keys}."""

    def test_merged(self) -> None:
        """The values of the pod's own labels stand in the selectors beside their keys."""
        term: dict[str, Any] = {"labelSelector": {}, "matchLabelKeys": ["a", "x"], "mismatchLabelKeys": ["b"]}
        spread: dict[str, Any] = {"labelSelector": {}, "matchLabelKeys": ["a"]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec = {"affinity": {"podAntiAffinity": required}, "topologySpreadConstraints": [spread]}
        merge_match_label_keys(spec, {"a": "1", "b": "2"})
        self.assertEqual(
            term["labelSelector"]["matchExpressions"],
            [{"key": "a", "operator": "In", "values": ["1"]}, {"key": "b", "operator": "NotIn", "values": ["2"]}],
        )
        self.assertEqual(spread["labelSelector"]["matchExpressions"], [{"key": "a", "operator": "In", "values": ["1"]}])

    def test_no_selector(self) -> None:
        """Where there is no selector nothing is merged."""
        spec: dict[str, Any] = {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]}
        merge_match_label_keys(spec, {"a": "1"})
        self.assertEqual(spec, {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]})


class AppArmorTests(SynchronousTestCase):
    """Tests for annotations of old that stand for fields."""

    def applied(self, text: str, **container: Any) -> Any:
        """The security context of a container after its annotation was applied."""
        spec = {"containers": [{"name": "c", **container}]}
        apply_app_armor_annotations({"annotations": {KEY: text}}, spec)
        return spec["containers"][0].get("securityContext")

    def test_applied(self) -> None:
        """An annotation stands for the field, where the field is not set."""
        self.assertEqual(self.applied("runtime/default"), {"appArmorProfile": {"type": "RuntimeDefault"}})
        local = {"type": "Localhost", "localhostProfile": "p"}
        self.assertEqual(self.applied("localhost/p"), {"appArmorProfile": local})
        own = {"appArmorProfile": {"type": "Unconfined"}}
        self.assertEqual(self.applied("runtime/default", securityContext=own), own)

    def test_nonsense(self) -> None:
        """An annotation that means nothing, or too long a profile, changes nothing."""
        for text in ("nonsense", "localhost/", f"localhost/{'x' * 4096}"):
            self.assertIsNone(self.applied(text), text)

    def test_warned(self) -> None:
        """Such annotations are warned of."""
        [text] = app_armor_warnings({"annotations": {KEY: "runtime/default"}}, {"containers": [{"name": "c"}]})
        self.assertTrue(text.startswith(f"metadata.annotations[{KEY}]: "), text)
        spec = {"containers": [{"name": "c"}], "os": {"name": "windows"}}
        self.assertEqual(app_armor_warnings({"annotations": {KEY: "runtime/default"}}, spec), [])

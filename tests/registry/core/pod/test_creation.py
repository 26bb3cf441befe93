"""Tests of L{kubetwist.registry.core.pod.creation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.creation import (
    app_armor_warnings,
    apply_app_armor_annotations,
    merge_affinity_keys,
    merge_spread_keys,
)

KEY = "container.apparmor.security.beta.kubernetes.io/c"


class LabelKeyTests(SynchronousTestCase):
    """Tests of L{merge_affinity_keys} and L{merge_spread_keys}."""

    def test_merged(self) -> None:
        """The values of the pod's labels are added to the selectors."""
        term: dict[str, Any] = {"labelSelector": {}, "matchLabelKeys": ["a", "x"], "mismatchLabelKeys": ["b"]}
        spread: dict[str, Any] = {"labelSelector": {}, "matchLabelKeys": ["a"]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec = {"affinity": {"podAntiAffinity": required}, "topologySpreadConstraints": [spread]}
        merge_affinity_keys(spec, {"a": "1", "b": "2"})
        merge_spread_keys(spec, {"a": "1", "b": "2"})
        self.assertEqual(
            term["labelSelector"]["matchExpressions"],
            [{"key": "a", "operator": "In", "values": ["1"]}, {"key": "b", "operator": "NotIn", "values": ["2"]}],
        )
        self.assertEqual(spread["labelSelector"]["matchExpressions"], [{"key": "a", "operator": "In", "values": ["1"]}])

    def test_no_selector(self) -> None:
        """Without a selector nothing is added."""
        spec: dict[str, Any] = {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]}
        merge_spread_keys(spec, {"a": "1"})
        self.assertEqual(spec, {"topologySpreadConstraints": [{"matchLabelKeys": ["a"]}]})


class AppArmorTests(SynchronousTestCase):
    """Tests of deprecated annotations of fields."""

    def applied(self, text: str, **container: Any) -> Any:
        """Return the security context of a container after its annotation is applied."""
        spec = {"containers": [{"name": "c", **container}]}
        apply_app_armor_annotations({"annotations": {KEY: text}}, spec)
        return spec["containers"][0].get("securityContext")

    def test_applied(self) -> None:
        """An annotation sets the field if it is missing."""
        self.assertEqual(self.applied("runtime/default"), {"appArmorProfile": {"type": "RuntimeDefault"}})
        local = {"type": "Localhost", "localhostProfile": "p"}
        self.assertEqual(self.applied("localhost/p"), {"appArmorProfile": local})
        context = {"appArmorProfile": {"type": "Unconfined"}}
        self.assertEqual(self.applied("runtime/default", securityContext=context), context)

    def test_invalid_annotation(self) -> None:
        """An invalid annotation, or a profile that is too long, is ignored."""
        for text in ("nonsense", "localhost/", f"localhost/{'x' * 4096}"):
            self.assertIsNone(self.applied(text), text)

    def test_deprecation_warnings(self) -> None:
        """Deprecated annotations cause warnings."""
        [text] = app_armor_warnings({"annotations": {KEY: "runtime/default"}}, {"containers": [{"name": "c"}]})
        self.assertTrue(text.startswith(f"metadata.annotations[{KEY}]: "), text)
        spec = {"containers": [{"name": "c"}], "os": {"name": "windows"}}
        self.assertEqual(app_armor_warnings({"annotations": {KEY: "runtime/default"}}, spec), [])

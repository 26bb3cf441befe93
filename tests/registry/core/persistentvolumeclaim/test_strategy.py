"""Tests of L{kubetwist.registry.core.persistentvolumeclaim.strategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for


class ClaimTests(SynchronousTestCase):
    """Tests of PersistentVolumeClaims."""

    def test_data_sources(self) -> None:
        """The two fields for data sources are set from each other on creation, not by defaults."""
        strategy = strategy_for("", "PersistentVolumeClaim")
        source = {"kind": "PersistentVolumeClaim", "name": "other"}
        obj: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"dataSource": dict(source)}}
        strategy.default(obj)
        self.assertNotIn("dataSourceRef", obj["spec"])
        strategy.prepare_for_create(obj)
        self.assertEqual(obj["spec"]["dataSourceRef"], source)

    def test_change(self) -> None:
        """The error of a forbidden change contains the difference."""
        strategy = strategy_for("", "PersistentVolumeClaim")

        def claim(size: str) -> dict[str, Any]:
            obj: dict[str, Any] = {
                "metadata": {"name": "c"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": size}},
                    "volumeName": "v",
                },
            }
            strategy.default(obj)
            return obj

        causes = strategy.validate_update(claim("2Gi"), claim("1Gi"))
        self.assertIn(
            'bound claims\n@@ -6,7 +6,7 @@\n  "Resources": {\n   "Limits": null,\n   "Requests": {\n'
            '-   "storage": "1Gi"\n+   "storage": "2Gi"\n   }\n  },\n  "VolumeName": "v",\n',
            causes[0].message,
        )

"""Tests for L{kubetwist.schema.enums}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.definitions import Definitions
from kubetwist.schema.enums import enum_values

CORE = "io.k8s.api.core.v1"


class EnumTests(SynchronousTestCase):
    """Enumerated types."""

    def test_values(self) -> None:
        """A type is looked for in the group of the field's own, then in the core group."""
        restart = ["Always", "Never", "OnFailure"]
        self.assertEqual(enum_values(f"{CORE}.PodSpec", "v1.RestartPolicy"), restart)
        self.assertEqual(enum_values("io.k8s.api.apps.v1.StatefulSetSpec", "[]v1.RestartPolicy"), restart)
        self.assertIsNone(enum_values(f"{CORE}.PodSpec", "string"))
        self.assertIsNone(enum_values(f"{CORE}.PodSpec", "v1.NoSuchType"))

    def test_versions(self) -> None:
        """What is one in a version need not be one in another."""
        package = "io.k8s.api.autoscaling"
        self.assertIsNotNone(enum_values(f"{package}.v1.MetricSpec", "v1.MetricSourceType"))
        self.assertIsNone(enum_values(f"{package}.v2.MetricSpec", "v2.MetricSourceType"))

    def test_long_lines(self) -> None:
        """Values over several lines are whole."""
        signals = enum_values(f"{CORE}.Lifecycle", "v1.Signal")
        assert signals is not None
        self.assertEqual([one for one in signals if not one.startswith("SIG") or " " in one], [])
        self.assertEqual(signals, sorted(signals))
        usages = enum_values("io.k8s.api.certificates.v1.CertificateSigningRequestSpec", "[]v1.KeyUsage")
        assert usages is not None
        self.assertIn("digital signature", usages)

    def test_published(self) -> None:
        """OpenAPI 3 tells the values, of what lists and maps hold, too; OpenAPI 2 does not."""
        definitions = Definitions.load("1.36")
        for prefix, told in (("#/components/schemas/", True), ("#/definitions/", False)):
            schemas: Any = definitions.openapi_schemas(prefix)
            self.assertEqual("enum" in schemas[f"{CORE}.PodSpec"]["properties"]["restartPolicy"], told)
            claim = schemas[f"{CORE}.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
            self.assertEqual("enum" in claim["items"], told)
            self.assertNotIn("enum", claim)
            status = schemas[f"{CORE}.PersistentVolumeClaimStatus"]["properties"]["allocatedResourceStatuses"]
            self.assertEqual("enum" in status["additionalProperties"], told)

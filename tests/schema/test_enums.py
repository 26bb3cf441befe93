"""Tests for L{kubetwist.schema.enums}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.definitions import Definitions
from kubetwist.schema.enums import described_values, enum_values
from kubetwist.schema.openapi import V2_REFERENCE, V3_REFERENCE

CORE = "io.k8s.api.core.v1"


class EnumTests(SynchronousTestCase):
    """Tests for enumerated types."""

    def test_values(self) -> None:
        """A type is looked up in the group of the field's type, then in the core group."""
        restart = ["Always", "Never", "OnFailure"]
        self.assertEqual(list(enum_values(f"{CORE}.PodSpec", "v1.RestartPolicy") or ()), restart)
        self.assertEqual(list(enum_values("io.k8s.api.apps.v1.StatefulSetSpec", "[]v1.RestartPolicy") or ()), restart)
        self.assertIsNone(enum_values(f"{CORE}.PodSpec", "string"))
        self.assertIsNone(enum_values(f"{CORE}.PodSpec", "v1.NoSuchType"))

    def test_descriptions(self) -> None:
        """Each value has a description, which may be empty and may differ between API versions."""
        self.assertEqual(set((enum_values(f"{CORE}.PodSpec", "v1.RestartPolicy") or {}).values()), {""})
        package = "io.k8s.api.admissionregistration"
        texts = [(enum_values(f"{package}.{v}.ParamKind", f"{v}.FailurePolicyType") or {}) for v in ("v1", "v1alpha1")]
        self.assertEqual(list(texts[0]), list(texts[1]))
        self.assertNotEqual(texts[0]["Fail"], texts[1]["Fail"])
        self.assertTrue(all(texts[0].values()))

    def test_versions(self) -> None:
        """A type may be an enumeration in one API version only."""
        package = "io.k8s.api.autoscaling"
        self.assertIsNotNone(enum_values(f"{package}.v1.MetricSpec", "v1.MetricSourceType"))
        self.assertIsNone(enum_values(f"{package}.v2.MetricSpec", "v2.MetricSourceType"))

    def test_many(self) -> None:
        """An enumeration may have many values, and values with spaces."""
        signals = enum_values(f"{CORE}.Lifecycle", "v1.Signal")
        assert signals is not None
        self.assertEqual([one for one in signals if not one.startswith("SIG") or " " in one], [])
        self.assertEqual(list(signals), sorted(signals))
        usages = enum_values("io.k8s.api.certificates.v1.CertificateSigningRequestSpec", "[]v1.KeyUsage")
        assert usages is not None
        self.assertIn("digital signature", usages)

    def test_published(self) -> None:
        """Both versions of OpenAPI publish the values, also for items of lists and maps."""
        for prefix in (V2_REFERENCE, V3_REFERENCE):
            schemas: Any = release().openapi_schemas(prefix)
            self.assertIn("enum", schemas[f"{CORE}.PodSpec"]["properties"]["restartPolicy"])
            claim = schemas[f"{CORE}.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
            self.assertIn("enum", claim["items"])
            self.assertNotIn("enum", claim)
            status = schemas[f"{CORE}.PersistentVolumeClaimStatus"]["properties"]["allocatedResourceStatuses"]
            self.assertIn("enum", status["additionalProperties"])

    def test_releases(self) -> None:
        """Types and values may have a condition on the release."""
        scope, operator = ("io.k8s.api.admissionregistration.v1.Rule", "*v1.ScopeType"), f"{CORE}.Toleration"
        scopes = [enum_values(*scope, release) for release in ((1, 34), (1, 35))]
        self.assertEqual([values is None for values in scopes], [True, False])
        for release, expected in (((1, 34), ["Equal", "Exists"]), ((1, 35), ["Equal", "Exists", "Gt", "Lt"])):
            self.assertEqual(list(enum_values(operator, "v1.TolerationOperator", release) or ()), expected)

    def test_described(self) -> None:
        """The description of a field lists its values; the description of a list or map of them does not."""
        schemas: Any = release().openapi_schemas(V2_REFERENCE)
        protocol = schemas[f"{CORE}.ContainerPort"]["properties"]["protocol"]
        text, _, values = protocol["description"].partition("\n\nPossible enum values:\n")
        self.assertTrue(text.startswith("Protocol for port."))
        self.assertEqual(
            values.splitlines(),
            [
                ' - `"SCTP"` is the SCTP protocol.',
                ' - `"TCP"` is the TCP protocol.',
                ' - `"UDP"` is the UDP protocol.',
            ],
        )
        policy = schemas[f"{CORE}.PodSpec"]["properties"]["restartPolicy"]
        self.assertTrue(policy["description"].endswith('\n - `"OnFailure"`'))
        modes = schemas[f"{CORE}.PersistentVolumeSpec"]["properties"]["accessModes"]
        self.assertNotIn("Possible enum values", modes["description"])

    def test_empty_line(self) -> None:
        """If the Go comment of a field ends with an empty line, the published text has it before the list, too."""
        values = {"a": "", "b": "means b."}
        listed = '\n\nPossible enum values:\n - `"a"`\n - `"b"` means b.'
        for definition, field, between in (
            (f"{CORE}.PodSpec", "restartPolicy", ""),
            ("io.k8s.api.resource.v1.DeviceTaint", "effect", "\n"),
            ("io.k8s.api.admissionregistration.v1.Mutation", "patchType", "\n"),
        ):
            self.assertEqual(described_values(definition, field, "Text.", values), f"Text.{between}{listed}")


def release() -> Definitions:
    """Return the types of a release."""
    return Definitions.load("1.36")

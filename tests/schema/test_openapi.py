"""Tests for L{kubetwist.schema.openapi}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.definitions import Definitions
from tests.schema.release import definitions


class OpenAPISchemaTests(SynchronousTestCase):
    """Tests for published definitions."""

    def schema(self, prefix: str, name: str) -> Any:
        """Return one published schema."""
        return definitions().openapi_schemas(prefix)[name]

    def test_additions_are_removed(self) -> None:
        """No schema allows null, and kind and apiVersion are not restricted."""
        pod = self.schema("#/definitions/", "io.k8s.api.core.v1.Pod")
        self.assertEqual(pod["type"], "object")
        self.assertEqual(pod["properties"]["kind"]["type"], "string")
        self.assertNotIn("enum", pod["properties"]["kind"])
        container = self.schema("#/definitions/", "io.k8s.api.core.v1.Container")
        self.assertEqual(container["properties"]["args"]["items"], {"type": "string"})

    def test_version_2_references(self) -> None:
        """OpenAPI 2 has references with siblings, and no defaults."""
        pod = self.schema("#/definitions/", "io.k8s.api.core.v1.Pod")
        spec = pod["properties"]["spec"]
        self.assertEqual(spec["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec")
        self.assertNotIn("default", spec)

    def test_version_3_references(self) -> None:
        """OpenAPI 3 has references with a description or default in C{allOf}."""
        prefix = "#/components/schemas/"
        spec = self.schema(prefix, "io.k8s.api.core.v1.Pod")["properties"]["spec"]
        self.assertEqual(spec["allOf"], [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}])
        self.assertEqual(spec["default"], {})
        containers = self.schema(prefix, "io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
        self.assertEqual(containers["items"], {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"})

    def test_version_3_defaults(self) -> None:
        """OpenAPI 3 has a default for fields that Go always encodes, except as null."""
        container = self.schema("#/components/schemas/", "io.k8s.api.core.v1.Container")["properties"]
        self.assertEqual(container["name"]["default"], "")
        self.assertNotIn("default", container["image"])
        self.assertNotIn("default", container["livenessProbe"])
        created = self.schema("#/components/schemas/", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        self.assertNotIn("default", created["properties"]["creationTimestamp"])
        request = self.schema("#/components/schemas/", "io.k8s.api.certificates.v1.CertificateSigningRequestSpec")
        self.assertNotIn("default", request["properties"]["request"])

    def test_declared_defaults(self) -> None:
        """OpenAPI 3 has the defaults that Go types declare, also of one version only; OpenAPI 2 has no defaults."""
        core, resource = "io.k8s.api.core.v1", "io.k8s.api.resource.v1"
        for name, field, default in (
            (f"{core}.ContainerPort", "protocol", "TCP"),
            (f"{core}.FileKeySelector", "optional", False),
            (f"{resource}.DeviceToleration", "operator", "Equal"),
            ("io.k8s.api.certificates.v1beta1.PodCertificateRequestSpec", "maxExpirationSeconds", 86400),
        ):
            self.assertEqual(self.schema("#/components/schemas/", name)["properties"][field]["default"], default)
        for name, schema in definitions().openapi_schemas("#/definitions/").items():
            for field, part in schema.get("properties", {}).items():
                self.assertNotIn("default", part, f"{name}.{field}")

    def test_elements_before_1_36(self) -> None:
        """Elements of lists and maps have defaults in OpenAPI 3 of releases before 1.36."""
        prefix, meta = "#/components/schemas/", "io.k8s.apimachinery.pkg.apis.meta.v1"
        schemas = Definitions.load("1.35").openapi_schemas(prefix)
        fields = schemas[f"{meta}.ObjectMeta"]["properties"]
        self.assertEqual(fields["finalizers"]["items"], {"type": "string", "default": ""})
        self.assertEqual(fields["labels"]["additionalProperties"], {"type": "string", "default": ""})
        reference = {"allOf": [{"$ref": f"{prefix}{meta}.OwnerReference"}], "default": {}}
        self.assertEqual(fields["ownerReferences"]["items"], reference)
        limits = schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["limits"]
        self.assertEqual(
            limits["additionalProperties"], {"$ref": f"{prefix}io.k8s.apimachinery.pkg.api.resource.Quantity"}
        )
        newest = self.schema(prefix, f"{meta}.ObjectMeta")["properties"]
        self.assertEqual(newest["finalizers"]["items"], {"type": "string"})

    def test_declared_defaults_of_releases(self) -> None:
        """Types declare defaults since some release."""
        name, prefix = "io.k8s.api.autoscaling.v1.ScaleSpec", "#/components/schemas/"
        for minor, defaulted in (("1.33", False), ("1.34", True)):
            replicas = Definitions.load(minor).openapi_schemas(prefix)[name]["properties"]["replicas"]
            self.assertEqual("default" in replicas, defaulted)

    def test_scalars(self) -> None:
        """Types with a custom JSON form have a description, which the package lacks."""
        for name in (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        ):
            for prefix in ("#/definitions/", "#/components/schemas/"):
                description = self.schema(prefix, name)["description"]
                self.assertTrue(description.startswith(name.rpartition(".")[2]))
                self.assertNotIn("io.k8s", description)

    def test_unions(self) -> None:
        """A quantity is a string in OpenAPI 2, and a string or number in OpenAPI 3."""
        name = "io.k8s.apimachinery.pkg.api.resource.Quantity"
        self.assertEqual(self.schema("#/definitions/", name)["type"], "string")
        self.assertIn({"type": "number"}, self.schema("#/components/schemas/", name)["oneOf"])

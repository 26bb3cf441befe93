"""Tests for L{kubetwist.schema.openapi}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.schema.release import definitions


class OpenAPISchemaTests(SynchronousTestCase):
    """Definitions as published."""

    def schema(self, prefix: str, name: str) -> Any:
        """One schema."""
        return definitions().openapi_schemas(prefix)[name]

    def test_what_the_data_added_is_undone(self) -> None:
        """No schema allows null, or only one kind or apiVersion."""
        pod = self.schema("#/definitions/", "io.k8s.api.core.v1.Pod")
        self.assertEqual(pod["type"], "object")
        self.assertEqual(pod["properties"]["kind"]["type"], "string")
        self.assertNotIn("enum", pod["properties"]["kind"])
        container = self.schema("#/definitions/", "io.k8s.api.core.v1.Container")
        self.assertEqual(container["properties"]["args"]["items"], {"type": "string"})

    def test_version_2_references(self) -> None:
        """OpenAPI 2 refers in place and tells no defaults."""
        pod = self.schema("#/definitions/", "io.k8s.api.core.v1.Pod")
        spec = pod["properties"]["spec"]
        self.assertEqual(spec["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec")
        self.assertNotIn("default", spec)

    def test_version_3_references(self) -> None:
        """OpenAPI 3 puts references that have a description or default beside them into allOf."""
        prefix = "#/components/schemas/"
        spec = self.schema(prefix, "io.k8s.api.core.v1.Pod")["properties"]["spec"]
        self.assertEqual(spec["allOf"], [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}])
        self.assertEqual(spec["default"], {})
        containers = self.schema(prefix, "io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
        self.assertEqual(containers["items"], {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"})

    def test_version_3_defaults(self) -> None:
        """OpenAPI 3 has a default where Go always writes the value, not where it writes none or null."""
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

    def test_scalars(self) -> None:
        """Types that are one JSON value have a description, although the data lacks it."""
        for name in (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        ):
            for prefix in ("#/definitions/", "#/components/schemas/"):
                description = self.schema(prefix, name)["description"]
                self.assertTrue(description.startswith(name.rpartition(".")[2]))
                self.assertNotIn("io.k8s", description)

    def test_unions(self) -> None:
        """A quantity is a string to OpenAPI 2, and a string or number to OpenAPI 3."""
        name = "io.k8s.apimachinery.pkg.api.resource.Quantity"
        self.assertEqual(self.schema("#/definitions/", name)["type"], "string")
        self.assertIn({"type": "number"}, self.schema("#/components/schemas/", name)["oneOf"])

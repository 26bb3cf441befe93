"""Tests for L{kubetwist.schema.leaves}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.schema.typecase import container, decoded


class ValueTests(SynchronousTestCase):
    """Tests for the form of decoded values."""

    def test_quantities(self) -> None:
        """Quantities are canonical, from strings and from numbers."""
        given_, expected = (
            {"a": 0.5, "b": "1000m", "c": 2, "d": "1024Mi"},
            {"a": "500m", "b": "1", "c": "2", "d": "1Gi"},
        )
        self.assertEqual(container(resources={"requests": given_})["resources"]["requests"], expected)

    def test_times(self) -> None:
        """A Time has a resolution of seconds, a MicroTime of microseconds; both are in UTC."""
        metadata = decoded({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05.9+02:00"}})["metadata"]
        self.assertEqual(metadata, {"deletionTimestamp": "2026-01-02T01:04:05Z"})
        lease = decoded({"spec": {"renewTime": "2026-01-02T03:04:05.123456+01:00"}}, "Lease", "coordination.k8s.io/v1")
        self.assertEqual(lease["spec"], {"renewTime": "2026-01-02T02:04:05.123456Z"})

    def test_bytes(self) -> None:
        """Bytes are base64, decoded as leniently as in Go, or from a list of numbers."""
        for given_, expected in [
            ("YQ==", "YQ=="),
            ("YW\nI=", "YWI="),
            ("YR==", "YQ=="),
            ("", ""),
            ([97, None], "YQA="),
        ]:
            self.assertEqual(decoded({"data": {"k": given_}}, "Secret")["data"]["k"], expected)

    def test_int_or_string(self) -> None:
        """An IntOrString is a number or a string."""
        for port in ("http", 80):
            self.assertEqual(
                container(livenessProbe={"tcpSocket": {"port": port}})["livenessProbe"]["tcpSocket"]["port"], port
            )

    def test_any_json(self) -> None:
        """A field for arbitrary JSON keeps nulls and empty values."""
        data = {"a": None, "b": [], "c": {"d": ""}}
        revision = decoded({"data": data}, "ControllerRevision", "apps/v1")
        self.assertEqual(revision["data"], data)
        self.assertIsNot(revision["data"]["c"], data["c"])

    def test_schemas_of_custom_resources(self) -> None:
        """A JSON schema may contain a schema, a list of schemas or a boolean in the same field."""
        schema = {
            "properties": {"a": {"items": {"type": "string"}, "default": [None]}},
            "additionalProperties": False,
            "items": [{"type": "integer"}],
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        crd = decoded({"spec": {"versions": [version]}}, "CustomResourceDefinition", "apiextensions.k8s.io/v1")
        self.assertEqual(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema)

    def test_whole_numbers(self) -> None:
        """A whole double is encoded as an integer."""
        schema = {"minimum": 1.0, "maximum": 1.5}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        crd = decoded({"spec": {"versions": [version]}}, "CustomResourceDefinition", "apiextensions.k8s.io/v1")
        minimum = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["minimum"]
        self.assertEqual((minimum, type(minimum)), (1, int))

    def test_inexact_numbers(self) -> None:
        """An integer that a double cannot represent becomes the nearest one that it can."""
        for number, kept in ((9007199254740993, 9007199254740992), (-9007199254740993, -9007199254740992)):
            version = {"name": "v1", "schema": {"openAPIV3Schema": {"maximum": number}}}
            crd = decoded({"spec": {"versions": [version]}}, "CustomResourceDefinition", "apiextensions.k8s.io/v1")
            maximum = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"]
            self.assertEqual((maximum, type(maximum)), (kept, int))

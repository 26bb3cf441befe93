"""Tests for L{kubetwist.tracing.configuration}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.configurations import ConfigurationError
from kubetwist.tracing.configuration import TracingConfiguration, load_tracing


def file(version: str = "v1", **fields: Any) -> bytes:
    """Return the content of a configuration file."""
    about = {"apiVersion": f"apiserver.config.k8s.io/{version}", "kind": "TracingConfiguration"}
    return orjson.dumps({**about, **fields})


class LoadTests(SynchronousTestCase):
    """Tests for L{load_tracing}."""

    def problem(self, content: bytes) -> str:
        """Return the error message for a content."""
        return str(self.assertRaises(ConfigurationError, load_tracing, content))

    def test_all(self) -> None:
        """Every version has an endpoint and a sampling rate."""
        for version in ("v1", "v1beta1", "v1alpha1"):
            content = file(version, endpoint="collector.monitoring:4317", samplingRatePerMillion=100)
            self.assertEqual(load_tracing(content), TracingConfiguration("collector.monitoring:4317", 100))

    def test_yaml(self) -> None:
        """The file may be YAML."""
        content = b"apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: 7\n"
        self.assertEqual(load_tracing(content), TracingConfiguration("", 7))

    def test_nothing(self) -> None:
        """Without a rate, only requests with a trusted sampling decision are sampled."""
        self.assertEqual(load_tracing(file()), TracingConfiguration("", 0))

    def test_endpoints(self) -> None:
        """An endpoint is a name, an address, or has one of the gRPC schemes that are allowed."""
        for endpoint in ("[::1]:4317", "dns://8.8.8.8/c:4317", "unix:///run/c.sock", "unix-abstract://c", "localhost"):
            self.assertEqual(load_tracing(file(endpoint=endpoint)).endpoint, endpoint)

    def test_bad_values(self) -> None:
        """Invalid values are rejected with kube-apiserver's messages."""
        start = "failed to validate tracing configuration: "
        self.assertEqual(
            self.problem(file(samplingRatePerMillion=-1)),
            f"{start}samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        )
        schemes = "Options are none, dns, unix, or unix-abstract.  See"
        naming = "https://github.com/grpc/grpc/blob/master/doc/naming.md"
        self.assertEqual(
            self.problem(file(samplingRatePerMillion=1_000_001, endpoint="http://c:4317")),
            f"{start}[samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or"
            ' equal to one million, endpoint: Invalid value: "http://c:4317": unsupported scheme: http.'
            f"  {schemes} {naming}]",
        )
        self.assertEqual(
            self.problem(file(endpoint="c:port")),
            f'{start}endpoint: Invalid value: "dns://c:port": parse "dns://c:port": invalid port ":port" after host',
        )

    def test_bad_files(self) -> None:
        """A malformed file is rejected with kube-apiserver's message."""
        start = "failed to read tracing config: unable to decode tracing configuration data: "
        scheme = "k8s.io/apiserver/pkg/server/options/tracing.go:49"
        for content, why in (
            (b"", "Object 'Kind' is missing in ''"),
            (file(sampling=1), 'strict decoding error: unknown field "sampling"'),
            (
                file("v2"),
                'no kind "TracingConfiguration" is registered for version "apiserver.config.k8s.io/v2" in scheme'
                f' "{scheme}"',
            ),
            (
                file(samplingRatePerMillion="many"),
                "json: cannot unmarshal string into Go struct field TracingConfiguration.samplingRatePerMillion of type"
                " int32",
            ),
        ):
            self.assertEqual(self.problem(content), start + why)

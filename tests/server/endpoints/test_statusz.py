"""Tests of L{kubetwist.server.endpoints.statusz}."""

from __future__ import annotations

from kubetwist.api.featuregates import FeatureGates
from kubetwist.server.endpoints.statusz import status_fields, status_text

from .endpointcase import EndpointCase

AS_STATUS = "application/json;g=config.k8s.io;v={};as=Statusz"


class StatuszTests(EndpointCase):
    """C{/statusz} over HTTP."""

    async def test_status(self) -> None:
        """C{/statusz} is available as text and as an object."""
        await self.serve()
        _, text = await self.ask("GET", "/statusz", accept="application/json, */*")
        self.assertRegex(
            text,
            r"\A\napiserver statusz\nWarning: .*\n\nStarted: .* UTC \d{4}\nUp: \d+ hr \d\d min \d\d sec\n"
            r"Go version: .*\nBinary version: 1\.36\.2\nEmulation version: 1\.36\nPaths: /flagz /healthz .*\n\Z",
        )
        for version in ("v1beta1", "v1alpha1"):
            code, status = await self.ask("GET", "/statusz", accept=AS_STATUS.format(version))
            self.assertEqual((code, status["apiVersion"]), (200, f"config.k8s.io/{version}"))
            self.assertEqual((status["binaryVersion"], status["metadata"]), ("1.36.2", {"name": "apiserver"}))
            self.assertIn("/metrics", status["paths"])
        for accept in ("application/json", AS_STATUS.format("v1"), "image/png"):
            code, status = await self.ask("GET", "/statusz", accept=accept)
            self.assertEqual((code, status["reason"]), (406, "NotAcceptable"), accept)

    def test_paths(self) -> None:
        """The paths are the first segments of the served paths, without those of the API."""
        status = status_fields(FeatureGates(), ["/healthz/ping", "/healthz", "/api/v1", "/metrics"], 0.0, 90_061.5)
        self.assertEqual(
            (status["startTime"], status["uptimeSeconds"], status["paths"]),
            ("1970-01-01T00:00:00Z", 90_061, ["/healthz", "/metrics"]),
        )
        self.assertIn("\nUp: 25 hr 01 min 01 sec\n", status_text(status, 0.0))

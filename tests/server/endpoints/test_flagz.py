"""Tests of L{kubetwist.server.endpoints.flagz}."""

from __future__ import annotations

from kubetwist.server.endpoints.flagz import flags_text

from .endpointcase import EndpointCase


class FlagzTests(EndpointCase):
    """C{/flagz} over HTTP."""

    async def test_flags(self) -> None:
        """C{/flagz} contains all flags with their values, including defaults."""
        await self.serve("--event-ttl=90m", "--max-requests-inflight=7", "--vmodule=httplog=1")
        _, text = await self.ask("GET", "/flagz", accept="*/*")
        lines = text.splitlines()
        for line in (
            "event-ttl=1h30m0s",
            "max-requests-inflight=7",
            "profiling=true",
            "controllers=[]",
            "vmodule=httplog=1",
        ):
            self.assertIn(line, lines)
        accept = "application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz"
        _, text = await self.ask("GET", "/flagz", accept=accept)
        self.assertIn("  max-requests-inflight: '7'\n", text.replace('"', "'"))

    def test_lines(self) -> None:
        """A multi-line value is one line of the page."""
        self.assertTrue(flags_text({"a": "1\n2", "b": ""}).endswith("\na=1 2\nb=\n"))

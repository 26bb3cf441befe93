"""Tests of L{kubetwist.server.endpoints.configz}."""

from __future__ import annotations

from kubetwist.cli.flagtable import FLAGS

from .endpointcase import EndpointCase


class ConfigzTests(EndpointCase):
    """C{/configz} over HTTP."""

    async def test_configuration(self) -> None:
        """C{/configz} contains the flags with types; it is not listed, since kube-apiserver does not have it."""
        await self.serve("--event-ttl=90m", "--max-requests-inflight=7", "--vmodule=httplog=1", "--etcd-prefix=/a")
        code, answer = await self.ask("GET", "/configz")
        self.assertEqual((code, list(answer)), (200, ["apiserver"]))
        actual = answer["apiserver"]
        expected = {
            "event-ttl": "1h30m0s",
            "max-requests-inflight": 7,
            "profiling": True,
            "controllers": [],
            "vmodule": "httplog=1",
            "etcd-prefix": "/a",
            "feature-gates": {},
        }
        self.assertEqual({name: actual[name] for name in expected}, expected)
        self.assertEqual(set(actual), {flag.name for flag in FLAGS})
        self.assertNotIn("/configz", (await self.ask("GET", "/"))[1]["paths"])

"""Tests of L{kubetwist.server.apiserver}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.resources.apis import install_apis
from kubetwist.server.chain import create_server_chain
from kubetwist.server.errors import StartError
from tests.server.servercase import ServerCase


class PrepareRunTests(ServerCase):
    """L{kubetwist.server.apiserver.APIServer.prepare_run}."""

    async def test_steps(self) -> None:
        """A chain has no health checks and documents; preparing adds them; running opens, listens, and stops."""
        self.service = self.make("--authorization-mode=AlwaysAllow")
        config = await self.service.complete()
        server = create_server_chain(config, install_apis)
        common = {"/readyz", "/version", "/metrics", "/openapi/v2"}
        self.assertFalse(common & set(server.front.mux.listed_paths()))
        self.assertIn("/apis/apiregistration.k8s.io/v1", server.front.mux.listed_paths())
        prepared = server.prepare_run()
        self.assertEqual(common - set(server.front.mux.listed_paths()), set())
        self.assertEqual(prepared.url, "")
        hooks = server.front.start_hooks()
        self.assertEqual([hook.name for hook in hooks if hook.problem is None], [])
        ready: Deferred[None] = Deferred()
        running = Deferred.fromCoroutine(prepared.run(lambda: ready.callback(None)))
        self.addCleanup(lambda: running)
        self.addCleanup(prepared.stop)
        await ready
        self.assertEqual([hook.name for hook in hooks if hook.problem is not None], [])
        self.service.server = prepared
        self.assertEqual((await self.ask("/readyz", self.admin)).body, b"ok")
        prepared.stop()
        prepared.stop()
        await running
        self.assertTrue(prepared.stopping)

    async def test_failing(self) -> None:
        """A server that cannot be prepared releases its data directory, and runs its destroy functions."""
        install = self.install

        def failing(config: Any, aggregator: Any, kube: Any, extensions: Any) -> Any:
            install(config, aggregator, kube, extensions)

            class APIs:
                aggregation = flow = None

                def install_documents(self) -> None:
                    raise StartError("no documents")

            return APIs()

        self.install = failing  # type: ignore[method-assign]
        self.assertEqual(await self.refused(), "no documents")
        self.assertEqual(self.calls, ["end"])
        self.install = install  # type: ignore[method-assign]
        await self.start()

    async def test_stopped_early(self) -> None:
        """A service that is stopped while it starts becomes ready and stops then."""
        self.service = service = self.make()
        service.startService()
        stopped = service.stopService()
        await service.ready
        await stopped
        await service.stopService()
        self.assertEqual(self.calls, ["cache", "hook", "pre-shutdown", "end"])

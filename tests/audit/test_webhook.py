"""Tests for L{kubetwist.audit.webhook}."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.audit.buffered import (
    BatchConfig,
    BlockingBackend,
    BufferedBackend,
)
from kubetwist.audit.errors import (
    Counts,
    PluginErrors,
)
from kubetwist.audit.truncation import TruncateConfig
from kubetwist.audit.webhook import WebhookOutput
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig
from kubetwist.testing.webhooks import NEVER, Call, Reply, WebhookServer
from tests.audit.events import event

reactor: Any = the_reactor


class WebhookTests(TestCase):
    """Tests for L{WebhookOutput}."""

    async def make(self, answer: Any, **other_attributes: Any) -> WebhookOutput:
        """Create an output with a scripted server."""
        self.server = server = WebhookServer(reactor, answer)
        await server.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(server.stop()))
        client = WebhookClient(reactor, RESTConfig(url=server.url + "/audit", ca=server.ca))
        self.counts = Counts()
        lost, large = PluginErrors("webhook", self.counts, reactor), PluginErrors("truncate", self.counts, reactor)
        made = WebhookOutput(client, reactor, deferToThread, lost, large, initial_backoff=0.0, **other_attributes)
        self.addCleanup(lambda: Deferred.fromCoroutine(made.stop()))
        return made

    async def test_posted(self) -> None:
        """Events are posted as an EventList."""
        output = await self.make(lambda call: {})
        for number in (1, 50):
            self.assertTrue(await output.send([event()] * number))
            call = self.server.calls[-1]
            self.assertEqual((call.method, call.path, call.query), ("POST", "/audit", {"timeout": "30s"}))
            self.assertEqual((call.json()["kind"], len(call.json()["items"])), ("EventList", number))

    async def test_retry(self) -> None:
        """Calls are retried after any error for a limited number of times; then the events are lost and counted."""

        def answer(call: Call) -> Any:
            return Reply(403) if len(self.server.calls) < fails else {}

        fails = 5
        output = await self.make(answer)
        self.assertTrue(await output.send([event()]))
        self.assertEqual((len(self.server.calls), self.counts.errors), (5, {}))
        fails = 100
        self.assertFalse(await output.send([event()] * 2))
        self.assertEqual((len(self.server.calls), self.counts.errors), (10, {"webhook": 2}))

    async def test_split_batches(self) -> None:
        """Events that exceed the maximum batch size are sent in several requests."""
        output = await self.make(lambda call: {}, limits=TruncateConfig(10_000, 1000))
        await output.send([event()] * 5)
        self.assertEqual([len(call.json()["items"]) for call in self.server.calls], [2, 2, 1])

    async def test_unresponsive(self) -> None:
        """A server that does not respond does not block batched requests; events that exceed the buffer are dropped."""
        output = await self.make(lambda call: NEVER)
        batching = BufferedBackend(
            output,
            BatchConfig(buffer_size=5, max_batch_size=2),
            reactor,
            PluginErrors("buffered", self.counts, reactor),
        )
        for _ in range(9):
            self.assertIsNone(batching.process(event()))
        self.assertEqual(self.counts.errors, {"buffered": 4})
        await output.stop()
        await batching.stop()

    async def test_blocking(self) -> None:
        """A blocking-strict backend waits for the response."""
        output = await self.make(lambda call: {})
        self.assertTrue(await BlockingBackend(output, True).process(event()))
        self.assertEqual(len(self.server.calls), 1)

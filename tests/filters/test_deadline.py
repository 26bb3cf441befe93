"""Tests of L{kubetwist.filters.deadline}."""

from __future__ import annotations

import json

from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from tests.filters.answers import PODS
from tests.http.harness import Client, filtered_site


class DeadlineTests(SynchronousTestCase):
    """C{with_deadline}."""

    def setUp(self) -> None:
        """Create a handler that does not answer, and a clock."""
        self.waiting: list[KubeRequest] = []
        self.clock = Clock()
        self.client = Client(filtered_site(self.waiting.append, clock=self.clock))

    def ask(self, path: str) -> None:
        """Send a request."""
        self.client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def test_too_slow(self) -> None:
        """A request that exceeds the timeout is answered with 504; a later response is dropped."""
        self.ask(PODS)
        self.clock.advance(59)
        self.assertEqual(self.client.answers(), [])
        self.clock.advance(1)
        (answer,) = self.client.answers()
        status = json.loads(answer.body)
        self.assertEqual((answer.code, status["reason"]), (504, "Timeout"))
        self.assertEqual(status["message"], "Timeout: request did not complete within the allotted timeout")
        self.waiting[0].respond(200, b"late", b"text/plain")
        self.assertEqual(self.client.answers(), [])

    def test_several(self) -> None:
        """Requests expire up to a second after their deadlines; an error of one does not stop the rest."""
        later = [Client(self.client.site) for _ in range(2)]
        self.ask(PODS)
        self.clock.advance(0.5)
        for one in later:
            one.send(f"GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.clock.pump([0.5] * 119)
        self.assertEqual([len(client.answers()) for client in (self.client, *later)], [1, 0, 0])
        self.waiting[1].on_deadline = lambda request: 1 // 0
        self.clock.pump([0.5] * 2)
        self.assertEqual(sum(len(one.answers()) for one in later), 1)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.clock.pump([1] * 3)
        self.assertEqual(sum(len(one.answers()) for one in later), 0)

    def test_in_time(self) -> None:
        """A request that is answered in time leaves no timer."""
        self.ask(PODS)
        self.waiting[0].respond(200, b"", b"text/plain")
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)  # the site's own

    def test_disconnected(self) -> None:
        """A request whose client disconnects leaves no timer."""
        self.ask(PODS)
        self.client.channel.connectionLost(RuntimeError("gone"))
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)

    def test_switched(self) -> None:
        """A switched connection has no timeout."""
        self.ask(f"{PODS}/web/console")
        self.assertTrue(self.waiting[0].switch_protocols([(b"Upgrade", b"websocket")], Protocol()))
        self.clock.advance(61)
        self.assertFalse(self.client.transport.disconnecting or self.client.transport.disconnected)

    def test_shorter(self) -> None:
        """A client can shorten the timeout, but not extend it."""
        self.ask(f"{PODS}?timeout=5s")
        self.assertEqual(self.waiting[0].deadline, 5)
        self.clock.advance(5)
        self.assertEqual(self.client.answers()[0].code, 504)
        self.ask(f"{PODS}?timeout=5m")
        self.assertEqual(self.waiting[1].deadline, 65)

    def test_zero(self) -> None:
        """A timeout of zero selects the default."""
        self.ask(f"{PODS}?timeout=0s")
        self.assertEqual(self.waiting[0].deadline, 60)

    def test_malformed(self) -> None:
        """A malformed timeout is answered with 400 and Go's text."""
        answer = self.client.request("GET", f"{PODS}?timeout=soon")
        self.assertEqual(answer.code, 400)
        self.assertEqual(
            json.loads(answer.body)["message"],
            'invalid timeout specified in the request URL - time: invalid duration "soon"',
        )

    def test_watch(self) -> None:
        """A watch has no deadline."""
        self.ask(f"{PODS}?watch=1&timeout=soon")
        self.clock.advance(10000)
        self.assertEqual(self.client.answers(), [])
        self.assertIsNone(self.waiting[0].deadline)

    def test_incomplete_response(self) -> None:
        """A response that is incomplete at the deadline is aborted."""
        self.ask(PODS)
        self.waiting[0].write(b"half")
        self.clock.advance(60)
        self.assertTrue(self.client.transport.disconnecting)

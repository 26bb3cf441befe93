"""Tests for the places that events go to: a log written by a thread, a webhook on a real connection."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.audit.batching import Batching, BatchSettings, Blocking
from kubetwist.audit.event import Payload
from kubetwist.audit.failures import Counts, Failures
from kubetwist.audit.log import LogOutput
from kubetwist.audit.logfile import LogFile, PartlyWritten, Rotation, StandardOutput
from kubetwist.audit.truncation import Limits
from kubetwist.audit.webhook import WebhookOutput
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import CallSettings
from kubetwist.testing.webhooks import NEVER, Call, Reply, WebhookServer

from .events import event

reactor: Any = the_reactor


class LogTests(TestCase):
    """Tests for L{LogOutput}."""

    def make(self, file: Any = None, **others: Any) -> LogOutput:
        """A log, written until the test ends."""
        self.path = Path(self.mktemp()) / "audit.log"
        self.counts = Counts()
        lost, large = Failures("log", self.counts, reactor), Failures("truncate", self.counts, reactor)
        made = LogOutput(file or LogFile(self.path, Rotation()), reactor, lost, large, **others)
        if file is None:
            self.path.parent.mkdir()
        made.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(made.stop()))
        return made

    async def test_order(self) -> None:
        """Events are a line each, in their order, also when many come at once."""
        log = self.make()
        done = [log.send([event(stage=f"{number}.{part}") for part in range(3)]) for number in range(200)]
        self.assertEqual(await gatherResults(done), [True] * 200)
        stages = [json.loads(line)["stage"] for line in self.path.read_bytes().splitlines()]
        self.assertEqual(stages, [f"{number}.{part}" for number in range(200) for part in range(3)])

    async def test_legacy(self) -> None:
        """The legacy format is written where it is wanted."""
        await self.make(legacy=True).send([event()])
        self.assertIn(b' AUDIT: id="id" ', self.path.read_bytes())

    async def test_unhurried(self) -> None:
        """Events that nobody waits for are written after a moment, or at once with one that somebody does."""
        log = self.make()
        self.assertTrue(await log.send([event()], urgent=False))
        early, late = log.send([event()], urgent=False), log.send([event()])
        self.assertEqual(await gatherResults([early, late]), [True, True])
        self.assertEqual(self.path.read_bytes().count(b"\n"), 3)

    async def test_flush(self) -> None:
        """What was sent before is written when a flush is through, and the file is closed at the end."""
        log = self.make()
        log.send([event()])
        await log.flush()
        self.assertEqual(self.path.read_bytes().count(b"\n"), 1)
        await log.stop()
        await log.stop()

    async def test_full(self) -> None:
        """A full disk loses events and counts them; who waits is told; and it goes on when there is room."""

        class Full:
            """A file on a full disk."""

            full = True
            lines: list[bytes]

            def write(self, lines: Sequence[bytes]) -> None:
                """Write one line, and no more."""
                if self.full:
                    raise PartlyWritten(1, OSError(errno.ENOSPC, "No space left on device"))

            def close(self) -> None:
                """Nothing to close."""

        disk = Full()
        log = self.make(disk)
        results = await gatherResults([log.send([event()]), log.send([event(), event()]), log.send([])])
        self.assertEqual((results, self.counts.errors), ([True, False, True], {"log": 2}))
        disk.full = False
        self.assertTrue(await log.send([event()]))

    async def test_one_too_long(self) -> None:
        """A line that fits into no file is lost alone."""
        log = self.make(LogFile(Path(self.mktemp()), Rotation(size=2000)))
        large = event(annotations={"a": "x" * 3000})
        results = await gatherResults([log.send([event()]), log.send([large]), log.send([event()])])
        self.assertEqual((results, self.counts.errors), ([True, False, True], {"log": 1}))

    async def test_truncated(self) -> None:
        """Large events are written without their objects, and lost where that does not help."""
        log = self.make(limits=Limits(1000, 10000))
        await log.send([event(level=2, request=Payload(b'{"a":"%b"}' % (b"x" * 2000)))])
        await log.send([event(annotations={"a": "x" * 2000})])
        (line,) = self.path.read_bytes().splitlines()
        self.assertEqual(json.loads(line)["annotations"], {"audit.k8s.io/truncated": "true"})
        self.assertEqual(self.counts.errors, {"truncate": 1})

    async def test_standard_output(self) -> None:
        """The standard output takes lines, too."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        output = StandardOutput()
        output._descriptor = os.dup(write)
        await self.make(output).send([event()])
        self.assertEqual(json.loads(os.read(read, 65536))["auditID"], "id")


class WebhookTests(TestCase):
    """Tests for L{WebhookOutput}."""

    async def make(self, answer: Any, **others: Any) -> WebhookOutput:
        """One that calls a server which answers so."""
        self.server = server = WebhookServer(reactor, answer)
        await server.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(server.stop()))
        client = WebhookClient(reactor, CallSettings(url=server.url + "/audit", ca=server.ca))
        self.counts = Counts()
        lost, large = Failures("webhook", self.counts, reactor), Failures("truncate", self.counts, reactor)
        made = WebhookOutput(client, reactor, deferToThread, lost, large, initial_backoff=0.0, **others)
        self.addCleanup(lambda: Deferred.fromCoroutine(made.stop()))
        return made

    async def test_posted(self) -> None:
        """Events come as a list, few as many."""
        output = await self.make(lambda call: {})
        for number in (1, 50):
            self.assertTrue(await output.send([event()] * number))
            call = self.server.calls[-1]
            self.assertEqual((call.method, call.path, call.query), ("POST", "/audit", {"timeout": "30s"}))
            self.assertEqual((call.json()["kind"], len(call.json()["items"])), ("EventList", number))

    async def test_again(self) -> None:
        """Whatever goes wrong is tried again, but not for ever; then the events are lost and counted."""

        def answer(call: Call) -> Any:
            return Reply(403) if len(self.server.calls) < fails else {}

        fails = 5
        output = await self.make(answer)
        self.assertTrue(await output.send([event()]))
        self.assertEqual((len(self.server.calls), self.counts.errors), (5, {}))
        fails = 100
        self.assertFalse(await output.send([event()] * 2))
        self.assertEqual((len(self.server.calls), self.counts.errors), (10, {"webhook": 2}))

    async def test_parts(self) -> None:
        """What is too large for one body is sent in several."""
        output = await self.make(lambda call: {}, limits=Limits(10_000, 1000))
        await output.send([event()] * 5)
        self.assertEqual([len(call.json()["items"]) for call in self.server.calls], [2, 2, 1])

    async def test_nobody_waits(self) -> None:
        """A server that does not answer keeps nobody waiting who collects, and loses what there is no room for."""
        output = await self.make(lambda call: NEVER)
        batching = Batching(
            output, BatchSettings(buffer=5, most=2), reactor, Failures("buffered", self.counts, reactor)
        )
        for _ in range(9):
            self.assertIsNone(batching.process(event()))
        self.assertEqual(self.counts.errors, {"buffered": 4})
        await output.stop()
        await batching.stop()

    async def test_blocking(self) -> None:
        """One that insists waits for the answer."""
        output = await self.make(lambda call: {})
        self.assertTrue(await Blocking(output, True).process(event()))
        self.assertEqual(len(self.server.calls), 1)

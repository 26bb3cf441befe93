"""Tests for L{kubetwist.audit.log}."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.trial.unittest import TestCase

from kubetwist.audit.errors import (
    Counts,
    PluginErrors,
)
from kubetwist.audit.event import Payload
from kubetwist.audit.log import LogOutput
from kubetwist.audit.logfile import LogFile, PartlyWritten, Rotation, StandardOutput
from kubetwist.audit.truncation import TruncateConfig
from tests.audit.events import event

reactor: Any = the_reactor


class LogTests(TestCase):
    """Tests for L{LogOutput}."""

    def make(self, file: Any = None, **remaining: Any) -> LogOutput:
        """Create a log that is stopped at the end of the test."""
        self.path = Path(self.mktemp()) / "audit.log"
        self.counts = Counts()
        lost, large = PluginErrors("log", self.counts, reactor), PluginErrors("truncate", self.counts, reactor)
        made = LogOutput(file or LogFile(self.path, Rotation()), reactor, lost, large, **remaining)
        if file is None:
            self.path.parent.mkdir()
        made.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(made.stop()))
        return made

    async def test_order(self) -> None:
        """Events are written one per line in their order, also concurrent ones."""
        log = self.make()
        done = [log.send([event(stage=f"{number}.{part}") for part in range(3)]) for number in range(200)]
        self.assertEqual(await gatherResults(done), [True] * 200)
        stages = [json.loads(line)["stage"] for line in self.path.read_bytes().splitlines()]
        self.assertEqual(stages, [f"{number}.{part}" for number in range(200) for part in range(3)])

    async def test_legacy(self) -> None:
        """The legacy format is written if it is configured."""
        await self.make(legacy=True).send([event()])
        self.assertIn(b' AUDIT: id="id" ', self.path.read_bytes())

    async def test_not_urgent(self) -> None:
        """Events that are not urgent are written after a delay, or immediately with an urgent one."""
        log = self.make()
        self.assertTrue(await log.send([event()], urgent=False))
        early, late = log.send([event()], urgent=False), log.send([event()])
        self.assertEqual(await gatherResults([early, late]), [True, True])
        self.assertEqual(self.path.read_bytes().count(b"\n"), 3)

    async def test_flush(self) -> None:
        """After a flush all earlier events are written, and stop() closes the file."""
        log = self.make()
        log.send([event()])
        await log.flush()
        self.assertEqual(self.path.read_bytes().count(b"\n"), 1)
        await log.stop()
        await log.stop()

    async def test_full(self) -> None:
        """
        A full disk loses events and counts them; waiting requests get the result; writing continues when there is
        space.
        """

        class Full:
            """A file on a full disk."""

            full = True
            lines: list[bytes]

            def write(self, lines: Sequence[bytes]) -> None:
                """Write only the first line."""
                if self.full:
                    raise PartlyWritten(1, OSError(errno.ENOSPC, "No space left on device"))

            def close(self) -> None:
                """Do nothing."""

        disk = Full()
        log = self.make(disk)
        results = await gatherResults([log.send([event()]), log.send([event(), event()]), log.send([])])
        self.assertEqual((results, self.counts.errors), ([True, False, True], {"log": 2}))
        disk.full = False
        self.assertTrue(await log.send([event()]))

    async def test_too_long_line(self) -> None:
        """A line that exceeds the maximum file size is the only one that is lost."""
        log = self.make(LogFile(Path(self.mktemp()), Rotation(size=2000)))
        large = event(annotations={"a": "x" * 3000})
        results = await gatherResults([log.send([event()]), log.send([large]), log.send([event()])])
        self.assertEqual((results, self.counts.errors), ([True, False, True], {"log": 1}))

    async def test_truncated(self) -> None:
        """Large events are written without their objects, or are dropped if they are still too large."""
        log = self.make(limits=TruncateConfig(1000, 10000))
        await log.send([event(level=2, request=Payload(b'{"a":"%b"}' % (b"x" * 2000)))])
        await log.send([event(annotations={"a": "x" * 2000})])
        (line,) = self.path.read_bytes().splitlines()
        self.assertEqual(json.loads(line)["annotations"], {"audit.k8s.io/truncated": "true"})
        self.assertEqual(self.counts.errors, {"truncate": 1})

    async def test_standard_output(self) -> None:
        """Events can be written to standard output."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        output = StandardOutput()
        output._descriptor = os.dup(write)
        await self.make(output).send([event()])
        self.assertEqual(json.loads(os.read(read, 65536))["auditID"], "id")

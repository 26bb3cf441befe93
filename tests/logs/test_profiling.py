"""Tests for L{kubetwist.logs.profiling}."""

from __future__ import annotations

import json
import threading

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.logs.profiling import MAX_STACK_DEPTH, Sampler, heap_text, stack_of, stacks_text


class ProfilingTests(SynchronousTestCase):
    """Profiles of a process."""

    def test_sampled(self) -> None:
        """A profile contains each stack once with its duration, and each frame once."""
        sampler = Sampler(threading.get_ident(), 1)

        def busy() -> None:
            sampler.sample(0.25)

        for _ in range(2):
            busy()
        sampler.sample(0.5)
        sampler.stop()
        document = json.loads(sampler.run())
        (profile,) = document["profiles"]
        self.assertEqual(profile["weights"], [0.5, 0.5])
        names = [[document["shared"]["frames"][one]["name"] for one in stack] for stack in profile["samples"]]
        self.assertIn("busy", names[0][-2])
        self.assertEqual(names[0][:-2], names[1][:-1])
        self.assertEqual(profile["endValue"], 1.0)

    def test_terminated_thread(self) -> None:
        """The profile of a terminated thread is empty."""
        sampler = Sampler(-1, 1)
        sampler.sample(1)
        sampler.stop()
        self.assertEqual(json.loads(sampler.run())["profiles"][0]["samples"], [])

    def test_deep(self) -> None:
        """The profile of a deep stack contains the innermost frames."""
        found = []

        def deeper(more: int) -> None:
            if more:
                deeper(more - 1)
            else:
                import sys

                found.append(stack_of(sys._getframe()))

        deeper(2 * MAX_STACK_DEPTH)
        self.assertEqual(len(found[0]), MAX_STACK_DEPTH)
        self.assertIn("deeper", found[0][-1][0])

    def test_heap(self) -> None:
        """Objects are counted by type."""

        class Counted:
            """A type to count."""

        kept = [Counted() for _ in range(20_000)]
        (line,) = [line for line in heap_text().splitlines() if line.endswith("test_heap.<locals>.Counted")]
        self.assertEqual(int(line.split()[0]), len(kept))

    def test_stacks(self) -> None:
        """All threads and the delayed calls of the reactor are listed, without arguments, which may be secret."""
        clock = Clock()
        clock.callLater(5, self.test_stacks, "hunter2")
        text = stacks_text(clock.getDelayedCalls(), clock.seconds())
        self.assertIn("ProfilingTests.test_stacks\n", text)
        self.assertIn("    in 5.000s tests.logs.test_profiling.ProfilingTests.test_stacks\n", text)
        self.assertNotIn("hunter2", text)

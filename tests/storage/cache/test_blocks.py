"""Tests for L{kubetwist.storage.cache.blocks}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.blocks import UNUSED_TIMEOUT, Block, FormBudget, FormCache


class FormCacheTests(SynchronousTestCase):
    """L{FormCache} and L{Block}."""

    def setUp(self) -> None:
        """Create a cache with room for three forms of ten bytes."""
        self.clock = Clock()
        self.budget = FormBudget(30)
        self.forms = FormCache(self.clock, self.budget)

    def block(self, key: str = "form") -> Block:
        """Return a block with a form of ten bytes, unless there is no room."""
        block = Block([], self.forms)
        self.assertFalse(block.admits(key, 10))
        if block.admits(key, 10):
            block.keep(key, "value", 10)
        return block

    def test_second_use(self) -> None:
        """A form is kept when it is used for the second time."""
        block = Block([], self.forms)
        self.assertIsNone(block.get("form"))
        self.assertFalse(block.admits("form", 10))
        self.assertTrue(block.admits("form", 10))
        self.assertFalse(block.admits("other", 10))
        block.keep("form", "value", 10)
        self.assertEqual((block.get("form"), block.get("other")), ("value", None))

    def test_change(self) -> None:
        """A change of a record drops all forms of its block."""
        block = self.block()
        self.block()
        block.drop()
        self.assertIsNone(block.get("form"))
        self.assertEqual((len(self.forms), self.budget.used), (1, 10))

    def test_limit(self) -> None:
        """Forms in use are not replaced by new ones."""
        blocks = [self.block() for _ in range(4)]
        self.assertEqual([block.get("form") for block in blocks], ["value", "value", "value", None])
        self.assertEqual(self.budget.used, 30)

    def test_room(self) -> None:
        """New forms replace those that no list has used recently."""
        first, second = self.block(), self.block()
        self.clock.advance(UNUSED_TIMEOUT)
        self.assertEqual(second.get("form"), "value")
        third, fourth = self.block(), self.block()
        self.assertEqual(
            [block.get("form") for block in (first, second, third, fourth)], [None, "value", "value", "value"]
        )

    def test_shared_limit(self) -> None:
        """Several resources share a limit."""
        self.block()
        other = FormCache(self.clock, self.budget)
        self.assertEqual((other.has_room(20), other.has_room(21)), (True, False))

    def test_unused(self) -> None:
        """Forms are dropped when no list has used them for some time; then the timer stops."""
        used, unused = self.block(), self.block()
        for _ in range(3):
            self.clock.advance(UNUSED_TIMEOUT)
            self.assertEqual(used.get("form"), "value")
        self.assertIsNone(unused.get("form"))
        self.clock.pump([UNUSED_TIMEOUT] * 2)
        self.assertIsNone(used.get("form"))
        self.assertEqual((self.budget.used, self.clock.getDelayedCalls()), (0, []))
        self.assertEqual(self.block().get("form"), "value")

    def test_clear(self) -> None:
        """All forms can be dropped; later ones are kept."""
        block = self.block()
        self.forms.clear()
        self.assertEqual((block.get("form"), self.budget.used), (None, 0))
        self.assertEqual(self.block().get("form"), "value")

    def test_stop(self) -> None:
        """A stopped cache has no forms, keeps none and has no timer."""
        block = self.block()
        self.forms.stop()
        self.assertEqual((block.get("form"), self.block().get("form")), (None, None))
        self.assertEqual((self.budget.used, self.clock.getDelayedCalls()), (0, []))

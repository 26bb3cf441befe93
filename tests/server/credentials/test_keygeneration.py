"""Tests of L{kubetwist.server.credentials.keygeneration}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials import keygeneration as keymaking
from kubetwist.server.credentials.keygeneration import begin_key, take_key


class KeyTests(SynchronousTestCase):
    """Keys that are generated ahead."""

    def setUp(self) -> None:
        """Replace the generation of keys by a counter."""
        self.patch(keymaking, "_pending", [])
        self.generated: list[Any] = []

        def make() -> Any:
            self.generated.append(f"key {len(self.generated)}")
            return self.generated[-1]

        self.patch(keymaking, "_make", make)

    def test_ahead(self) -> None:
        """A key that was generated ahead is returned once."""
        begin_key()
        begin_key()
        self.assertEqual([take_key(), take_key()], ["key 0", "key 1"])
        self.assertEqual(len(self.generated), 2)

    def test_failure(self) -> None:
        """A key whose generation in the thread failed is generated again."""
        self.patch(keymaking.threading.Thread, "run", lambda thread: keymaking._pending[0].put(None))
        begin_key()
        self.assertEqual(take_key(), "key 0")

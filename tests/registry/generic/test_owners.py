"""Tests of L{kubetwist.registry.generic.owners}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.requestscope import RequestScope
from kubetwist.registry.generic.owners import drop_repeated_owners

ONE, OTHER = ({"kind": "X", "name": name, "uid": name} for name in "ab")


class OwnerTests(SynchronousTestCase):
    """Tests of L{drop_repeated_owners}."""

    def setUp(self) -> None:
        """Record warnings."""
        self.warned: list[str] = []
        self.scope = RequestScope(warn=self.warned.append)

    def test_once(self) -> None:
        """Owners that differ only in the order of their keys are duplicates, with a warning."""
        repeated = dict(reversed(ONE.items()))
        meta: dict[str, Any] = {"ownerReferences": [ONE, OTHER, repeated]}
        drop_repeated_owners(self.scope, meta)
        self.assertEqual(meta["ownerReferences"], [ONE, OTHER])
        [text] = self.warned
        self.assertTrue(text.endswith("duplicate UID(s) observed: a"), text)
        self.assertNotIn("after mutating admission", text)

    def test_patched(self) -> None:
        """The warning for a patched object contains the time of the check."""
        drop_repeated_owners(self.scope, {"ownerReferences": [ONE, dict(ONE)]}, patched=True)
        self.assertIn("contains duplicate entries after mutating admission happens;", self.warned[0])

    def test_no_duplicates(self) -> None:
        """Different owners are unchanged, without a warning."""
        owners = [ONE, OTHER, {**ONE, "controller": True}]
        meta = {"ownerReferences": owners}
        drop_repeated_owners(self.scope, meta)
        drop_repeated_owners(self.scope, {})
        self.assertIs(meta["ownerReferences"], owners)
        self.assertEqual(self.warned, [])

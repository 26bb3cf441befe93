"""Tests for L{kubetwist.authentication._lastused}."""

from __future__ import annotations

from kubetwist.authentication._lastused import (
    LABEL,
    LastUsed,
)
from tests.authentication.tokencase import NOW, TODAY, LegacyTestCase


class LastUsedTests(LegacyTestCase):
    """Tests for L{kubetwist.authentication._lastused}."""

    def test_last_used(self) -> None:
        """The label of the Secret has the day of the last use and is written once a day."""
        token = self.legacy()
        self.create_secret(token)
        revisions = []
        for self.now, day in ((NOW, TODAY), (NOW + 60, TODAY), (NOW + 86400, "2027-01-16"), (NOW, "2027-01-16")):
            self.assertIsNotNone(self.user(token))
            self.assertEqual(self.last_used(), day)
            revisions.append(self.stores.get_copy("", "secrets", "default", "s")["metadata"]["resourceVersion"])
        self.assertEqual([revisions.index(one) for one in revisions], [0, 0, 2, 2])

    def test_deleted_during_write(self) -> None:
        """A Secret that was deleted or replaced is not written."""
        known = LastUsed(self.stores, lambda: self.now)
        self.create_secret("x")
        secret = self.stores.get_copy("", "secrets", "default", "s")
        known.record_use({"metadata": {**secret["metadata"], "uid": "another"}})
        self.assertIsNone(
            (self.stores.get_copy("", "secrets", "default", "s")["metadata"].get("labels") or {}).get(LABEL)
        )
        self.remove("secrets", "s")
        known.record_use(secret)
        self.assertIsNone(self.stores.get_copy("", "secrets", "default", "s"))

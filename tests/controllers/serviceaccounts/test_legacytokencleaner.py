"""Tests for L{kubetwist.controllers.serviceaccounts.legacytokencleaner}."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kubetwist.controllers.serviceaccounts.legacytokencleaner import (
    INTERVAL,
    INVALID_SINCE,
    LAST_USED,
    LegacyTokenCleaner,
)
from kubetwist.controllers.serviceaccounts.legacytokentracking import (
    NAME,
    NAMESPACE,
)
from kubetwist.controllers.serviceaccounts.serviceaccounttokens import (
    ACCOUNT_NAME,
    TYPE,
)
from tests.controllers.harness import START, ControllerTestCase

DAY = 24 * 3600.0
YEAR = 365 * DAY


def day(seconds: float) -> str:
    """A day as labels have it, by its distance from the beginning."""
    return datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%d")


class LegacyTokenCleanerTests(ControllerTestCase):
    """Tokens that were made for every account."""

    resources = ("namespaces", "secrets", "serviceaccounts", "pods", "configmaps")

    def setUp(self) -> None:
        """Uses have been tracked for long."""
        super().setUp()
        self.make("configmaps", NAME, NAMESPACE, data={"since": day(-3 * YEAR)})
        self.make("serviceaccounts", "robot", "one", secrets=[{"name": "token"}])

    def token(self, name: str = "token") -> None:
        """A secret with a token."""
        meta = {"annotations": {ACCOUNT_NAME: "robot"}}
        self.make("secrets", name, "one", type=TYPE, metadata=meta)

    def label(self, **labels: Any) -> None:
        """Label it."""
        names = {"used": LAST_USED, "invalid": INVALID_SINCE}

        def change(obj: Any) -> None:
            obj["metadata"]["labels"] = {names[name]: value for name, value in labels.items()}

        self.change("secrets", "token", change, "one")

    def labels(self) -> Any:
        """What it bears; L{None} when it is gone."""
        found = self.find("secrets", "token", "one")
        return (found and found["metadata"].get("labels")) or (None if found is None else {})

    def test_life(self) -> None:
        """A token that is not used for a year is marked, and a year later deleted."""
        self.token()
        self.start(LegacyTokenCleaner)
        self.assertEqual(self.labels(), {})
        self.settle(YEAR + 30 * DAY)
        marked = self.labels()[INVALID_SINCE]
        self.assertGreaterEqual(marked, day(YEAR - DAY))
        self.settle(YEAR - 40 * DAY)
        self.assertEqual(self.labels(), {INVALID_SINCE: marked})
        self.settle(50 * DAY)
        self.assertIsNone(self.labels())

    def after_two_years(self) -> Any:
        """What becomes of it, looked at when it is older than a year."""
        self.clock.advance(2 * YEAR)
        self.start(LegacyTokenCleaner)
        return self.labels()

    def test_marked(self) -> None:
        """Without any use noted it is marked, and so is one whose mark is no day."""
        self.token()
        self.label(invalid="nonsense")
        self.assertEqual(self.after_two_years(), {INVALID_SINCE: day(2 * YEAR)})

    def test_used(self) -> None:
        """One that was used within a year stays as it is."""
        self.token()
        self.label(used=day(YEAR + 2 * DAY))
        self.assertNotIn(INVALID_SINCE, self.after_two_years())

    def test_used_long_ago(self) -> None:
        """One that was used longer ago is marked."""
        self.token()
        self.label(used=day(YEAR - 2 * DAY))
        self.assertIn(INVALID_SINCE, self.after_two_years())

    def test_unclear(self) -> None:
        """a Secret with an invalid date label is left alone."""
        self.token()
        self.label(used="yesterday")
        self.assertNotIn(INVALID_SINCE, self.after_two_years())

    def test_made_by_hand(self) -> None:
        """tokens that their account does not refer to are kept."""
        self.token("manual")
        self.clock.advance(2 * YEAR)
        self.start(LegacyTokenCleaner)
        self.assertNotIn("labels", self.find("secrets", "manual", "one")["metadata"])

    def test_mounted(self) -> None:
        """What a pod names stays; from the day on that the pod is gone, it does not."""
        self.token()
        volume = {"name": "v", "secret": {"secretName": "token"}}
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
        self.make("pods", "p", "one", spec=spec)
        self.assertEqual(self.after_two_years(), {})
        self.remove("pods", "p", "one", grace=0)
        self.settle(INTERVAL + 1)
        self.assertIn(INVALID_SINCE, self.labels())

    def test_tracking(self) -> None:
        """Where it is not known for a year who uses what, nothing is done."""
        self.token()
        for since in (day(YEAR + DAY), "nonsense"):
            self.change("configmaps", NAME, lambda obj, since=since: obj["data"].update(since=since), NAMESPACE)
            self.assertEqual(self.after_two_years(), {})
            self.clock.advance(-2 * YEAR)

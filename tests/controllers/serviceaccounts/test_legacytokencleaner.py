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
    """Return a date in the format of labels, by seconds since the start of the test."""
    return datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%d")


class LegacyTokenCleanerTests(ControllerTestCase):
    """Auto-generated tokens of service accounts."""

    resources = ("namespaces", "secrets", "serviceaccounts", "pods", "configmaps")

    def setUp(self) -> None:
        """Create the tracking config map with an old date."""
        super().setUp()
        self.make("configmaps", NAME, NAMESPACE, data={"since": day(-3 * YEAR)})
        self.make("serviceaccounts", "robot", "one", secrets=[{"name": "token"}])

    def token(self, name: str = "token") -> None:
        """Create a token Secret."""
        meta = {"annotations": {ACCOUNT_NAME: "robot"}}
        self.make("secrets", name, "one", type=TYPE, metadata=meta)

    def label(self, **labels: Any) -> None:
        """Set labels of the Secret."""
        names = {"used": LAST_USED, "invalid": INVALID_SINCE}

        def change(obj: Any) -> None:
            obj["metadata"]["labels"] = {names[name]: value for name, value in labels.items()}

        self.change("secrets", "token", change, "one")

    def labels(self) -> Any:
        """Return the labels of the Secret, or L{None} if it is deleted."""
        found = self.find("secrets", "token", "one")
        return (found and found["metadata"].get("labels")) or (None if found is None else {})

    def test_life(self) -> None:
        """A token that is unused for a year is marked as invalid, and deleted a year later."""
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
        """Return the labels of a token after two years."""
        self.clock.advance(2 * YEAR)
        self.start(LegacyTokenCleaner)
        return self.labels()

    def test_marked(self) -> None:
        """A token without a recorded use, or with an invalid mark, is marked."""
        self.token()
        self.label(invalid="nonsense")
        self.assertEqual(self.after_two_years(), {INVALID_SINCE: day(2 * YEAR)})

    def test_used(self) -> None:
        """A token that was used within a year is not changed."""
        self.token()
        self.label(used=day(YEAR + 2 * DAY))
        self.assertNotIn(INVALID_SINCE, self.after_two_years())

    def test_used_long_ago(self) -> None:
        """A token that was last used more than a year ago is marked."""
        self.token()
        self.label(used=day(YEAR - 2 * DAY))
        self.assertIn(INVALID_SINCE, self.after_two_years())

    def test_invalid_date(self) -> None:
        """A Secret with an invalid date label is not changed."""
        self.token()
        self.label(used="yesterday")
        self.assertNotIn(INVALID_SINCE, self.after_two_years())

    def test_manual_secret(self) -> None:
        """Tokens that their account does not refer to are kept."""
        self.token("manual")
        self.clock.advance(2 * YEAR)
        self.start(LegacyTokenCleaner)
        self.assertNotIn("labels", self.find("secrets", "manual", "one")["metadata"])

    def test_mounted(self) -> None:
        """A token that a pod mounts is kept until the pod is deleted."""
        self.token()
        volume = {"name": "v", "secret": {"secretName": "token"}}
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
        self.make("pods", "p", "one", spec=spec)
        self.assertEqual(self.after_two_years(), {})
        self.remove("pods", "p", "one", grace=0)
        self.settle(INTERVAL + 1)
        self.assertIn(INVALID_SINCE, self.labels())

    def test_tracking(self) -> None:
        """Nothing is changed until uses have been tracked for a year."""
        self.token()
        for since in (day(YEAR + DAY), "nonsense"):
            self.change("configmaps", NAME, lambda obj, since=since: obj["data"].update(since=since), NAMESPACE)
            self.assertEqual(self.after_two_years(), {})
            self.clock.advance(-2 * YEAR)

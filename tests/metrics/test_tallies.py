"""What parts of a server count for themselves."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.podsecurity.levels import LevelVersion
from kubetwist.admission_plugins.podsecurity.metrics import PodSecurityTally
from kubetwist.admission_plugins.policies.metrics import PolicyTally
from kubetwist.admission_plugins.webhooks.metrics import WebhookTally
from kubetwist.metrics.registry import Reading, Registry, Watermark
from kubetwist.resources.handlers.watch import (
    Flusher,
    WatchTally,
)

from .test_registry import read


def told(*readings: Reading) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """What Prometheus reads of some readings."""
    registry = Registry()
    registry.read(lambda: readings)
    return read(registry)


class WatermarkTests(SynchronousTestCase):
    """The most there were within the last second."""

    def test_most(self) -> None:
        """What there was for a moment is told for a second or two, and what is there for as long as it is."""
        now = 0.0
        mark = Watermark(lambda: now)
        for at in (0.1, 0.2, 0.3):
            mark.up(at)
        mark.down(0.4)
        mark.down(0.5)
        self.assertEqual((mark.count, mark.most()), (1, 3))
        now = 1.3
        self.assertEqual(mark.most(), 3)
        now = 9.0
        self.assertEqual(mark.most(), 1)

    def test_idle(self) -> None:
        """What was there at the beginning of a second counts for it, whoever looks."""
        now = 5.0
        mark = Watermark(lambda: now)
        mark.up(0.0)
        mark.down(4.9)
        self.assertEqual(mark.most(), 1)
        now = 8.0
        self.assertEqual(mark.most(), 0)


class WatchTallyTests(SynchronousTestCase):
    """Events are counted for each watch, their sizes looked at once."""

    def test_same_event(self) -> None:
        """An event that several watches write counts for each of them."""
        tally = WatchTally()
        event, other = b"x" * 100, b"y" * 5000
        for data in (event, event, event, other):
            tally.one(data)
        tally.settle()
        self.assertEqual((tally.sizes.count, tally.sizes.sum), (4, 5300))
        self.assertEqual(tally.sizes.counts[0], 3)
        tally.settle()
        self.assertEqual(tally.sizes.count, 4)

    def test_several(self) -> None:
        """Of events that are written together each counts, small ones and others."""
        tally = WatchTally()
        tally.several([b"x" * 10, b"x" * 1024])
        tally.several([b"x" * 10, b"x" * 3000, b"x" * 1_000_000])
        self.assertEqual(tally.sizes.count, 5)
        self.assertEqual((tally.sizes.counts[0], tally.sizes.counts[2], tally.sizes.counts[-1]), (3, 1, 1))

    def test_cut_off(self) -> None:
        """Watches that were cut off are told of by resource, whatever version they are of."""
        flusher = Flusher(Clock())
        for version in ("v1", "v2"):
            flusher.tally(SimpleNamespace(group="g", version=version, resource="things")).terminated += 2
        flusher.tally(SimpleNamespace(group="g", version="v1", resource="others"))
        cut = told(*flusher.readings())["apiserver_terminated_watchers_total"]
        self.assertEqual(cut, {(("group", "g"), ("resource", "things")): 4.0})


class PluginTallyTests(SynchronousTestCase):
    """What plugins count; names are from objects of the API, and only so many of them."""

    def test_webhooks(self) -> None:
        """Calls are told by their code, refusals by why, and codes that webhooks make up are cut off."""
        tally = WebhookTally("admit")
        tally.called("a", "CREATE", 0.1, 200, "")
        tally.called("a", "CREATE", 0.1, 99999, "no_error")
        tally.called("a", "CREATE", 0.1, 0, "calling_webhook_error")
        tally.failed_open("a")
        found = told(*tally.readings())
        codes = {dict(labels)["code"] for labels in found["apiserver_admission_webhook_request_total"]}
        self.assertEqual(codes, {"200", "600", "0"})
        why = {
            (dict(labels)["error_type"], dict(labels)["rejection_code"])
            for labels in found["apiserver_admission_webhook_rejection_count_total"]
        }
        self.assertEqual(why, {("no_error", "600"), ("calling_webhook_error", "0")})
        self.assertEqual(sum(found["apiserver_admission_webhook_fail_open_count_total"].values()), 1)

    def test_bounded_names(self) -> None:
        """CVE-2020-8552: however many webhooks and policies come and go, only so many are told of."""
        tally, policies = WebhookTally("admit"), PolicyTally()
        for number in range(6000):
            tally.called(f"w{number}", "CREATE", 0.1, 200, "")
            tally.failed_open(f"w{number}")
            policies.checked(f"p{number}", "b", "no_error", "allow", 0.1)
        found = told(*tally.readings(), *policies.readings())
        self.assertEqual(len(found["apiserver_admission_webhook_request_total"]), 2000)
        self.assertEqual(len(found["apiserver_admission_webhook_fail_open_count_total"]), 2000)
        self.assertEqual(len(found["apiserver_validating_admission_policy_check_total"]), 5000)

    def test_future_versions(self) -> None:
        """CVE-2020-8552: a version that a label of a namespace makes up is told as one that is yet to come."""
        tally = PodSecurityTally(36)
        for minor in (None, 20, 1000, 10**9):
            tally.evaluated("enforce", LevelVersion("baseline", minor), True, ("create", "pod", ""))
        versions = {
            dict(labels)["policy_version"] for labels in told(*tally.readings())["pod_security_evaluations_total"]
        }
        self.assertEqual(versions, {"latest", "v1.20", "future"})

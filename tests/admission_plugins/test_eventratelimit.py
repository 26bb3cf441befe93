"""Tests for L{EventRateLimit}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.eventratelimit import EventRateLimit, TokenBucket
from kubetwist.admission_plugins.pluginconfig import InvalidConfiguration
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, Write, write

KIND = {"kind": "Configuration", "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1"}


def event(source: str = "kubelet", involved: str = "p") -> JSONObject:
    """An event."""
    return {"metadata": {"name": "e"}, "source": {"component": source}, "involvedObject": {"name": involved}}


class EventRateLimitTests(PluginTestCase):
    """Tests for L{EventRateLimit}."""

    def setUp(self) -> None:
        """A server without anything, and its clock."""
        self.context = Context()

    def plugin(self, *limits: JSONObject) -> EventRateLimit:
        """The plugin with limits."""
        plugin = EventRateLimit.configured(self.context, {**KIND, "limits": list(limits)})
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def passes(self, plugin: EventRateLimit, *writes: Write) -> list[bool]:
        """Which of the writes pass."""
        passed = []
        for one in writes:
            try:
                plugin.validate(one.attributes)
            except APIStatusError as error:
                self.assertEqual(error.code, 429)
                passed.append(False)
            else:
                passed.append(True)
        return passed

    def test_server(self) -> None:
        """So many events pass at once, and so many a second after that, whoever sends them."""
        plugin = self.plugin({"type": "Server", "qps": 2, "burst": 3})
        self.assertEqual(self.passes(plugin, *(write(event(), "events") for _ in range(3))), [True] * 3)
        error = self.refusal(plugin, write(event(), "events"))
        self.assertEqual(
            error.status(),
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "Too many requests: limit reached on type Server for key ",
                "reason": "TooManyRequests",
                "code": 429,
            },
        )
        self.context.reactor.advance(0.5)
        self.assertEqual(
            self.passes(plugin, write(event(), "events", "UPDATE"), write(event(), "events")), [True, False]
        )

    def test_namespace_and_user(self) -> None:
        """Limits can be those of a namespace or of a user; others have their own."""
        plugin = self.plugin({"type": "Namespace", "qps": 1, "burst": 1})
        made = [write(event(), "events", namespace=one) for one in ("a", "b", "a")]
        self.assertEqual(self.passes(plugin, *made), [True, True, False])
        plugin = self.plugin({"type": "User", "qps": 1, "burst": 1})
        made = [write(event(), "events", user=UserInfo(one)) for one in ("a", "b", "a")]
        self.assertEqual(self.passes(plugin, *made), [True, True, False])
        self.assertIn("limit reached on type User for key a", self.refusal(plugin, made[0]).message)

    def test_source_and_object(self) -> None:
        """Or that of one source about one object."""
        plugin = self.plugin({"type": "SourceAndObject", "qps": 1, "burst": 1})
        events = [event("k", "a"), event("k", "b"), event("j", "a"), event("k", "a")]
        made = [write(one, "events") for one in events]
        self.assertEqual(self.passes(plugin, *made), [True, True, True, False])
        self.assertIn("SourceAndObject for key ka", self.refusal(plugin, made[0]).message)

    def test_forgets(self) -> None:
        """Only so many are remembered, the last ones that came."""
        plugin = self.plugin({"type": "Namespace", "qps": 1, "burst": 1, "cacheSize": 2})
        made = [write(event(), "events", namespace=one) for one in ("a", "b", "b", "c", "a")]
        self.assertEqual(self.passes(plugin, *made), [True, True, False, True, True])

    def test_all_count(self) -> None:
        """An event that one limit refuses counts for the others, too; the last limit that refuses is told."""
        plugin = self.plugin({"type": "Server", "qps": 1, "burst": 1}, {"type": "User", "qps": 1, "burst": 2})
        for _ in range(2):
            self.passes(plugin, write(event(), "events"))
        self.assertIn("type User", self.refusal(plugin, write(event(), "events")).message)

    def test_others(self) -> None:
        """Other resources, events of the other group, and dry runs are not limited."""
        plugin = self.plugin({"type": "Server", "qps": 1, "burst": 1})
        for _ in range(3):
            self.validate(plugin, write(event(), "configmaps"))
            self.validate(plugin, write(event(), "events.events.k8s.io"))
            self.validate(plugin, write(event(), "events", dry_run=True))
        self.validate(plugin, write(event(), "events"))

    def test_configuration(self) -> None:
        """A configuration that makes no sense stops the server, and so does none."""
        for limits, text in (
            ([], "limits: Invalid value: []: must not be empty"),
            (
                [{"type": "X", "qps": 1, "burst": 1}],
                'limits[0].type: Unsupported value: "X": supported values: "Namesp',
            ),
            ([{"type": "Server", "qps": 0, "burst": 1}], "limits[0].qps: Invalid value: 0: must be positive"),
            ([{"type": "Server", "qps": 1, "burst": -1}], "limits[0].burst: Invalid value: -1: must be positive"),
            ([{"type": "User", "qps": 1, "burst": 1, "cacheSize": -1}], "limits[0].cacheSize: Invalid value: -1"),
            ([{"type": "User", "qps": "1", "burst": 1}], "limits[0].qps: expected a number of 32 bits"),
            ([{"type": "User", "rate": 1}], 'unknown field "limits[0].rate"'),
        ):
            with self.assertRaises(InvalidConfiguration) as raised:
                self.plugin(*limits)
            self.assertIn(text, str(raised.exception))
        with self.assertRaises(InvalidConfiguration):
            EventRateLimit.configured(self.context, None)

    @given(st.integers(1, 5), st.integers(1, 5), st.lists(st.floats(0, 3), max_size=40))
    def test_bucket(self, rate: int, burst: int, waits: list[float]) -> None:
        """In any time there are no more tokens than fit in the bucket and have come since."""
        now, taken, bucket = 0.0, 0, TokenBucket(rate, burst, 0.0)
        for wait in waits:
            now += wait
            taken += bucket.try_acquire(now)
            self.assertLessEqual(taken, burst + rate * now + 1e-6)

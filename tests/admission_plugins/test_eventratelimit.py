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
    """Return an event."""
    return {"metadata": {"name": "e"}, "source": {"component": source}, "involvedObject": {"name": involved}}


class EventRateLimitTests(PluginTestCase):
    """Tests for L{EventRateLimit}."""

    def setUp(self) -> None:
        """Create a server without objects, and its clock."""
        self.context = Context()

    def plugin(self, *limits: JSONObject) -> EventRateLimit:
        """Return the plugin with limits."""
        plugin = EventRateLimit.configured(self.context, {**KIND, "limits": list(limits)})
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def passes(self, plugin: EventRateLimit, *writes: Write) -> list[bool]:
        """Return which writes are admitted."""
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
        """A burst of events is admitted, and then a number of events per second, independent of the user."""
        plugin = self.plugin({"type": "Server", "qps": 2, "burst": 3})
        self.assertEqual(self.passes(plugin, *(write(event(), "events") for _ in range(3))), [True] * 3)
        error = self.rejection(plugin, write(event(), "events"))
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
        """Limits can be per namespace or per user, with separate token buckets."""
        plugin = self.plugin({"type": "Namespace", "qps": 1, "burst": 1})
        request = [write(event(), "events", namespace=one) for one in ("a", "b", "a")]
        self.assertEqual(self.passes(plugin, *request), [True, True, False])
        plugin = self.plugin({"type": "User", "qps": 1, "burst": 1})
        request = [write(event(), "events", user=UserInfo(one)) for one in ("a", "b", "a")]
        self.assertEqual(self.passes(plugin, *request), [True, True, False])
        self.assertIn("limit reached on type User for key a", self.rejection(plugin, request[0]).message)

    def test_source_and_object(self) -> None:
        """Limits can be per source and object."""
        plugin = self.plugin({"type": "SourceAndObject", "qps": 1, "burst": 1})
        events = [event("k", "a"), event("k", "b"), event("j", "a"), event("k", "a")]
        request = [write(one, "events") for one in events]
        self.assertEqual(self.passes(plugin, *request), [True, True, True, False])
        self.assertIn("SourceAndObject for key ka", self.rejection(plugin, request[0]).message)

    def test_cache_size(self) -> None:
        """A limited number of token buckets is kept; the least recently used one is evicted."""
        plugin = self.plugin({"type": "Namespace", "qps": 1, "burst": 1, "cacheSize": 2})
        request = [write(event(), "events", namespace=one) for one in ("a", "b", "b", "c", "a")]
        self.assertEqual(self.passes(plugin, *request), [True, True, False, True, True])

    def test_all_limits(self) -> None:
        """An event that one limit rejects counts for the other limits; the last rejection is reported."""
        plugin = self.plugin({"type": "Server", "qps": 1, "burst": 1}, {"type": "User", "qps": 1, "burst": 2})
        for _ in range(2):
            self.passes(plugin, write(event(), "events"))
        self.assertIn("type User", self.rejection(plugin, write(event(), "events")).message)

    def test_unlimited(self) -> None:
        """Other resources, events of another group, and dry runs are not limited."""
        plugin = self.plugin({"type": "Server", "qps": 1, "burst": 1})
        for _ in range(3):
            self.validate(plugin, write(event(), "configmaps"))
            self.validate(plugin, write(event(), "events.events.k8s.io"))
            self.validate(plugin, write(event(), "events", dry_run=True))
        self.validate(plugin, write(event(), "events"))

    def test_configuration(self) -> None:
        """An invalid or missing configuration stops the server."""
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
        """In any period there are no more tokens than the burst and the rate allow."""
        now, acquired, bucket = 0.0, 0, TokenBucket(rate, burst, 0.0)
        for wait in waits:
            now += wait
            acquired += bucket.try_acquire(now)
            self.assertLessEqual(acquired, burst + rate * now + 1e-6)

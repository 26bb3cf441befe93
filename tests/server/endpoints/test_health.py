"""Tests of L{kubetwist.server.endpoints.health}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.site import traverse
from kubetwist.metrics.exposition import render
from kubetwist.metrics.health import HealthMetrics
from kubetwist.metrics.registry import Registry
from kubetwist.resources.mux import DelegatingMux, NotFound
from kubetwist.resources.routing import RoutedApp
from kubetwist.server.endpoints.health import LOG, PING, HealthCheck, HealthEndpoints, Unhealthy
from tests.http.harness import Client, filtered_site


class HealthTests(SynchronousTestCase):
    """L{HealthEndpoints}."""

    def setUp(self) -> None:
        """Create a path with three checks, one of which is set by the test."""
        self.problem: str | None = None
        self.later: Deferred[None] | None = None
        self.checks = [PING, LOG, HealthCheck("etcd", self.check)]
        self.serve()

    def serve(self, metrics: HealthMetrics | None = None) -> None:
        """Serve the path."""
        mux = DelegatingMux("test", NotFound())
        endpoints = HealthEndpoints({"readyz": lambda: self.checks}, metrics)
        mux.handle_prefix("/readyz", RoutedApp(endpoints.make_app))
        self.client = Client(filtered_site(traverse(mux)))

    def check(self) -> Any:
        """Return or raise the result that the test has set."""
        if self.problem is not None:
            raise Unhealthy(self.problem)
        return self.later

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Send a request; return code and text."""
        answer = self.client.request(method, path)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        return answer.code, answer.body.decode()

    def test_well(self) -> None:
        """A healthy server answers ok to any method, and lists the checks with C{verbose}."""
        self.assertEqual(self.ask("/readyz"), (200, "ok"))
        self.assertEqual(self.ask("/readyz", "POST"), (200, "ok"))
        verbose = "[+]ping ok\n[+]log ok\n[+]etcd ok\nreadyz check passed\n"
        self.assertEqual(self.ask("/readyz?verbose"), (200, verbose))
        self.assertEqual(self.ask("/readyz?verbose=false"), (200, verbose))

    def test_unwell(self) -> None:
        """An unhealthy server lists the failed checks without reasons."""
        self.problem = "secret"
        self.assertEqual(
            self.ask("/readyz"),
            (500, "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"),
        )

    def test_excluded(self) -> None:
        """Checks can be excluded."""
        self.problem = "secret"
        self.assertEqual(self.ask("/readyz?exclude=etcd"), (200, "ok"))
        self.assertEqual(
            self.ask("/readyz?verbose&exclude=etcd&exclude=none&exclude=a%22b"),
            (
                200,
                "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n"
                'warn: some health checks cannot be excluded: no matches for "a\\"b","none"\nreadyz check passed\n',
            ),
        )

    def test_not_applicable(self) -> None:
        """A check without anything to check is never C{ok}: it is not applicable, and its path answers 200."""
        self.checks.append(HealthCheck("elsewhere", None))
        lines = "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]elsewhere not applicable\n"
        self.assertEqual(self.ask("/readyz"), (200, "ok"))
        for query in ("verbose", "verbose&exclude=elsewhere"):
            self.assertEqual(self.ask(f"/readyz?{query}"), (200, f"{lines}readyz check passed\n"))
        self.assertEqual(self.ask("/readyz/elsewhere"), (200, "not applicable"))

    def test_metrics(self) -> None:
        """Results of checks are counted, but a check that is not applicable has no result."""
        registry = Registry()
        self.checks[1:] = [HealthCheck("elsewhere", None)]
        self.serve(HealthMetrics(registry))
        self.ask("/readyz?verbose")
        self.ask("/readyz/elsewhere")
        text = render(registry.families(), ())
        self.assertIn(b'kubernetes_healthcheck{name="ping",type="readyz"} 1', text)
        self.assertNotIn(b"elsewhere", text)

    def test_log(self) -> None:
        """The check of the log logs an event."""
        with capturedLogs() as events:
            self.ask("/readyz/log")
        self.assertIn("checking the log", [event["log_format"] for event in events])

    def test_single(self) -> None:
        """A single check returns the reason of its failure."""
        self.assertEqual(self.ask("/readyz/etcd"), (200, "ok"))
        self.problem = "disk full"
        self.assertEqual(self.ask("/readyz/ping"), (200, "ok"))
        self.assertEqual(self.ask("/readyz/etcd"), (500, "internal server error: disk full\n"))
        for path in ("/readyz/nope", "/readyz/", "/readyz/etcd/"):
            self.assertEqual(self.ask(path), (404, "404 page not found\n"))

    def test_asynchronous(self) -> None:
        """A check may be asynchronous."""
        self.later = Deferred()
        self.client.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(self.client.answers(), [])
        self.later.callback(None)
        self.assertEqual(self.client.answers()[0].body, b"ok")

    def test_exception(self) -> None:
        """A check that raises an exception has failed."""
        self.later = Deferred()
        self.client.send(b"GET /readyz/etcd HTTP/1.1\r\nHost: x\r\n\r\n")
        self.later.errback(RuntimeError("oops"))
        self.assertEqual(self.client.answers()[0].body, b"internal server error: RuntimeError: oops\n")

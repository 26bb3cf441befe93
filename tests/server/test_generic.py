"""Tests for L{kubetwist.server.generic}, L{kubetwist.server.chain} and L{kubetwist.server.endpoints.health}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from kubetwist.http.site import traverse
from kubetwist.server.chain import NotFound, create_server_chain
from kubetwist.server.endpoints.health import LOG, PING, HealthCheck, HealthResource, Unhealthy
from kubetwist.server.generic import LIVEZ, READYZ, GenericServer
from kubetwist.server.hooknames import ORDER

from ..http.harness import Client, Leaf, filtered_site, make_site


class ChainTests(SynchronousTestCase):
    """Tests for L{create_server_chain}."""

    def test_delegation(self) -> None:
        """Each path is answered by the first server that claims it, and what nobody claims is not found."""

        def leaf(text: bytes) -> Leaf:
            return Leaf(lambda request: request.respond(200, text, b"text/plain"))

        def install(config: Any, aggregator: Any, kube: Any, extensions: Any) -> None:
            self.assertEqual(config, "config")
            aggregator.layer.claim_below("/apis/a", leaf(b"aggregator"))
            kube.layer.claim_below("/apis/b", leaf(b"kube"))
            extensions.layer.claim_below("/apis/b", leaf(b"never"))
            extensions.layer.claim_below("/apis/c", leaf(b"extensions"))

        server, _ = create_server_chain("config", install)  # type: ignore[arg-type]
        self.assertEqual(
            [one.name for one in server.chain()], ["apiextensions-apiserver", "kube-apiserver", "kube-aggregator"]
        )
        client = Client(make_site(traverse(server.layer)))
        for path, body in (("a", b"aggregator"), ("b/v1/x", b"kube"), ("c", b"extensions")):
            self.assertEqual(client.request("GET", f"/apis/{path}").body, body)
        for path in ("/apis/d", "/apis", "/", "//apis/a"):
            answer = client.request("POST", path)
            self.assertEqual((answer.code, answer.body), (404, b"404 page not found\n"))
            self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
            self.assertEqual(answer.header("x-content-type-options"), "nosniff")


class HookTests(SynchronousTestCase):
    """Hooks of a chain of servers."""

    def setUp(self) -> None:
        """A chain of two servers."""
        self.last = GenericServer("last", NotFound())
        self.first = GenericServer("first", self.last)
        self.calls: list[str] = []

    def called(self, name: str) -> Any:
        """A hook that leaves its name."""
        return lambda: self.calls.append(name)

    def test_inherited(self) -> None:
        """The server in front has the hooks of those behind it, in the reference's order, and its own."""
        self.first.add_post_start_hook("mine", self.called("mine"))
        self.last.add_post_start_hook(ORDER[3], self.called("theirs"))
        hooks = self.first.post_start_hooks()
        self.assertEqual([hook.name for hook in hooks], [*ORDER, "mine"])
        self.assertEqual([hook.name for hook in hooks if hook.problem is not None], [ORDER[3], "mine"])
        self.successResultOf(Deferred.fromCoroutine(self.first.run_post_start_hooks()))
        self.assertEqual(self.calls, ["theirs", "mine"])
        self.assertEqual([hook.name for hook in self.first.post_start_hooks() if hook.problem is not None], [])

    def test_twice(self) -> None:
        """Two hooks of a chain can not have the same name."""
        self.last.add_post_start_hook("mine", self.called("mine"))
        self.assertRaises(ValueError, self.first.add_post_start_hook, "mine", self.called("mine"))

    def test_together(self) -> None:
        """Hooks do not wait for each other, and all are waited for."""
        first: Deferred[None] = Deferred()
        self.first.add_post_start_hook("slow", lambda: first)
        self.first.add_post_start_hook("fast", self.called("fast"))
        done = Deferred.fromCoroutine(self.first.run_post_start_hooks())
        self.assertEqual(self.calls, ["fast"])
        self.assertNoResult(done)
        problems = {hook.name: hook.problem for hook in self.first.post_start_hooks()}
        self.assertEqual((problems["slow"], problems["fast"]), ("not finished", None))
        first.callback(None)
        self.successResultOf(done)

    def test_failing(self) -> None:
        """A hook that fails makes the start fail, with its own error."""

        async def fails() -> None:
            raise KeyError("oops")

        self.first.add_post_start_hook("bad", fails)
        self.failureResultOf(Deferred.fromCoroutine(self.first.run_post_start_hooks()), KeyError)
        (problem,) = [hook.problem for hook in self.first.post_start_hooks() if hook.problem]
        self.assertEqual(problem, "KeyError: 'oops'")

    def test_before_listening(self) -> None:
        """What comes before listening is done one after the other, delegates first."""
        waits: Deferred[None] = Deferred()
        self.first.add_before_listening("c", self.called("first"))
        self.last.add_before_listening("a", lambda: waits)
        self.last.add_before_listening("b", self.called("last"))
        done = Deferred.fromCoroutine(self.first.run_before_listening())
        self.assertEqual(self.calls, [])
        waits.callback(None)
        self.successResultOf(done)
        self.assertEqual(self.calls, ["last", "first"])

    def test_stopping(self) -> None:
        """What fails in stopping does not keep the rest from being stopped, the last started first."""

        def fails() -> None:
            raise RuntimeError("oops")

        for add, run in (
            ("add_pre_shutdown_hook", self.first.run_pre_shutdown_hooks),
            ("add_at_end", self.first.run_at_end),
        ):
            self.calls.clear()
            getattr(self.last, add)("one", self.called("one"))
            getattr(self.last, add)("bad", fails)
            getattr(self.first, add)("two", self.called("two"))
            self.successResultOf(Deferred.fromCoroutine(run()))
            self.assertEqual(sorted(self.calls), ["one", "two"])
            self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.assertEqual(self.calls, ["two", "one"])

    def test_checks(self) -> None:
        """Checks belong to the paths that they were added for."""
        everywhere, ready = HealthCheck("a", lambda: None), HealthCheck("b", lambda: None)
        self.first.add_health_check(everywhere)
        self.last.add_health_check(ready, (READYZ,))
        self.assertEqual(self.first.health_checks(READYZ), [ready, everywhere])
        self.assertEqual(self.first.health_checks(LIVEZ), [everywhere])


class HealthTests(SynchronousTestCase):
    """Tests for L{HealthResource}."""

    def setUp(self) -> None:
        """A path with three checks, one of which can fail or take time."""
        self.problem: str | None = None
        self.later: Deferred[None] | None = None
        self.checks = [PING, LOG, HealthCheck("etcd", self.check)]
        root = Resource()
        root.putChild(b"readyz", HealthResource("readyz", lambda: self.checks))
        self.client = Client(filtered_site(traverse(root)))

    def check(self) -> Any:
        """The check of what is called etcd."""
        if self.problem is not None:
            raise Unhealthy(self.problem)
        return self.later

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Send a request; return code and text."""
        answer = self.client.request(method, path)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        return answer.code, answer.body.decode()

    def test_well(self) -> None:
        """A server that is well says ok, in detail if that is wanted, to any method."""
        self.assertEqual(self.ask("/readyz"), (200, "ok"))
        self.assertEqual(self.ask("/readyz", "POST"), (200, "ok"))
        verbose = "[+]ping ok\n[+]log ok\n[+]etcd ok\nreadyz check passed\n"
        self.assertEqual(self.ask("/readyz?verbose"), (200, verbose))
        self.assertEqual(self.ask("/readyz?verbose=false"), (200, verbose))

    def test_unwell(self) -> None:
        """A server that is not well says in which way, but not why."""
        self.problem = "secret"
        self.assertEqual(
            self.ask("/readyz"),
            (500, "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"),
        )

    def test_exclude(self) -> None:
        """Checks can be left out."""
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

    def test_single(self) -> None:
        """Each check can be asked for alone, and then says why it fails."""
        self.assertEqual(self.ask("/readyz/etcd"), (200, "ok"))
        self.problem = "disk full"
        self.assertEqual(self.ask("/readyz/ping"), (200, "ok"))
        self.assertEqual(self.ask("/readyz/etcd"), (500, "internal server error: disk full\n"))
        for path in ("/readyz/nope", "/readyz/", "/readyz/etcd/"):
            self.assertEqual(self.ask(path), (404, "404 page not found\n"))

    def test_later(self) -> None:
        """A check may take its time."""
        self.later = Deferred()
        self.client.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(self.client.answers(), [])
        self.later.callback(None)
        self.assertEqual(self.client.answers()[0].body, b"ok")

    def test_bug(self) -> None:
        """A check that breaks has failed."""
        self.later = Deferred()
        self.client.send(b"GET /readyz/etcd HTTP/1.1\r\nHost: x\r\n\r\n")
        self.later.errback(RuntimeError("oops"))
        self.assertEqual(self.client.answers()[0].body, b"internal server error: RuntimeError: oops\n")

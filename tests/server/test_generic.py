"""Tests of L{kubetwist.server.generic}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.resources.mux import NotFound
from kubetwist.server.endpoints.health import HealthCheck
from kubetwist.server.generic import LIVEZ, READYZ, GenericServer
from kubetwist.server.hooknames import ORDER, check_name, hook_order


class HookTests(SynchronousTestCase):
    """Hooks of a chain of servers."""

    def setUp(self) -> None:
        """Create a chain of two servers."""
        self.last = GenericServer("last", NotFound())
        self.first = GenericServer("first", self.last)
        self.calls: list[str] = []

    def called(self, name: str) -> Any:
        """Return a hook that records its name."""
        return lambda: self.calls.append(name)

    def test_inherited(self) -> None:
        """The first server has a check for each hook of the reference, in its order, then for its own hooks."""
        self.first.add_post_start_hook("mine", self.called("mine"))
        self.last.add_post_start_hook(ORDER[3], self.called("theirs"), covers=(ORDER[5],))
        self.last.add_pre_listen_hook("early", self.called("early"))
        names = [*map(check_name, ORDER), "poststarthook/early", "poststarthook/mine"]
        self.assertEqual([check.name for check in self.first.hook_checks()], names)
        applicable = [check_name(ORDER[3]), check_name(ORDER[5]), *names[-2:]]
        self.assertEqual([check.name for check in self.first.hook_checks() if check.check is not None], applicable)
        self.assertEqual(self.failing(), applicable)
        self.successResultOf(Deferred.fromCoroutine(self.first.run_pre_listen_hooks()))
        self.assertEqual(self.failing(), [name for name in applicable if "early" not in name])
        self.successResultOf(Deferred.fromCoroutine(self.first.run_post_start_hooks()))
        self.assertEqual(self.calls, ["early", "theirs", "mine"])
        self.assertEqual(self.failing(), [])

    def failing(self) -> list[str]:
        """Return the names of the checks that fail."""
        checks = self.first.hook_checks()
        return [check.name for check in checks if self.successResultOf(Deferred.fromCoroutine(check.problem()))]

    def test_gates(self) -> None:
        """The hooks of the reference depend on its feature gates."""
        readiness = "storage-readiness"
        self.assertEqual(tuple(hook_order(FeatureGates())), ORDER)
        self.assertNotIn(readiness, hook_order(FeatureGates((1, 35))))
        enabled = FeatureGates((1, 35), {"WatchCacheInitializationPostStartHook": True})
        self.assertIn(readiness, hook_order(enabled))

    def test_twice(self) -> None:
        """Two hooks of a chain cannot have or cover the same name."""
        self.last.add_post_start_hook("mine", self.called("mine"), covers=("other",))
        self.assertRaises(ValueError, self.first.add_post_start_hook, "mine", self.called("mine"))
        self.assertRaises(ValueError, self.first.add_pre_listen_hook, "other", self.called("mine"))
        self.assertRaises(ValueError, self.first.add_pre_listen_hook, "third", self.called("mine"), covers=("mine",))

    def test_concurrent(self) -> None:
        """Hooks run concurrently, and all are awaited."""
        first: Deferred[None] = Deferred()
        self.first.add_post_start_hook("slow", lambda: first)
        self.first.add_post_start_hook("fast", self.called("fast"))
        done = Deferred.fromCoroutine(self.first.run_post_start_hooks())
        self.assertEqual(self.calls, ["fast"])
        self.assertNoResult(done)
        problems = {hook.name: hook.problem for hook in self.first.start_hooks()}
        self.assertEqual((problems["slow"], problems["fast"]), ("not finished", None))
        first.callback(None)
        self.successResultOf(done)

    def test_failing(self) -> None:
        """A failing hook fails the start with its exception."""

        async def fails() -> None:
            raise KeyError("oops")

        self.first.add_post_start_hook("bad", fails)
        self.failureResultOf(Deferred.fromCoroutine(self.first.run_post_start_hooks()), KeyError)
        (problem,) = [hook.problem for hook in self.first.start_hooks() if hook.problem]
        self.assertEqual(problem, "KeyError: 'oops'")

    def test_before_listening(self) -> None:
        """Pre-listen hooks run one after the other, delegates first."""
        waits: Deferred[None] = Deferred()
        self.first.add_pre_listen_hook("c", self.called("first"))
        self.last.add_pre_listen_hook("a", lambda: waits)
        self.last.add_pre_listen_hook("b", self.called("last"))
        done = Deferred.fromCoroutine(self.first.run_pre_listen_hooks())
        self.assertEqual(self.calls, [])
        waits.callback(None)
        self.successResultOf(done)
        self.assertEqual(self.calls, ["last", "first"])

    def test_stopping(self) -> None:
        """A failing destroy function does not prevent others; the last registered runs first."""

        def fails() -> None:
            raise RuntimeError("oops")

        for add, run in (
            ("add_pre_shutdown_hook", self.first.run_pre_shutdown_hooks),
            ("register_destroy_func", self.first.run_destroy_funcs),
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
        """Checks are part of the paths for which they were added."""
        everywhere, ready = HealthCheck("a", lambda: None), HealthCheck("b", lambda: None)
        self.first.add_health_check(everywhere)
        self.last.add_health_check(ready, (READYZ,))
        self.assertEqual(self.first.health_checks(READYZ), [ready, everywhere])
        self.assertEqual(self.first.health_checks(LIVEZ), [everywhere])

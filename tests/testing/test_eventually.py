"""Tests for L{kubetwist.testing._eventually}."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import WaitTimeout
from kubetwist.testing._eventually import Attempts, StorageFeed, WatchedChanges, evaluate_until_passed
from kubetwist.testing._references import UnknownResourceError
from tests.testing.powercase import MAPS, PowerTestCase


class NotFoundError(Exception):
    """Has the name of an exception of kr8s."""


class Error(Exception):
    """An exception with attributes, as in client libraries."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class ThreeChanges:
    """Changes that arrive three times."""

    def __init__(self) -> None:
        self.left = 3

    def wait(self, deadline: float) -> bool:
        """Return whether there is another change."""
        self.left -= 1
        return self.left >= 0

    def describe(self) -> str:
        """Return a text."""
        return "last object seen: x"

    def close(self) -> None:
        """Do nothing."""


class EvaluationTests(SynchronousTestCase):
    """L{Attempts} and L{evaluate_until_passed}."""

    def evaluate(self, function: Any) -> Any:
        """Evaluate a function now and after three changes."""
        return evaluate_until_passed(Attempts(function, 1), ThreeChanges(), 0)

    def test_passes(self) -> None:
        """None and true values pass, and are returned; the function is called after each change."""
        results = iter([False, 0, "yes"])
        self.assertEqual(self.evaluate(lambda: next(results)), "yes")
        self.assertIsNone(self.evaluate(lambda: None))
        raised: list[Exception] = [AssertionError(), Error(status=404), NotFoundError()]

        def function() -> int:
            if raised:
                raise raised.pop()
            return 1

        self.assertEqual(self.evaluate(function), 1)

    def test_not_found(self) -> None:
        """Errors of client libraries for missing objects mean "not yet"."""
        for error in (
            Error(status=404),
            Error(response=SimpleNamespace(status_code=404)),
            Error(status=SimpleNamespace(code=404)),
            NotFoundError(),
        ):
            self.assertTrue(Attempts(lambda: None, 1).is_not_yet(error))
        for error in (Error(status=403), Error(response=None), Error(), ValueError("404")):
            self.assertFalse(Attempts(lambda: None, 1).is_not_yet(error))

    def test_fails(self) -> None:
        """The error has the last assertion, the number of evaluations and the last object."""

        def check() -> None:
            assert [] == [1], "the pods are missing"

        with self.assertRaises(WaitTimeout) as caught:
            self.evaluate(check)
        text = str(caught.exception)
        self.assertIn("check did not pass within 1 s, evaluated 5 times: AssertionError: the pods are missing", text)
        self.assertIn("last object seen: x", text)
        self.assertIsInstance(caught.exception.__cause__, AssertionError)
        with self.assertRaisesRegex(WaitTimeout, "it returned 0"):
            self.evaluate(lambda: 0)

    def test_other_errors(self) -> None:
        """Other exceptions are raised; async functions and negative timeouts are errors."""
        with self.assertRaises(ZeroDivisionError):
            self.evaluate(lambda: 1 / 0)

        async def function() -> None:
            """Do nothing."""

        with self.assertRaisesRegex(TypeError, "not async functions"):
            self.evaluate(function)
        self.assertRaises(ValueError, Attempts, function, -1)


class ServerTests(PowerTestCase):
    """C{eventually} with a server."""

    def eventually(self, function: Any, timeout: float = 30) -> Deferred[Any]:
        """Begin to evaluate a function."""
        return ensureDeferred(self.server.eventually(function, timeout=timeout))

    async def names(self) -> list[str]:
        """Return the names of all ConfigMaps."""
        _, listed = await self.ask("GET", MAPS)
        return [one["metadata"]["name"] for one in listed["items"]]

    async def test_changes(self) -> None:
        """An async function is evaluated after changes, and not without them."""
        await self.begin("--controllers=")
        evaluated = []

        async def check() -> list[str]:
            evaluated.append(None)
            names = await self.names()
            assert "b" in names
            return names

        result = self.eventually(check)
        await self.make("a")
        await self.make("b")
        self.assertEqual(await result, ["a", "b"])
        count = len(evaluated)
        self.assertLessEqual(count, 3)
        await self.make("c")
        self.assertEqual(len(evaluated), count)

    async def test_timeout(self) -> None:
        """The error has the last change; the function is evaluated at the end."""
        await self.begin("--controllers=")
        self.server.freeze_time(5)
        result = self.eventually(lambda: False, 3)
        await self.make("a")
        with self.assertRaisesRegex(WaitTimeout, r"(?s)it returned False.*last change: /registry/configmaps/default/a"):
            await result
        with self.assertRaisesRegex(WaitTimeout, "no change was seen"):
            await self.eventually(lambda: False, 0)

    async def test_cancelled(self) -> None:
        """A cancelled evaluation ends."""
        await self.begin("--controllers=")
        result = self.eventually(lambda: False)
        result.cancel()
        with self.assertRaises(CancelledError):
            await result

    async def test_feed(self) -> None:
        """The socket has the changes of the server, and is closed with it."""
        await self.begin("--controllers=")
        feed = await deferToThread(StorageFeed, self.server.change_socket())
        self.addCleanup(feed.close)
        deadline = time.monotonic() + 30
        self.assertTrue(await deferToThread(feed.wait, deadline))
        self.assertEqual(feed.describe(), "")
        waiting = deferToThread(feed.wait, deadline)
        await self.make("a")
        self.assertTrue(await waiting)
        self.assertRegex(feed.describe(), r"(?s)last change: /registry/configmaps/default/a at revision \d+\n.*of: a")
        self.assertFalse(await deferToThread(feed.wait, time.monotonic() - 1))
        await self.server.stop()
        with self.assertRaises(ConnectionError):
            await deferToThread(feed.wait, deadline)

    async def test_watched(self) -> None:
        """Changes of named resources count, changes of other resources do not."""
        await self.begin("--controllers=")
        await self.make("before")
        deadline = time.monotonic() + 30
        watched: Any = await deferToThread(WatchedChanges, self.server.connection, ["cm", "secrets/s"], deadline)
        waiting = deferToThread(watched.wait, deadline)
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
        await deferLater(reactor, 0.1)
        self.assertFalse(waiting.called)
        await self.make("a")
        self.assertTrue(await waiting)
        self.assertRegex(watched.describe(), "(?s)last object seen:.*name: a")
        watched.close()
        with self.assertRaises(UnknownResourceError):
            await deferToThread(WatchedChanges, self.server.connection, ["podz"], deadline)

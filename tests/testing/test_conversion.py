"""Tests for L{kubetwist.testing.conversion}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.errors import APIStatusError
from kubetwist.interfaces import IConversionPlugin
from kubetwist.testing.conversion import ConverterHarness

V1, V2 = "stable.example.com/v1", "stable.example.com/v2"
KITE = {"apiVersion": V1, "kind": "Kite", "metadata": {"name": "k", "namespace": "n"}, "spec": {"length": 3}}


def convert(objects: list[dict[str, Any]], api_version: str) -> list[dict[str, Any]]:
    """Rename a field between the versions."""
    for obj in objects:
        old, new = ("length", "metres") if api_version == V2 else ("metres", "length")
        if old in obj["spec"]:
            obj["spec"][new] = obj["spec"].pop(old)
        obj["apiVersion"] = api_version
    return objects


@implementer(IConversionPlugin)
class Kites:
    """A conversion plugin."""

    name = "kites"
    convert = staticmethod(convert)


class HarnessTests(SynchronousTestCase):
    """L{ConverterHarness}."""

    def test_converted(self) -> None:
        """A plugin or a function converts objects, whose arguments are copies."""
        for plugin in (Kites(), convert):
            harness = ConverterHarness(plugin)
            (converted,) = harness.convert([KITE], V2)
            self.assertEqual((converted["apiVersion"], converted["spec"]), (V2, {"metres": 3}))
            self.assertEqual(KITE["spec"], {"length": 3})
            self.assertEqual(len(harness.convert([KITE] * 120, V2)), 120)

    def test_round_trip(self) -> None:
        """A conversion that loses fields does not pass a round trip."""
        ConverterHarness(convert).check_round_trip([KITE], [V2])

        def forgets(objects: list[Any], api_version: str) -> list[Any]:
            return [{**obj, "apiVersion": api_version, "spec": {}} for obj in objects]

        error = self.assertRaises(AssertionError, ConverterHarness(forgets).check_round_trip, [KITE], [V2])
        self.assertIn("conversion to stable.example.com/v2 and back changed", str(error))

    def rejected(self, result: Any) -> str:
        """Return the error for a conversion with a result."""
        error = self.assertRaises(APIStatusError, ConverterHarness(lambda *_: result).convert, [KITE], V2)
        self.assertEqual(error.code, 500)
        return error.message

    def test_wrong_results(self) -> None:
        """Results that the server does not accept are rejected with its texts."""
        good = {**KITE, "apiVersion": V2}
        self.assertIn("returned 0 objects, expected 1", self.rejected(None))
        self.assertIn("returned 2 objects, expected 1", self.rejected([good, good]))
        self.assertIn("invalid groupVersion", self.rejected([KITE]))
        self.assertIn("invalid kind", self.rejected([{**good, "kind": "Kit"}]))
        self.assertIn("must have the same name", self.rejected([{**good, "metadata": {"name": "l"}}]))
        self.assertIn("missing metadata", self.rejected([{**good, "metadata": None}]))

    def test_exceptions(self) -> None:
        """The text of a ValueError is in the error; other exceptions are logged."""

        def refuse(objects: Any, api_version: str) -> Any:
            raise ValueError("too long")

        def fail(objects: Any, api_version: str) -> Any:
            raise KeyError("k")

        error = self.assertRaises(APIStatusError, ConverterHarness(refuse).convert, [KITE], V2)
        self.assertIn("failed: too long", error.message)
        self.assertRaises(APIStatusError, ConverterHarness(fail).convert, [KITE], V2)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)

    def test_waiting(self) -> None:
        """The clock advances while a plugin waits for it; one that waits forever fails with the server's timeout."""

        async def later(objects: Any, api_version: str) -> Any:
            await deferLater(harness.server.clock, 3)  # type: ignore[arg-type] # a clock
            return convert(objects, api_version)

        harness = ConverterHarness(later)
        self.assertEqual(harness.convert([KITE], V2)[0]["spec"], {"metres": 3})
        never: Any = lambda *_: Deferred()  # noqa: E731 # shorter than a function
        error = self.assertRaises(APIStatusError, ConverterHarness(never).convert, [KITE], V2)
        self.assertIn("it took longer than 30 s", error.message)

    def test_unusable(self) -> None:
        """An object without the interface is an error; so are objects of several kinds."""

        class NoInterface:
            name = "x"

            def convert(self) -> None:
                """Take no arguments."""

        plugin: Any = NoInterface()
        self.assertRaises(ValueError, ConverterHarness, plugin)
        self.assertRaises(ValueError, ConverterHarness(convert).convert, [KITE, {**KITE, "kind": "Kit"}], V2)
        error = self.assertRaises(APIStatusError, ConverterHarness("unknown").convert, [KITE], V2)
        self.assertIn("no plugin of that name is installed", error.message)

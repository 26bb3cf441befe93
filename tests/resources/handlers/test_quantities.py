"""Tests for quantities in bodies, over HTTP in memory."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.server import Server

RANGES = "/api/v1/namespaces/default/limitranges"


class QuantityTests(SynchronousTestCase):
    """Quantities that are numbers, and quantities finer than a thousandth."""

    def made(self, numbers: dict[str, str], media: str = "application/json") -> Any:
        """Return the maxima of a range that is created with these texts."""
        client = Server("limitranges").client()
        amounts = ", ".join(f'"example.org/{name}": {text}' for name, text in numbers.items())
        spec = f'{{"limits": [{{"type": "Container", "max": {{{amounts}}}}}]}}'
        body = f'{{"apiVersion": "v1", "kind": "LimitRange", "metadata": {{"name": "a"}}, "spec": {spec}}}'
        answer = client.answer("POST", RANGES, body.encode(), Content_Type=media)
        self.assertEqual(answer.code, 201, answer.body)
        found = orjson.loads(answer.body)["spec"]["limits"][0]["max"]
        return {name.removeprefix("example.org/"): amount for name, amount in found.items()}

    def test_as_written(self) -> None:
        """A JSON number keeps its text, with all digits."""
        written = {"a": "123456789012345678901234567890", "b": "1E3", "c": "1.50", "d": "12345678901234567.5", "e": "7"}
        stored = {**written, "c": "1500m", "d": "12345678901234567500m"}
        self.assertEqual(self.made(written), stored)

    def test_yaml(self) -> None:
        """A YAML number is a float, formatted without an exponent unless it is very large or small."""
        written = {"a": "123456789012345678901234567890", "b": "1.0e+3", "c": "1.0e+19", "d": "1.0e+21"}
        stored = {"a": "123456789012345680e12", "b": "1k", "c": "10E", "d": "1e+21"}
        self.assertEqual(self.made(written, "application/yaml"), stored)

    def test_too_fine(self) -> None:
        """Amounts are rounded up to thousandths, in any notation."""
        written = {"a": "1e-10", "b": '"1e-5"', "c": '"1500u"', "d": '"0.0000000001"', "e": '"1e-3"'}
        self.assertEqual(self.made(written), {"a": "1e-3", "b": "1e-3", "c": "2m", "d": "1m", "e": "1e-3"})

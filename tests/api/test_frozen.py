"""Tests for L{kubetwist.api.frozen}."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import orjson
from hypothesis import given

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.frozen import frozen, mutable_copy

from .strategies import documents

CHANGES: tuple[Callable[[Any], object], ...] = (
    lambda obj: obj.__setitem__("a", 1),
    lambda obj: obj.pop("a"),
    lambda obj: obj.update(a=1),
    lambda obj: obj.setdefault("b", 1),
    lambda obj: obj.clear(),
    lambda obj: obj["a"].append(1),
    lambda obj: obj["a"].sort(),
    lambda obj: obj["a"].__delitem__(0),
    lambda obj: obj["a"][0].update(x=2),
)


class FrozenTests(SynchronousTestCase):
    """Tests for immutable objects."""

    @given(documents)
    def test_same(self, document: Any) -> None:
        """A frozen object equals the original, and is encoded alike."""
        made = frozen(document)
        self.assertEqual(made, document)
        self.assertEqual(orjson.dumps(made), orjson.dumps(document))

    def test_refused(self) -> None:
        """Neither the object nor any value in it can be changed, by any method."""
        made = frozen({"a": [{"x": 1}]})
        for change in CHANGES:
            self.assertIn("object is immutable", str(self.assertRaises(TypeError, change, made)))
        self.assertEqual(made, {"a": [{"x": 1}]})

    def test_copies(self) -> None:
        """Mutable, deep and pickled copies are plain and may be changed; a shallow copy is the object itself."""
        made = frozen({"a": [{"x": 1}]})
        self.assertIs(copy.copy(made), made)
        for copied in (mutable_copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            self.assertIs(type(copied), dict)
            copied["a"][0]["x"] = 2
        self.assertEqual(made, {"a": [{"x": 1}]})

    def test_independent(self) -> None:
        """A change of the original does not change the frozen copy."""
        original: dict[str, Any] = {"a": [1]}
        made = frozen(original)
        original["a"].append(2)
        self.assertEqual(made, {"a": [1]})

"""Tests of L{kubetwist.registry.generic.floats}."""

from __future__ import annotations

import copy
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.floats import remove_floats, restore_floats


class FloatTests(SynchronousTestCase):
    """Tests of floats that decoding has converted to integers."""

    SENT: Any = {"metadata": {"a": 1.0}, "spec": {"a": 1.0, "b": [1, 2.0, {"c": 3.0}], "d": 1.5}, "gone": 1.0}  # noqa: RUF012
    OBJ: Any = {"metadata": {"a": 1}, "spec": {"a": 1, "b": [1, 2, {"c": 3}], "d": 1.5}}  # noqa: RUF012

    def test_restore(self) -> None:
        """Floats are restored where the object has the integers, except in its metadata, and removed again."""
        obj = copy.deepcopy(self.OBJ)
        undo = restore_floats(obj, self.SENT)
        self.assertEqual(str(obj["spec"]), str(self.SENT["spec"]))
        self.assertEqual(str(obj["metadata"]), str(self.OBJ["metadata"]))
        remove_floats(undo)
        self.assertEqual(str(obj), str(self.OBJ))

    def test_other_values(self) -> None:
        """Other numbers, and lists of another length, are unchanged."""
        obj = {"spec": {"a": 5, "b": [1, 2], "d": True}}
        self.assertEqual(restore_floats(obj, self.SENT), [])
        self.assertEqual(restore_floats(obj, None), [])

    def test_replaced_values(self) -> None:
        """Values that replaced a restored float, and removed ones, are unchanged by the removal."""
        obj: Any = {"x": 1, "y": 2, "z": 3}
        undo = restore_floats(obj, {"x": 1.0, "y": 2.0, "z": 3.0})
        obj["x"] = 7
        del obj["y"]
        remove_floats(undo)
        self.assertEqual(str(obj), str({"x": 7, "z": 3}))

"""Tests for types that two threads build at the same time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import JSONObject
from kubetwist.schema.merge.builder import MergeTypeBuilder
from kubetwist.schema.merge.types import MapType
from kubetwist.schema.typebuilder import TypeBuilder

#: Seconds within which a thread that does not wait for another one ends.
_ENOUGH = 0.1
OUTER, INNER = "io.k8s.api.core.v1.PodSpec", "io.k8s.api.core.v1.Affinity"
SCHEMAS: dict[str, JSONObject] = {
    OUTER: {"type": "object", "properties": {"affinity": {"$ref": f"#/definitions/{INNER}"}}},
    INNER: {"type": "object", "properties": {"name": {"type": "string"}, "outer": {"$ref": f"#/definitions/{OUTER}"}}},
}


class ThreadTests(SynchronousTestCase):
    """Tests for builders of types."""

    def _use_concurrently(self, use: Callable[[], Any]) -> tuple[Callable[[str], JSONObject], list[Any]]:
        """
        Look definitions up, and let another thread use the outer type while the inner one is looked up.

        @return: The lookup, and the results of the other thread.
        """
        found: list[Any] = []
        begun = Event()

        def other() -> None:
            begun.set()
            found.append(use())

        thread = Thread(target=other, daemon=True)

        def look_up(definition: str) -> JSONObject:
            if definition == INNER and not begun.is_set():
                thread.start()
                begun.wait()
                # The other thread either uses incomplete types and ends, or waits for this thread.
                thread.join(_ENOUGH)
                self.addCleanup(thread.join)
            return SCHEMAS[definition]

        self.thread = thread
        return look_up, found

    def test_merge_types(self) -> None:
        """A merge type is used only when it and all types that it refers to are complete."""

        def use() -> int:
            outer = builder.type_for_definition(OUTER)
            assert isinstance(outer, MapType)
            return len(outer.fields)

        look_up, found = self._use_concurrently(use)
        builder = MergeTypeBuilder(look_up)
        self.assertEqual(use(), 1)
        self.thread.join()
        self.assertEqual(found, [1])

    def test_readers(self) -> None:
        """A type that another thread is about to compile decodes values as it does afterwards."""
        value = {"affinity": {"name": "a", "outer": {"affinity": {"name": "b"}}}}

        def use() -> Any:
            return builder.struct(OUTER).compiled()(value, [])

        look_up, found = self._use_concurrently(use)
        builder = TypeBuilder(look_up)
        self.assertEqual(use(), value)
        self.thread.join()
        self.assertEqual(found, [value])

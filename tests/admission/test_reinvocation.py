"""Tests for L{kubetwist.admission.reinvocation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.reinvocation import ReinvokeContext, canonical_json, replace_in_place
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, patch, webhook


class ReinvocationTests(WebhookTestCase):
    """Tests of reinvoked webhooks."""

    def test_reinvocation(self) -> None:
        """A webhook with reinvocationPolicy IfNeeded is called again once if a later webhook changed the object."""
        self.configure(
            webhook("a.example.org", reinvocationPolicy="IfNeeded"),
            webhook("b.example.org"),
            webhook("c.example.org", reinvocationPolicy="IfNeeded"),
            mutating=True,
        )

        def answer(url: str, review: Any) -> Any:
            data = review["request"]["object"].get("data") or {}
            name = url[-13]
            return (
                patch(("add", "/data", {**data, name: str(int(data.get(name, "0")) + 1)}))
                if name != "c"
                else {"allowed": True}
            )

        self.outgoing.answer = answer
        self.assertEqual(self.config_map()["data"], {"a": "2", "b": "1"})
        self.assertEqual([url[-13] for url, _ in self.outgoing.calls], ["a", "b", "c", "a", "c"])


class RoundsTests(SynchronousTestCase):
    """Tests for L{ReinvokeContext}, L{canonical_json} and L{replace_in_place}."""

    def test_to_reinvoke(self) -> None:
        """After a change the previously invoked webhooks are reinvoked; later ones only after another change."""
        rounds = ReinvokeContext()
        rounds.previously_invoked.add("a")
        rounds.require_reinvocation()
        rounds.previously_invoked.add("b")
        self.assertEqual((rounds.to_reinvoke, rounds.previously_invoked), ({"a"}, {"b"}))
        rounds.require_reinvocation()
        self.assertEqual((rounds.to_reinvoke, rounds.previously_invoked), ({"a", "b"}, set()))

    def test_canonical_json(self) -> None:
        """Objects that differ only in the order of their keys are equal."""
        self.assertEqual(
            canonical_json({"a": 1, "b": {"c": 2, "d": 3}}), canonical_json({"b": {"d": 3, "c": 2}, "a": 1})
        )
        self.assertNotEqual(canonical_json({"a": 1}), canonical_json({"a": 2}))
        self.assertEqual(canonical_json(None), b"")

    def test_replace(self) -> None:
        """The object and its metadata are replaced in place."""
        meta = {"name": "a", "labels": {"x": "y"}}
        obj = {"metadata": meta, "spec": {"old": True}}
        replace_in_place(obj, {"metadata": {"name": "a"}, "data": {"new": "1"}})
        self.assertEqual(obj, {"metadata": {"name": "a"}, "data": {"new": "1"}})
        self.assertIs(obj["metadata"], meta)

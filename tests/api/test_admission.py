"""Tests for L{kubetwist.api.admission} and L{kubetwist.api.frozen}."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.admission import AdmissionAttributes
from kubetwist.api.frozen import frozen, mutable_copy
from kubetwist.api.options import CreateOptions, DeleteOptions, UpdateOptions
from kubetwist.api.resource import GroupVersionKind, UserInfo

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


class FrozenTests(SynchronousTestCase):
    """Tests for frozen objects."""

    @given(VALUES)
    def test_same(self, value: Any) -> None:
        """Frozen objects are equal to the original, are encoded alike, and can be copied."""
        shared = frozen(value)
        self.assertEqual(shared, value)
        self.assertEqual(orjson.dumps(shared), orjson.dumps(value))
        for made in (mutable_copy(shared), copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
            self.assertEqual(made, value)
            self.assertIs(type(made), type(value))

    def test_refused(self) -> None:
        """Dictionaries and lists cannot be changed in any way, at any depth."""
        obj = frozen({"a": {"b": [1, {"c": 2}]}})
        attempts: list[Any] = [
            lambda: obj.update(x=1),
            lambda: obj.setdefault("x", 1),
            lambda: obj.pop("a"),
            lambda: obj.popitem(),
            lambda: obj.clear(),
            lambda: obj.__setitem__("a", 1),
            lambda: obj["a"].__delitem__("b"),
            lambda: obj["a"].__ior__({"x": 1}),
            lambda: obj["a"]["b"].append(1),
            lambda: obj["a"]["b"].extend([1]),
            lambda: obj["a"]["b"].insert(0, 1),
            lambda: obj["a"]["b"].pop(),
            lambda: obj["a"]["b"].remove(1),
            lambda: obj["a"]["b"].reverse(),
            lambda: obj["a"]["b"].sort(),
            lambda: obj["a"]["b"].clear(),
            lambda: obj["a"]["b"].__setitem__(0, 1),
            lambda: obj["a"]["b"].__iadd__([1]),
            lambda: obj["a"]["b"].__imul__(2),
            lambda: obj["a"]["b"][1].update(c=3),
        ]
        for attempt in attempts:
            with self.assertRaises(TypeError):
                attempt()
        self.assertEqual(obj, {"a": {"b": [1, {"c": 2}]}})


def attributes(obj: Any = None, old: Any = None, options: Any = None, **more: Any) -> AdmissionAttributes:
    """Return the attributes of a write."""
    context: Any = None
    operation = more.pop("operation", "CREATE")
    name = more.pop("name", "")
    return AdmissionAttributes(
        operation, "", "v1", "pods", "", "Pod", "ns", name, obj, old, UserInfo("u"), False, context, options, **more
    )


class AttributesTests(SynchronousTestCase):
    """Tests for L{AdmissionAttributes}."""

    def test_old_object(self) -> None:
        """The old object is loaded once, at first access."""
        made: list[int] = []

        def load() -> Any:
            made.append(1)
            return {"a": [1]}

        one = attributes(old=load)
        self.assertEqual(made, [])
        self.assertIs(one.old_object, one.old_object)
        self.assertEqual((one.old_object, made), ({"a": [1]}, [1]))
        self.assertIsNone(attributes().old_object)

    def test_names(self) -> None:
        """An error for an object without a name has its C{generateName}."""
        self.assertEqual(attributes({"metadata": {}}, name="n").shown_name, "n")
        self.assertEqual(attributes({"metadata": {"generateName": "g-"}}).shown_name, "g-")
        self.assertEqual(attributes({"metadata": {}}).shown_name, "Unknown")
        self.assertEqual(attributes({"kind": "PodExecOptions"}).shown_name, "Unknown/errorGettingName")
        self.assertEqual(attributes().shown_name, "Unknown")
        error = attributes({"metadata": {"generateName": "g-"}}).forbidden("no")
        self.assertEqual((error.code, error.message), (403, 'pods "g-" is forbidden: no'))

    def test_options(self) -> None:
        """Options are shown as API objects without absent fields."""
        shown = attributes(options=CreateOptions(dry_run=True, field_manager="m")).options
        expected = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "m"}
        self.assertEqual(shown, expected)
        shown = attributes(options=UpdateOptions(), operation="UPDATE").options
        self.assertEqual(shown, {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"})
        deletion = DeleteOptions(grace_period_seconds=0, precondition_uid="u", orphan_dependents=False, dry_run=True)
        shown = attributes(options=deletion, operation="DELETE").options
        self.assertEqual(
            shown,
            {
                "kind": "DeleteOptions",
                "apiVersion": "meta.k8s.io/v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u"},
                "orphanDependents": False,
                "dryRun": ["All"],
            },
        )
        self.assertIsNone(attributes(operation="CONNECT").options)

    def test_kinds(self) -> None:
        """The kind of the object may differ from the kind of the request."""
        one = attributes(object_kind=GroupVersionKind("", "v2", "Pod"))
        self.assertEqual((one.request_kind.version, one.object_kind.version), ("v1", "v2"))
        self.assertEqual(one.request_resource, ("", "v1", "pods"))

    def test_annotations(self) -> None:
        """Annotations have a domain and a name, and are not overwritten."""
        recorded: list[Any] = []
        one = attributes(annotate=lambda *arguments: recorded.append(arguments))
        one.annotate("example.org/a", "1")
        one.annotate("example.org/a", "1")
        one.annotate("example.org/b", "2", "Request")
        for key, value, level in (
            ("a", "1", "Metadata"),
            ("example.org/a", "2", "Metadata"),
            ("example.org/c d", "1", "Metadata"),
            ("a/b/c", "1", "Metadata"),
            ("example.org/d", "1", "None"),
        ):
            with self.assertRaises(ValueError):
                one.annotate(key, value, level)
        self.assertEqual(set(recorded), {("example.org/a", "1", "Metadata"), ("example.org/b", "2", "Request")})

"""Tests for L{kubetwist.schema.merge.types}, L{kubetwist.schema.merge.lists} and L{kubetwist.schema.merge.builder}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, GroupVersionKind
from kubetwist.schema.merge import types
from kubetwist.schema.merge.builder import MergeTypeBuilder
from kubetwist.schema.merge.fieldset import FieldSet
from kubetwist.schema.merge.types import (
    MergeType,
    TypedError,
)

from ..release import definitions

KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["host", "port"],
    "items": {
        "type": "object",
        "properties": {
            "host": {"type": "string"},
            "port": {"type": "integer", "default": 443},
            "weight": {"type": "number"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        },
    },
}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "on": {"type": "boolean"},
        "count": {"type": "integer"},
        "size": {"x-kubernetes-int-or-string": True},
        "plain": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "hops": KEYED,
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        "inner": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "free": FREE,
    },
}


def build(schema: dict[str, Any]) -> MergeType:
    """Return the type of a schema."""
    return MergeTypeBuilder({}.__getitem__).inline(schema)


def built_in(kind: str, api_version: str = "v1") -> MergeType:
    """Return the type of a kind."""
    return definitions().merge_type_for(GroupVersionKind(*GroupVersion.parse(api_version), kind))


TYPE = build(SCHEMA)


class AddedTests(SynchronousTestCase):
    """Tests for the fields of added values, as owned by updaters."""

    def check(self, value: dict[str, Any], expected: FieldSet) -> None:
        """Assert the added fields of a value, compared to an empty object."""
        changed, removed = TYPE.compare({}, value)
        self.assertEqual(changed or {}, expected)
        self.assertIsNone(removed)

    def test_scalars(self) -> None:
        """Scalars, including null, are members without children."""
        self.check(
            {"name": "x", "on": False, "count": None, "size": "1"},
            {"f:name": {}, "f:on": {}, "f:count": {}, "f:size": {}},
        )

    def test_atomic(self) -> None:
        """Atomic lists and maps are members without children."""
        self.check({"plain": ["a"], "whole": {"a": "x"}}, {"f:plain": {}, "f:whole": {}})

    def test_granular(self) -> None:
        """Structs and maps are members with children."""
        self.check(
            {"labels": {"x": "1"}, "inner": {"a": "1"}},
            {"f:labels": {".": {}, "f:x": {}}, "f:inner": {".": {}, "f:a": {}}},
        )

    def test_empty(self) -> None:
        """An empty container is a member without children."""
        self.check({"labels": {}, "inner": None, "hops": []}, {"f:labels": {}, "f:inner": {}, "f:hops": {}})

    def test_items(self) -> None:
        """Items of map lists are identified by their keys, with defaults for missing ones; items of sets by value."""
        self.check(
            {"hops": [{"host": "a", "weight": 1}], "tags": ["x", "y"]},
            {
                "f:hops": {".": {}, 'k:{"host":"a","port":443}': {".": {}, "f:host": {}, "f:weight": {}}},
                "f:tags": {".": {}, 'v:"x"': {}, 'v:"y"': {}},
            },
        )

    def test_key_without_default(self) -> None:
        """A missing key without a default is not a part of the path element."""
        self.check({"hops": [{"port": 1}]}, {"f:hops": {".": {}, 'k:{"port":1}': {".": {}, "f:port": {}}}})

    def test_repeated_items(self) -> None:
        """Repeated items are owned together, without their fields."""
        self.check(
            {"hops": [{"host": "a"}, {"host": "a", "weight": 1}]},
            {"f:hops": {".": {}, 'k:{"host":"a","port":443}': {}}},
        )

    def test_deduced(self) -> None:
        """With the deduced type, maps are granular and lists atomic."""
        self.check(
            {"free": {"a": {"b": [1, {"c": 2}], "d": {}}}},
            {"f:free": {".": {}, "f:a": {".": {}, "f:b": {}, "f:d": {}}}},
        )

    def test_undeclared(self) -> None:
        """A field that is not in the schema cannot be owned."""
        self.assertRaises(TypedError, TYPE.compare, {}, {"other": 1})


class CompareTests(SynchronousTestCase):
    """Tests for the changes between two values."""

    def check(
        self, old: dict[str, Any], new: dict[str, Any], changed: FieldSet | None, removed: FieldSet | None
    ) -> None:
        """Assert the changes in both directions."""
        self.assertEqual(TYPE.compare(old, new), (changed, removed))

    def test_modified(self) -> None:
        """Modified scalars are reported, unchanged ones are not."""
        self.check(
            {"name": "a", "inner": {"a": "1", "b": "2"}},
            {"name": "a", "inner": {"a": "1", "b": "3"}},
            {"f:inner": {"f:b": {}}},
            None,
        )

    def test_removed(self) -> None:
        """A removed value is reported with all its children."""
        self.check({"name": "a", "inner": {"a": "1"}}, {"name": "a"}, None, {"f:inner": {".": {}, "f:a": {}}})

    def test_emptied(self) -> None:
        """A map that lost its entries but exists is not reported as removed."""
        self.check({"labels": {"a": "1"}}, {"labels": {}}, None, {"f:labels": {"f:a": {}}})
        self.check({"labels": {}}, {"labels": {"a": "1"}}, {"f:labels": {"f:a": {}}}, None)
        self.check({"labels": {}}, {"labels": None}, {"f:labels": {}}, None)

    def test_order(self) -> None:
        """The order of items is ignored, unless the list is atomic."""
        hops = [{"host": "a"}, {"host": "b"}]
        self.check({"hops": hops, "tags": ["x", "y"]}, {"hops": hops[::-1], "tags": ["y", "x"]}, None, None)
        self.check({"plain": ["x", "y"]}, {"plain": ["y", "x"]}, {"f:plain": {}}, None)

    def test_items(self) -> None:
        """Items are added, modified and removed separately."""
        self.check(
            {"hops": [{"host": "a", "weight": 1}, {"host": "b"}]},
            {"hops": [{"host": "c"}, {"host": "a", "weight": 2}]},
            {
                "f:hops": {
                    'k:{"host":"c","port":443}': {".": {}, "f:host": {}},
                    'k:{"host":"a","port":443}': {"f:weight": {}},
                }
            },
            {"f:hops": {'k:{"host":"b","port":443}': {".": {}, "f:host": {}}}},
        )

    def test_retyped(self) -> None:
        """A change of an untyped value from 1 to true is reported, from 1 to 1.0 not."""
        free = {"a": 1, "b": [{"c": 0}], "d": {"e": True}}
        for changes, step in (({"a": True}, "f:a"), ({"b": [{"c": False}]}, "f:b"), ({"d": {"e": 1}}, "f:d")):
            changed, removed = TYPE.compare({"free": free}, {"free": {**free, **changes}})
            self.assertEqual((list(changed["f:free"]), removed), ([step], None), changes)  # type: ignore[index]
        changed, removed = TYPE.compare({"free": free, "count": 1}, {"free": {**free, "a": 1.0}, "count": 2})
        self.assertEqual((changed, removed), ({"f:count": {}}, None))

    def test_retyped_items(self) -> None:
        """A keyed item whose nested untyped value changes its type is reported."""
        items = {"type": "object", "properties": {"k": {"type": "string"}, "v": FREE}}
        kind = build(
            {"type": "object", "properties": {"l": {**KEYED, "x-kubernetes-list-map-keys": ["k"], "items": items}}}
        )
        changed, _ = kind.compare({"l": [{"k": "x", "v": {"a": 1}}]}, {"l": [{"k": "x", "v": {"a": True}}]})
        self.assertEqual(changed, {"f:l": {'k:{"k":"x"}': {"f:v": {"f:a": {}}}}})

    def test_contains_untyped(self) -> None:
        """Only types with untyped parts compare the Python types of equal values."""
        self.assertTrue(TYPE.contains_untyped())
        self.assertFalse(build(KEYED).contains_untyped())
        self.assertTrue(build(FREE).contains_untyped())
        for kind, api_version, mixes in (
            ("Pod", "v1", False),
            ("Deployment", "apps/v1", False),
            ("ControllerRevision", "apps/v1", True),
        ):
            self.assertEqual(built_in(kind, api_version).contains_untyped(), mixes, kind)
        typed = {name: part for name, part in SCHEMA["properties"].items() if name not in ("free", "size")}
        self.assertFalse(build({"type": "object", "properties": typed}).contains_untyped())

    def test_repeats(self) -> None:
        """Items that become, remain or cease to be repeated are reported together."""
        one, two = {"host": "a"}, [{"host": "a"}, {"host": "a", "weight": 1}]
        step = 'k:{"host":"a","port":443}'
        self.check({"hops": [one]}, {"hops": two}, {"f:hops": {step: {}}}, {"f:hops": {step: {".": {}, "f:host": {}}}})
        self.check({"hops": two}, {"hops": [one]}, {"f:hops": {step: {".": {}, "f:host": {}}}}, {"f:hops": {step: {}}})
        self.check({"hops": two}, {"hops": [one, *two]}, {"f:hops": {step: {}}}, None)

    def test_other_type(self) -> None:
        """An untyped value of another type is reported as modified, and its old fields as removed."""
        self.check(
            {"free": {"a": {"b": 1}}}, {"free": {"a": 5}}, {"f:free": {"f:a": {}}}, {"f:free": {"f:a": {"f:b": {}}}}
        )
        self.check({"free": {"a": [1]}}, {"free": {"a": {"b": 1}}}, {"f:free": {"f:a": {".": {}, "f:b": {}}}}, None)


class OwnedTests(SynchronousTestCase):
    """Tests for the fields of applied values, as owned by appliers."""

    def test_owned(self) -> None:
        """Unlike with updates, structs and maps are not owned themselves unless they are empty; empty lists never."""
        value = {
            "inner": {"a": "1"},
            "labels": {},
            "plain": [],
            "tags": [],
            "hops": [{"host": "a", "tags": ["x"]}],
            "count": None,
            "free": {"a": {"b": [1]}},
        }
        expected = {
            "f:inner": {"f:a": {}},
            "f:labels": {},
            "f:plain": {},
            "f:hops": {'k:{"host":"a","port":443}': {".": {}, "f:host": {}, "f:tags": {'v:"x"': {}}}},
            "f:count": {},
            "f:free": {"f:a": {".": {}, "f:b": {}}},
        }
        self.assertEqual(TYPE.to_field_set(value), expected)


class MergeTests(SynchronousTestCase):
    """Tests for the merge of an applied value into a live one."""

    def check(self, live: Any, applied: Any, expected: Any) -> None:
        """Assert the merge of values of one field."""
        for name in expected:
            self.assertEqual(TYPE.merge(live, applied).get(name), expected[name])

    def test_fields(self) -> None:
        """Fields are replaced or added, and none is removed; a null does not remove a map either."""
        self.check(
            {"name": "a", "inner": {"a": "1"}, "labels": {"x": "1"}, "plain": ["p"]},
            {"inner": {"b": "2"}, "labels": None, "plain": ["q"]},
            {"name": "a", "inner": {"a": "1", "b": "2"}, "labels": {"x": "1"}, "plain": ["q"]},
        )

    def test_item_order(self) -> None:
        """Items of the live list only keep their position, shared ones take the applied order."""
        for live, applied, expected in (
            ("abc", "ca", "bca"),
            ("abc", "xb", "axbc"),
            ("abc", "d", "abcd"),
            ("abcd", "db", "acdb"),
            ("ab", "bca", "bca"),
            ("", "ba", "ba"),
            ("ab", "", "ab"),
        ):
            self.check({"tags": [*live]}, {"tags": [*applied]}, {"tags": [*expected]})

    def test_items(self) -> None:
        """Items with the same keys are merged."""
        self.check(
            {"hops": [{"host": "a", "weight": 1}]},
            {"hops": [{"host": "a", "tags": ["x"], "port": 443}]},
            {"hops": [{"host": "a", "weight": 1, "tags": ["x"], "port": 443}]},
        )

    def test_repeated_items(self) -> None:
        """Repeated items with applied keys are replaced, and other repeated items remain."""
        self.check(
            {"hops": [{"host": "a", "weight": 1}, {"host": "b"}, {"host": "a"}, {"host": "b"}]},
            {"hops": [{"host": "a", "weight": 3}]},
            {"hops": [{"host": "a", "weight": 3}, {"host": "b"}, {"host": "b"}]},
        )

    def test_remove_items(self) -> None:
        """Fields and items can be removed; emptied containers remain unless they are removed themselves."""
        value = {
            "name": "x",
            "labels": {"a": "1"},
            "inner": {"a": "1", "b": "2"},
            "hops": [{"host": "a"}, {"host": "b"}],
        }
        fields = {
            "f:labels": {"f:a": {}},
            "f:inner": {"f:b": {}},
            "f:hops": {'k:{"host":"a","port":443}': {".": {}, "f:host": {}}},
        }
        self.assertEqual(
            TYPE.remove_items(value, fields), {"name": "x", "labels": {}, "inner": {"a": "1"}, "hops": [{"host": "b"}]}
        )
        self.assertEqual(TYPE.remove_items(value, {"f:labels": {".": {}, "f:a": {}}})["name"], "x")
        self.assertNotIn("labels", TYPE.remove_items(value, {"f:labels": {".": {}, "f:a": {}}}))
        hop = 'k:{"host":"a","port":443}'
        self.assertEqual(TYPE.remove_items({"hops": [{"host": "a"}]}, {"f:hops": {hop: {}}}), {"hops": []})
        self.assertEqual(
            TYPE.remove_items({"hops": [{"host": "a"}]}, {"f:hops": {hop: {"f:host": {}}}}), {"hops": [{}]}
        )


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.just(1.5), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["host", "port", "tags", "weight", "a", "x"]), inner, max_size=2),
    ),
    max_leaves=6,
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "name": ANYTHING,
        "on": ANYTHING,
        "count": ANYTHING,
        "size": ANYTHING,
        "plain": st.one_of(ANYTHING, st.lists(ANYTHING, max_size=2)),
        "tags": st.one_of(ANYTHING, st.lists(ANYTHING, max_size=2)),
        "hops": st.one_of(ANYTHING, st.lists(st.dictionaries(st.sampled_from(["host", "port", "tags"]), ANYTHING))),
        "labels": ANYTHING,
        "whole": ANYTHING,
        "inner": ANYTHING,
        "free": ANYTHING,
    },
)


class AcceptsTests(SynchronousTestCase):
    """Tests that L{MergeType.accepts} agrees with L{MergeType.validate}."""

    @settings(max_examples=300, deadline=None)
    @given(OBJECTS)
    def test_agrees(self, value: dict[str, Any]) -> None:
        """A value is accepted exactly if it has no errors, except for items with the same key."""
        self.assertEqual(TYPE.accepts(value), TYPE.validate(value, True) == [])

    def test_keys(self) -> None:
        """An item needs one of its keys, unless one has a default."""
        keyless = build({"type": "object", "properties": {"l": {**KEYED, "x-kubernetes-list-map-keys": ["host"]}}})
        for kind in (TYPE, keyless):
            for item in ({}, {"host": "a"}, {"port": 1}, None, "a"):
                name = "hops" if kind is TYPE else "l"
                self.assertEqual(kind.accepts({name: [item]}), kind.validate({name: [item]}, True) == [], item)

    def test_overridden(self) -> None:
        """A struct that is atomic at one field has the fields of its type."""
        pods = built_in("Pod")
        self.assertTrue(pods.accepts({"spec": {"nodeSelector": {"a": "b"}}}))
        self.assertFalse(pods.accepts({"spec": {"nodeSelector": {"a": 1}}}))


class ValidateTests(SynchronousTestCase):
    """Tests for the errors of applied values, with the messages of structured-merge-diff."""

    def check(self, value: Any, expected: str) -> None:
        """Assert the errors of one value."""
        self.assertEqual(str(TypedError.from_errors(TYPE.validate(value, False))), expected)

    def test_messages(self) -> None:
        """Each error contains its path."""
        for value, expected in (
            ({"other": 1}, ".other: field not declared in schema"),
            ({"inner": {"c": 1}}, ".inner.c: field not declared in schema"),
            ({"name": 1}, ".name: expected string, got &value.valueUnstructured{Value:1}"),
            ({"count": "x"}, ".count: expected numeric (int or float), got string"),
            ({"on": "x"}, ".on: expected boolean, got &{x}"),
            ({"inner": [1]}, ".inner: expected map, got &{[1]}"),
            ({"plain": {"a": 1}}, ".plain: expected list, got &{map[a:1]}"),
            ({"plain": ["x", 2]}, ".plain[1]: expected string, got &value.valueUnstructured{Value:2}"),
            ({"tags": ["q", "q"]}, '.tags: duplicate entries for key [="q"]'),
            ({"tags": [{}]}, ".tags: element 0: associative list without keys has an element that's a map type"),
            (
                {"tags": [None]},
                ".tags: element 0: associative list without keys has an element that's an explicit null",
            ),
            ({"tags": [[]]}, ".tags: element 0: not supported: associative list with lists as elements"),
            (
                {"hops": [{"host": "a"}, {"host": "a", "port": 443}]},
                '.hops: duplicate entries for key [host="a",port=443]',
            ),
            (
                {"hops": [{"host": "c", "weight": "x"}]},
                '.hops[host="c",port=443].weight: expected numeric (int or float), got string',
            ),
            ({"hops": ["x"]}, ".hops: element 0: associative list with keys may not have non-map elements"),
            ({"hops": [None]}, ".hops: element 0: associative list with keys may not have a null element"),
        ):
            self.check(value, expected)

    def test_several(self) -> None:
        """Each of several errors is on a separate line."""
        self.check(
            {"name": 1, "count": "x"},
            "errors:\n  .name: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .count: expected numeric (int or float), got string",
        )

    def test_no_keys(self) -> None:
        """An item without any of its keys is rejected if no key has a default."""
        schema = {**KEYED, "x-kubernetes-list-map-keys": ["host"]}
        [(_, message)] = build(schema).validate([{"port": 1}], False)
        self.assertEqual(
            message,
            'element 0: associative list with keys has an element that omits all key fields ["host"] '
            "(and doesn't have default values for any key fields)",
        )

    def test_valid(self) -> None:
        """Null is valid for every type, and duplicates are valid where they are allowed."""
        value = dict.fromkeys(SCHEMA["properties"])
        self.assertEqual(TYPE.validate(value, False), [])
        self.assertEqual(TYPE.validate({"tags": ["q", "q"]}, True), [])


class ReconcileTests(SynchronousTestCase):
    """Tests for sets that were recorded with other types."""

    def test_atomic_now(self) -> None:
        """Owners of a part of a value that became atomic own the whole value."""
        fields = {"f:whole": {".": {}, "f:a": {}}, "f:plain": {'v:"x"': {}}, "f:inner": {"f:a": {}}}
        self.assertEqual(TYPE.reconcile_field_set(fields), {"f:whole": {}, "f:plain": {}, "f:inner": {"f:a": {}}})

    def test_unchanged(self) -> None:
        """A set that fits its type is returned unchanged."""
        fields = TYPE.compare({}, {"hops": [{"host": "a"}], "whole": {"a": "1"}, "free": {"a": {"b": 1}}})[0]
        assert fields is not None
        self.assertIs(TYPE.reconcile_field_set(fields), fields)


class BuiltInTests(SynchronousTestCase):
    """Tests for the types of built-in kinds."""

    def test_every_kind_compiles(self) -> None:
        """Every kind of the release has a type that accepts its zero object."""
        release = definitions()
        for gvk in release.gvks():
            self.assertEqual(release.merge_type_for(gvk).validate(release.type_for(gvk).zero(), False), [], gvk)

    def test_port_protocol(self) -> None:
        """Ports are identified by number and protocol, with TCP as the default."""
        kind = built_in("Service")
        owned = kind.to_field_set({"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}})
        self.assertEqual(
            sorted(owned["f:spec"]["f:ports"]), ['k:{"port":53,"protocol":"TCP"}', 'k:{"port":53,"protocol":"UDP"}']
        )

    def test_key_without_omitempty(self) -> None:
        """A missing key without C{omitempty} is empty."""
        owned = built_in("Pod").to_field_set({"spec": {"containers": [{"image": "x"}]}})
        self.assertEqual(list(owned["f:spec"]["f:containers"]), ['k:{"name":""}'])

    def test_atomic_structs(self) -> None:
        """Selectors and some fields with other structs are atomic."""
        owned = built_in("Deployment", "apps/v1").to_field_set({"spec": {"selector": {"matchLabels": {"a": "b"}}}})
        self.assertEqual(owned, {"f:spec": {"f:selector": {}}})

    def test_quantities_and_raw_values(self) -> None:
        """Quantities are scalars, and embedded objects are atomic."""
        claim = built_in("PersistentVolumeClaim").to_field_set(
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
        )
        self.assertEqual(claim, {"f:spec": {"f:resources": {"f:requests": {"f:storage": {}}}}})
        revision = built_in("ControllerRevision", "apps/v1").to_field_set({"data": {"a": {"b": 1}}})
        self.assertEqual(revision, {"f:data": {}})

    def test_structural(self) -> None:
        """A custom resource has the metadata type of all objects, independent of its schema."""
        kind = definitions().merge_types.custom_resource_type({"type": "object", "properties": {"spec": SCHEMA}})
        value = {"metadata": {"finalizers": ["a"], "labels": {"x": "y"}}, "spec": {"on": True}}
        expected = {"f:metadata": {"f:finalizers": {'v:"a"': {}}, "f:labels": {"f:x": {}}}, "f:spec": {"f:on": {}}}
        self.assertEqual(kind.to_field_set(value), expected)
        self.assertEqual(kind.validate({"more": 1}, False), [(".more", "field not declared in schema")])
        open_kind = definitions().merge_types.custom_resource_type({"type": "object"}, True)
        self.assertEqual(open_kind.to_field_set({"more": {"a": [1]}}), {"f:more": {".": {}, "f:a": {}}})


class OverriddenTests(SynchronousTestCase):
    """Tests for fields with another ownership than their type."""

    def test_granular(self) -> None:
        """References are atomic, but the reference of a volume to its claim is granular."""

        def field(kind: str, *path: str) -> Any:
            found: Any = definitions().merge_type_for(GroupVersionKind("", "v1", kind))
            for name in path:
                found = found.field(name)
            return found

        self.assertTrue(field("Event", "involvedObject").atomic)
        claim = field("PersistentVolume", "spec", "claimRef")
        self.assertFalse(claim.atomic)
        self.assertIsNotNone(claim.field("namespace"))


class PathElementTests(SynchronousTestCase):
    """The path elements of names."""

    def test_kept(self) -> None:
        """Names of any length have path elements; those of short names are kept, up to a limit."""
        self.patch(types, "_MAX_KEPT", 2)
        elements = types._PathElements()
        for name in ("a", "b", "a", "c", "x" * 65):
            self.assertEqual(elements[name], f"f:{name}")
        self.assertEqual(list(elements), ["c"])
        self.assertIs(elements["c"], elements["c"])

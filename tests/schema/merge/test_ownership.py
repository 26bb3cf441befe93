"""Tests for L{kubetwist.schema.merge.ownership}."""

from __future__ import annotations

from typing import Any, ClassVar
from unittest import mock

import orjson
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonequality import same_value
from kubetwist.schema.merge.builder import MergeTypeBuilder
from kubetwist.schema.merge.fieldset import (
    FieldSet,
    field_set_from_paths,
    intersection,
    union,
)
from kubetwist.schema.merge.managedfields import (
    APPLY,
    UPDATE,
    Entry,
    Manager,
    Managers,
    decode_stored_entries,
    encode_entries,
)
from kubetwist.schema.merge.ownership import (
    Conflicts,
    Filter,
    MergeUpdater,
)
from kubetwist.schema.merge.types import (
    MergeType,
    TypedError,
)

Schema = dict[str, Any]

NAMES = ("a", "b", "c")
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
STRING: Schema = {"type": "string"}
SCALARS: st.SearchStrategy[Schema] = st.sampled_from([STRING, {"type": "integer"}, {"type": "boolean"}])


def structs(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Strategy of schemas of structs, some of them atomic."""
    fields = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1)
    return st.builds(
        lambda properties, atomic: {
            "type": "object",
            "properties": properties,
            **({"x-kubernetes-map-type": "atomic"} if atomic else {}),
        },
        fields,
        st.integers(0, 4).map(lambda number: number == 4),
    )


def lists(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    """Strategy of schemas of lists of all three types."""
    keyed = inner.map(
        lambda value: {
            "type": "array",
            "items": {"type": "object", "properties": {"k": STRING, "v": value}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    )
    sets = st.just({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"})
    return st.one_of(keyed, sets, st.just({"type": "array", "items": STRING}))


NESTED: st.SearchStrategy[Schema] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        structs(inner), lists(inner), inner.map(lambda schema: {"type": "object", "additionalProperties": schema})
    ),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.sampled_from(["x", "y", "z"]), NESTED, min_size=1).map(
    lambda properties: {"type": "object", "properties": properties}
)


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Strategy of values without empty containers, which are not owned in lists but owned in maps."""
    kind = schema["type"]
    if kind == "string":
        return st.sampled_from(NAMES)
    if kind == "integer":
        return st.integers(0, 2)
    if kind == "boolean":
        return st.booleans()
    if kind == "object" and "properties" in schema:
        names = st.sets(st.sampled_from(sorted(schema["properties"])), min_size=1)
        return names.flatmap(
            lambda chosen: st.fixed_dictionaries({name: values(schema["properties"][name]) for name in sorted(chosen)})
        )
    if kind == "object":
        return st.dictionaries(st.sampled_from(NAMES), values(schema["additionalProperties"]), min_size=1)
    if schema.get("x-kubernetes-list-type") == "map":
        item = st.fixed_dictionaries({"k": st.sampled_from(NAMES), "v": values(schema["items"]["properties"]["v"])})
        return st.lists(item, min_size=1, max_size=3, unique_by=lambda item: item["k"])
    return st.lists(values(schema["items"]), min_size=1, max_size=3, unique=True)


class OneVersion:
    """A kind with the versions C{v1} and C{v2}, which have the same schema; see L{MergeConverter}."""

    def __init__(self, kind: MergeType) -> None:
        self.kind = kind
        self.converted: list[tuple[str, str]] = []

    def type_of(self, api_version: str) -> MergeType | None:
        """Return the same type for both versions."""
        return self.kind if api_version in ("v1", "v2") else None

    def convert(self, obj: dict[str, Any], source: str, target: str, hub: str) -> dict[str, Any]:
        """Return the object."""
        self.converted.append((source, target))
        return obj


def rules(schema: Schema, allowed: Filter = Filter(), version: str = "v1") -> MergeUpdater:  # noqa: B008
    """Return the rules for objects of a schema."""
    kind = MergeTypeBuilder({}.__getitem__).inline(schema)
    return MergeUpdater(OneVersion(kind), version, {"v1": allowed, "v2": allowed})


def applier(name: str) -> Manager:
    """Return the key of an applier."""
    return Manager(APPLY, name, "", "")


def updater(name: str, version: str = "v1") -> Manager:
    """Return the key of an updater."""
    return Manager(UPDATE, name, version, "")


def data(kind: MergeUpdater, value: Any) -> Any:
    """Return an object without the order of lists and without empty containers."""
    return kind.type.to_field_set(value), [sorted(map(str, flat(value)))]


def flat(value: Any, path: tuple[str, ...] = ()) -> list[Any]:
    """Return the scalars in a value by path; items of lists are identified without their index."""
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in flat(item, (*path, name))]
    if isinstance(value, list):
        return [
            found
            for item in value
            for found in flat(item, (*path, f"[{item.get('k') if isinstance(item, dict) else ''}]"))
        ]
    return [] if value is None else [(path, value)]


@st.composite
def cases(draw: st.DrawFn, count: int) -> tuple[MergeUpdater, list[Any]]:
    """Strategy of rules of a schema with values."""
    schema = draw(SCHEMAS)
    return rules(schema), [draw(values(schema)) for _ in range(count)]


class ApplyTests(SynchronousTestCase):
    """Properties of apply for arbitrary schemas and objects."""

    @settings(max_examples=80, deadline=None)
    @given(cases(2))
    def test_idempotent(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """Applying the same object again changes neither the object nor the ownership."""
        kind, [live, applied] = case
        managers: Managers = {}
        once = kind.apply(managers, live, applied, applier("me"), NOW, True)
        before = dict(managers)
        twice = kind.apply(managers, once, applied, applier("me"), LATER, False)
        self.assertIs(twice, once)
        self.assertEqual(managers, before)

    @settings(max_examples=80, deadline=None)
    @given(cases(1))
    def test_applied_fields_are_owned(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """An applier owns exactly what it applied, and the object contains it."""
        kind, [applied] = case
        managers: Managers = {}
        made = kind.apply(managers, {}, applied, applier("me"), NOW, False)
        self.assertEqual(made, applied)
        self.assertEqual([entry.fields for entry in managers.values()], [kind.type.to_field_set(applied)])

    @settings(max_examples=80, deadline=None)
    @given(cases(2))
    def test_commute(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """Two appliers of disjoint fields produce the same object in either order."""
        kind, [one, other] = case
        try:
            first = self.both(kind, ("a", one), ("b", other))
            second = self.both(kind, ("b", other), ("a", one))
        except Conflicts:
            assume(False)
        self.assertEqual(data(kind, first[0]), data(kind, second[0]))
        self.assertEqual(
            {manager: entry.fields for manager, entry in first[1].items()},
            {manager: entry.fields for manager, entry in second[1].items()},
        )

    def both(self, kind: MergeUpdater, *applied: tuple[str, Any]) -> tuple[Any, Managers]:
        """Apply by two managers, one after the other."""
        managers: Managers = {}
        made: Any = {}
        for name, value in applied:
            made = kind.apply(managers, made, value, applier(name), NOW, False)
        return made, managers

    @settings(max_examples=80, deadline=None)
    @given(cases(2))
    def test_removed_fields(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """If an applier removes all that it applied, only the fields of the other applier remain."""
        kind, [one, other] = case
        managers: Managers = {}
        made = kind.apply(managers, {}, one, applier("a"), NOW, False)
        alone = made
        try:
            made = kind.apply(managers, made, other, applier("b"), NOW, False)
        except Conflicts:
            assume(False)
        made = kind.apply(managers, made, {}, applier("b"), NOW, False)
        self.assertEqual(data(kind, made), data(kind, alone))
        self.assertEqual([manager.name for manager in managers], ["a"])

    @settings(max_examples=80, deadline=None)
    @given(cases(2))
    def test_conflicts(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """A forced apply takes the changed fields from their owners, and no other fields."""
        kind, [one, other] = case
        managers: Managers = {}
        made = kind.apply(managers, {}, one, applier("a"), NOW, False)
        mine = managers[applier("a")].fields
        disputed: FieldSet = {}
        try:
            kind.apply(dict(managers), made, other, applier("b"), NOW, False)
        except Conflicts as conflicts:
            disputed = conflicts.fields()
            self.assertEqual(set(conflicts.fields_by_manager), {applier("a")})
            self.assertEqual(intersection(mine, disputed), disputed)
        forced = kind.apply(managers, made, other, applier("b"), NOW, True)
        left = managers[applier("a")].fields if applier("a") in managers else {}
        self.assertEqual(intersection(left, disputed), {})
        self.assertEqual(union(left, disputed), mine)
        self.assertLessEqual(set(map(str, flat(other))), set(map(str, flat(forced))))

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True))
    def test_merge_keeps_items(self, live: list[str], applied: list[str]) -> None:
        """A merge has every item of both lists once, and applied items in the applied order."""
        schema: Schema = {
            "type": "object",
            "properties": {
                "l": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"k": STRING}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                }
            },
        }
        one, other = ({"l": [{"k": key} for key in keys]} for keys in (live, applied))
        merged = [item["k"] for item in rules(schema).type.merge(one, other)["l"]]
        self.assertEqual(sorted(merged), sorted({*live, *applied}))
        self.assertEqual([key for key in merged if key in applied], applied)

    @settings(max_examples=60, deadline=None)
    @given(cases(2))
    def test_arguments_are_unchanged(self, case: tuple[MergeUpdater, list[Any]]) -> None:
        """Arguments are not modified."""
        kind, [live, applied] = case
        managers: Managers = {}
        kind.apply(managers, {}, live, applier("a"), NOW, False)
        before = repr((live, applied, managers))
        kind.apply(dict(managers), live, applied, applier("b"), NOW, True)
        kind.apply(dict(managers), live, {}, applier("a"), NOW, True)
        kind.update(dict(managers), live, applied, updater("u"), NOW)
        self.assertEqual(repr((live, applied, managers)), before)


class SameFieldsTests(SynchronousTestCase):
    """Writes by managers whose fields remain the same, for which shorter rules apply."""

    def write(self, kind: MergeUpdater, entries: Any, live: Any, value: Any, name: str, now: str) -> tuple[Any, Any]:
        """Update, or apply if the name is in upper case; return the object and its encoded entries."""
        managers = decode_stored_entries(entries)
        if name.isupper():
            value = kind.apply(managers, live, value, applier(name), now, True)
        else:
            kind.update(managers, live, value, updater(name), now)
        return value, encode_entries(managers)

    @settings(max_examples=150, deadline=None)
    @given(cases(3), st.lists(st.tuples(st.integers(0, 2), st.sampled_from("aABb")), max_size=6))
    def test_same(self, case: tuple[MergeUpdater, list[Any]], writes: list[tuple[int, str]]) -> None:
        """The entries are encoded as by the complete rules."""
        kind, values = case
        live, entries = {}, []
        for second, (index, name) in enumerate(writes):
            write = kind, entries, live, values[index], name, f"2026-01-01T00:00:{second:02}Z"
            before = orjson.dumps(entries)
            live, written = self.write(*write)
            self.assertEqual(orjson.dumps(entries), before)
            with (
                mock.patch.object(Entry, "keeps", lambda *arguments: False),
                mock.patch.object(Entry, "equals", lambda *arguments: False),
            ):
                complete = self.write(*write)
            self.assertEqual(orjson.dumps([live, written]), orjson.dumps(complete))
            entries = orjson.loads(orjson.dumps(written))

    def test_unmanaged(self) -> None:
        """Fields that no manager may own are removed from the entry of a client when they change."""
        kind = rules({**UpdateTests.SCHEMA, "properties": {**UpdateTests.SCHEMA["properties"], "kind": STRING}})
        fields = {"f:kind": {}, "f:spec": {"f:a": {}}}
        managers: Managers = {updater("a"): Entry("v1", NOW, fields)}
        kind.update(managers, {"spec": {"a": "1"}}, {"kind": "K", "spec": {"a": "2"}}, updater("a"), LATER)
        self.assertEqual(managers, {updater("a"): Entry("v1", LATER, {"f:spec": {"f:a": {}}})})

    def test_repeated(self) -> None:
        """A manager that changes its fields again gets a new time, and the encoded fields are not made again."""
        kind = rules(UpdateTests.SCHEMA)
        for name in "aA":
            live, entries = self.write(kind, [], {}, {"spec": {"b": "1", "a": "1"}}, name, NOW)
            again = self.write(kind, entries, live, {"spec": {"b": "2", "a": "1"}}, name, LATER)[1]
            self.assertEqual(again, [{**entries[0], "time": LATER}])
            self.assertIs(again[0]["fieldsV1"], entries[0]["fieldsV1"])


class UpdateTests(SynchronousTestCase):
    """Tests for updates."""

    SCHEMA: ClassVar[Schema] = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "additionalProperties": STRING},
            "status": {"type": "object", "additionalProperties": STRING},
        },
    }

    def test_changed_fields_are_owned(self) -> None:
        """An updater owns the changed field, and a manager without fields has no entry."""
        kind, managers = rules(self.SCHEMA), Managers()
        kind.update(managers, {}, {"spec": {"a": "1"}}, updater("one"), NOW)
        self.assertEqual(managers[updater("one")].fields, {"f:spec": {".": {}, "f:a": {}}})
        kind.update(managers, {"spec": {"a": "1"}}, {"spec": {"a": "2"}}, updater("two"), NOW)
        self.assertEqual(managers[updater("one")].fields, {"f:spec": {}})
        kind.update(managers, {"spec": {"a": "2"}}, {}, updater("two"), NOW)
        self.assertEqual(managers, {})

    def test_no_change(self) -> None:
        """An update without changes does not change the time."""
        kind, managers = rules(self.SCHEMA), Managers()
        kind.update(managers, {}, {"spec": {"a": "1"}}, updater("one"), NOW)
        before = dict(managers)
        kind.update(managers, {"spec": {"a": "1"}}, {"spec": {"a": "1"}}, updater("two"), LATER)
        self.assertEqual(managers, before)

    def test_second_update(self) -> None:
        """A second update adds to the fields of its manager and changes the time."""
        kind, managers = rules(self.SCHEMA), Managers()
        kind.update(managers, {}, {"spec": {"a": "1"}}, updater("one"), NOW)
        kind.update(managers, {"spec": {"a": "1"}}, {"spec": {"a": "1", "b": "1"}}, updater("one"), LATER)
        entry = managers[updater("one")]
        self.assertEqual((entry.fields, entry.time), ({"f:spec": {".": {}, "f:a": {}, "f:b": {}}}, LATER))

    def test_filter(self) -> None:
        """Fields that an endpoint filters are neither owned by its clients nor taken from other managers."""
        managers = Managers()
        status = rules(self.SCHEMA, Filter(excluded=field_set_from_paths([("f:spec",)])))
        main = rules(self.SCHEMA, Filter(excluded=field_set_from_paths([("f:status",)])))
        value = {"spec": {"a": "1"}, "status": {"a": "1"}}
        main.update(managers, {}, value, updater("main"), NOW)
        status.update(managers, {}, value, updater("status"), NOW)
        expected = {"main": {"f:spec": {".": {}, "f:a": {}}}, "status": {"f:status": {".": {}, "f:a": {}}}}
        self.assertEqual({manager.name: entry.fields for manager, entry in managers.items()}, expected)
        main.update(managers, value, {"spec": {"a": "1"}, "status": {"a": "2"}}, updater("main"), LATER)
        self.assertEqual({manager.name: entry.fields for manager, entry in managers.items()}, expected)

    def test_other_versions(self) -> None:
        """Entries of another version are compared in that version once; entries of removed versions are dropped."""
        kind, managers = rules(self.SCHEMA), Managers()
        rules(self.SCHEMA, version="v2").update(managers, {}, {"spec": {"a": "1", "b": "1"}}, updater("two", "v2"), NOW)
        managers[updater("twice", "v2")] = managers[updater("two", "v2")]
        managers[updater("removed", "v0")] = managers[updater("two", "v2")]._replace(api_version="v0")
        kind.update(managers, {"spec": {"a": "1", "b": "1"}}, {"spec": {"a": "2", "b": "1"}}, updater("one"), NOW)
        versions = kind.versions
        assert isinstance(versions, OneVersion)
        self.assertEqual(versions.converted, [("v1", "v2"), ("v1", "v2")])
        self.assertNotIn(updater("removed", "v0"), managers)
        self.assertEqual(managers[updater("two", "v2")].fields, {"f:spec": {".": {}, "f:b": {}}})

    def test_same_version(self) -> None:
        """Nothing is converted or validated again if all managers use the version of the endpoint."""
        kind, managers = rules(self.SCHEMA), Managers()
        live = kind.apply(managers, {}, {"spec": {"a": "1"}}, applier("one"), NOW, False)
        live = kind.apply(managers, live, {"status": {"a": "1"}}, applier("two"), NOW, False)
        self.assertEqual(kind.apply(managers, live, {}, applier("one"), LATER, False), {"status": {"a": "1"}})
        versions = kind.versions
        assert isinstance(versions, OneVersion)
        self.assertEqual(versions.converted, [])
        self.assertEqual(kind.convert({"unknown": 1}, "v1", "v1"), {"unknown": 1})
        error = self.assertRaises(TypedError, kind.convert, {"unknown": 1}, "v1", "v2", "failed to convert")
        self.assertEqual(str(error), "failed to convert: .unknown: field not declared in schema")

    def test_emptied(self) -> None:
        """A container whose content is no longer applied remains if the container itself is owned or applied."""
        kind, managers = rules(self.SCHEMA), Managers()
        live = kind.apply(managers, {}, {"spec": {"a": "1"}}, applier("one"), NOW, False)
        live = kind.apply(managers, live, {"spec": {}}, applier("one"), NOW, False)
        self.assertEqual((live, managers[applier("one")].fields), ({"spec": {}}, {"f:spec": {}}))
        live = kind.apply(managers, live, {"spec": {"b": "1"}}, applier("two"), NOW, False)
        live = kind.apply(managers, live, {}, applier("two"), NOW, False)
        self.assertEqual(live, {"spec": {}})
        self.assertEqual(kind.apply(managers, live, {}, applier("one"), NOW, False), {})

    def test_filters_by_version(self) -> None:
        """A filter applies to the fields of its version only."""
        record = MergeTypeBuilder({}.__getitem__).inline(self.SCHEMA)
        main = MergeUpdater(OneVersion(record), "v1", {"v1": Filter(excluded=field_set_from_paths([("f:status",)]))})
        managers = {
            updater("one"): Entry("v1", NOW, field_set_from_paths([("f:status", "f:a")])),
            updater("two", "v2"): Entry("v2", NOW, field_set_from_paths([("f:status", "f:a")])),
        }
        main.update(managers, {"status": {"a": "1"}}, {"status": {"a": "2"}}, updater("me"), LATER)
        self.assertEqual(list(managers), [updater("one")])

    def test_true_is_not_one(self) -> None:
        """JSON values that are equal in Python only count as different."""
        self.assertFalse(same_value({"a": [1]}, {"a": [True]}))
        self.assertTrue(same_value({"a": [1], "b": 1.0}, {"b": 1, "a": [1.0]}))

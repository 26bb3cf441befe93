"""Tests for L{kubetwist.api.jsonpatch} and L{kubetwist.api.mergepatch}."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import MAX_DEPTH
from kubetwist.api.errors import APIStatusError
from kubetwist.api.jsonpatch import (
    MAX_OPERATIONS,
    PatchError,
    apply_json_patch,
    check_operations,
    validate_json_patch,
)
from tests.api.strategies import documents

REJECTED = "the server rejected our request due to an error in our request"


def patched(document: Any, *operations: tuple[str, str] | tuple[str, str, Any]) -> Any:
    """Apply operations given as tuples; the third item is the value or the source path."""
    steps = []
    for kind, path, *rest in operations:
        step: dict[str, Any] = {"op": kind, "path": path}
        if rest:
            step["from" if kind in ("move", "copy") else "value"] = rest[0]
        steps.append(step)
    return apply_json_patch(document, steps)


class JSONPatchTests(SynchronousTestCase):
    """Tests for JSON patches."""

    def assert_rejected(self, document: Any, *operations: tuple[str, str] | tuple[str, str, Any]) -> None:
        """Check that a patch does not apply."""
        error = self.assertRaises(PatchError, patched, document, *operations)
        self.assertEqual((error.code, error.reason, error.message, error.details), (422, "Invalid", REJECTED, {}))

    def test_operations(self) -> None:
        """Each operation is applied."""
        self.assertEqual(patched({"a": 1}, ("add", "/b", 2), ("replace", "/a", 3)), {"a": 3, "b": 2})
        self.assertEqual(patched({"a": 1, "b": 2}, ("remove", "/a")), {"b": 2})
        self.assertEqual(patched({"a": {"x": 1}}, ("copy", "/b", "/a"), ("add", "/b/y", 2))["a"], {"x": 1})
        self.assertEqual(patched({"a": 1}, ("move", "/b", "/a")), {"b": 1})
        self.assertEqual(patched({"a": [1, {"b": None}]}, ("test", "/a", [1, {"b": None}]))["a"][0], 1)
        self.assertEqual(patched({"a": 1}, ("replace", "", {"b": 1})), {"b": 1})

    def test_lists(self) -> None:
        """Indexes insert, replace and remove; a dash appends, and negative indexes count from the end."""
        self.assertEqual(patched({"l": [1, 2]}, ("add", "/l/1", 9), ("add", "/l/-", 8))["l"], [1, 9, 2, 8])
        self.assertEqual(patched({"l": [1, 2, 3]}, ("remove", "/l/-1"), ("replace", "/l/-1", 7))["l"], [1, 7])
        self.assertEqual(patched({"l": [1]}, ("add", "/l/-1", 2), ("add", "/l/-3", 0))["l"], [0, 1, 2])
        self.assertEqual(patched({"l": [1]}, ("add", "/l/1", 2))["l"], [1, 2])
        for operation in (
            ("add", "/l/2", 0),
            ("add", "/l/-3", 0),
            ("remove", "/l/1"),
            ("remove", "/l/-2"),
            ("remove", "/l/-"),
            ("replace", "/l/1", 0),
            ("add", "/l/x", 0),
            ("add", "/l/1.0", 0),
            ("add", "/l/٣", 0),
        ):
            self.assert_rejected({"l": [1]}, operation)

    def test_missing(self) -> None:
        """Replacing a missing key adds it, copying it writes null, removing and moving it fails."""
        self.assertEqual(patched({}, ("replace", "/a", 1)), {"a": 1})
        self.assertEqual(patched({}, ("copy", "/b", "/a")), {"b": None})
        self.assertEqual(patched({}, ("add", "/a")), {"a": None})
        self.assertEqual(patched({}, ("test", "/a", None)), {})
        for operation in (
            ("remove", "/a"),
            ("move", "/b", "/a"),
            ("add", "/a/b", 1),
            ("test", "/a", 1),
            ("replace", "", 1),
            ("add", "", {}),
        ):
            self.assert_rejected({"n": None}, operation)
        self.assert_rejected({"n": None}, ("add", "/n/a", 1))
        self.assert_rejected({"n": 1}, ("add", "/n/a", 1))

    def test_paths(self) -> None:
        """Escapes are resolved once, and text before the first slash is ignored."""
        self.assertEqual(patched({}, ("add", "/a~1b", 1), ("add", "/~01", 2)), {"a/b": 1, "~1": 2})
        self.assertEqual(patched({}, ("add", "/", 1)), {"": 1})
        self.assertEqual(patched({}, ("add", "dropped/a", 1)), {"a": 1})
        self.assert_rejected({"a": 1}, ("remove", "a"))

    def test_types_in_tests(self) -> None:
        """A test distinguishes 1, 1.0 and true."""
        for value, expected in ((1, 1.0), (1, True), (0, False), ("1", 1), ([1], [True]), ({"a": 1}, {"a": 1.0})):
            self.assert_rejected({"a": value}, ("test", "/a", expected))

    def test_null_patch(self) -> None:
        """A null patch, or an empty one, changes nothing."""
        self.assertEqual(apply_json_patch({"a": 1}, None), {"a": 1})
        self.assertEqual(apply_json_patch({"a": 1}, []), {"a": 1})

    def test_not_a_patch(self) -> None:
        """A patch that is not a list of operations with string paths is a bad request."""
        for patch, detail in {
            "{}": "object into Go value of type []handlers.jsonPatchOp",
            '"x"': "string into Go value of type []handlers.jsonPatchOp",
            "[1]": "number into Go value of type handlers.jsonPatchOp",
            '[{"op":1}]': "number into Go struct field jsonPatchOp.op of type string",
            '[{"op":"add","path":[]}]': "array into Go struct field jsonPatchOp.path of type string",
        }.items():
            error = self.assertRaises(APIStatusError, validate_json_patch, orjson.loads(patch))
            self.assertEqual(error.code, 400)
            self.assertEqual(error.message, f"error decoding patch: json: cannot unmarshal {detail}")

    def test_not_a_patch_without_validation(self) -> None:
        """
        Without field validation, only a body that is not a list of objects is a bad request; other operations fail to
        apply.
        """
        for patch, detail in {
            "{}": "object into Go value of type jsonpatch.Patch",
            "[null, 1]": "number into Patch.1 of type jsonpatch.Operation",
        }.items():
            for check in (check_operations, lambda steps: apply_json_patch({}, steps)):
                error = self.assertRaises(PatchError, check, orjson.loads(patch))
                self.assertEqual((error.code, error.message), (400, f"json: cannot unmarshal {detail}"))
        for step in (
            {"op": 1},
            {"op": [], "path": "/a"},
            {"op": "add", "path": 7},
            {"op": "move", "path": "/a", "from": {}},
        ):
            check_operations([step])
            error = self.assertRaises(PatchError, apply_json_patch, {"a": 1}, [step])
            self.assertEqual(error.code, 422)

    def test_below_scalars(self) -> None:
        """A path through a scalar does not exist, for any scalar and operation."""
        for scalar in (5, 1.5, "text", True, None):
            for path in ("/s/1/x", "/s/-/x", "/s/a/b", "/s/0", "/l/0/1"):
                for op in ("add", "remove", "replace", "test"):
                    error = self.assertRaises(
                        PatchError,
                        apply_json_patch,
                        {"s": scalar, "l": [scalar]},
                        [{"op": op, "path": path, "value": 1}],
                    )
                    self.assertEqual(error.code, 422)
            for op in ("copy", "move"):
                self.assert_rejected({"s": scalar}, (op, "/s/1/x", "/m"))

    def test_unknown_operations(self) -> None:
        """Operations that do not exist, or lack a path, do not apply."""
        for step in ({}, None, {"op": "append", "path": "/a"}, {"op": "add"}, {"op": "copy", "path": "/a"}):
            error = self.assertRaises(PatchError, apply_json_patch, {"a": 1}, [step])
            self.assertEqual(error.code, 422)

    def test_unknown_fields(self) -> None:
        """Strict validation reports unknown fields of operations."""
        steps = [{"op": "add", "path": "/a"}, {"op": "add", "comment": "why", "path": "/b"}]
        self.assertEqual(validate_json_patch(steps), ['json patch unknown field "[1].comment"'])
        self.assertEqual(validate_json_patch(None), [])

    def test_cve_2019_1002100_operations(self) -> None:
        """More than 10,000 operations are rejected."""
        apply_json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 1}] * MAX_OPERATIONS)
        error = self.assertRaises(PatchError, apply_json_patch, {}, [{}] * (MAX_OPERATIONS + 1))
        self.assertEqual((error.code, error.reason), (413, "RequestEntityTooLarge"))
        self.assertEqual(
            error.message,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        )

    def test_cve_2019_1002100_copies(self) -> None:
        """Repeated copies are rejected before they exhaust memory."""
        self.assert_rejected({"a": {"t": "x" * 1000}}, *[("copy", f"/a/{number}", "/a") for number in range(60)])

    def test_shifting_is_limited(self) -> None:
        """Thousands of insertions into a huge list are rejected."""
        document = {"l": [0] * 500_000}
        self.assert_rejected(document, *[("add", "/l/0", 0)] * MAX_OPERATIONS)

    def test_depth(self) -> None:
        """Moves cannot nest values deeper than can be encoded."""
        steps: list[Any] = []
        for _ in range(MAX_DEPTH + 1):
            steps += [("add", "/t", {}), ("move", "/t/a", "/a"), ("move", "/a", "/t")]
        self.assert_rejected({"a": {}}, *steps)
        self.assert_rejected({"a": {}}, *(steps * 4), ("copy", "/b", "/a"))

    def test_patch_is_not_changed(self) -> None:
        """The document shares no value with the patch, which is applied again after a conflict."""
        steps = [{"op": "add", "path": "/a", "value": {"l": []}}, {"op": "add", "path": "/a/l/-", "value": [1]}]
        before = copy.deepcopy(steps)
        result = apply_json_patch({}, steps)
        result["a"]["l"][0].append(2)
        self.assertEqual(steps, before)
        self.assertEqual(apply_json_patch({}, steps), {"a": {"l": [[1]]}})

    @given(st.dictionaries(st.text(), documents, max_size=4), documents)
    def test_replacing_all(self, before: dict[str, Any], after: Any) -> None:
        """Any object can be replaced by any other, member by member, and a test confirms it."""
        target = after if isinstance(after, dict) else {"only": after}

        def path(key: str) -> str:
            return "/" + key.replace("~", "~0").replace("/", "~1")

        steps: list[dict[str, Any]] = [{"op": "remove", "path": path(key)} for key in before if key not in target]
        steps += [{"op": "add", "path": path(key), "value": value} for key, value in target.items()]
        steps.append({"op": "test", "path": "", "value": target})
        self.assertEqual(apply_json_patch(copy.deepcopy(before), steps), target)

    @given(
        st.lists(st.integers(0, 9), max_size=5),
        st.lists(
            st.tuples(st.sampled_from(["add", "remove", "replace"]), st.integers(-6, 6), st.integers(0, 9)),
            max_size=6,
        ),
    )
    def test_lists_against_a_model(self, items: list[int], steps: list[tuple[str, int, int]]) -> None:
        """Lists change as Python's lists do at existing indexes."""
        model: list[int] | None = list(items)
        for kind, index, value in steps:
            assert model is not None
            size = len(model) + (kind == "add")
            if not -size <= index < size:
                model = None
                break
            index %= size
            if kind == "add":
                model[index:index] = [value]
            elif kind == "remove":
                model[index : index + 1] = []
            else:
                model[index] = value
        operations = [
            {"op": kind, "path": f"/l/{index}", **({} if kind == "remove" else {"value": value})}
            for kind, index, value in steps
        ]
        if model is None:
            self.assertRaises(PatchError, apply_json_patch, {"l": list(items)}, operations)
        else:
            self.assertEqual(apply_json_patch({"l": list(items)}, operations), {"l": model})

    @given(
        documents,
        st.lists(
            st.fixed_dictionaries(
                {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])},
                optional={
                    "path": st.sampled_from(["", "/", "/a", "/a/0", "/a/b", "/0", "/-", "a"]) | st.text(),
                    "from": st.sampled_from(["", "/a", "/a/0", "/-1"]) | st.text(),
                    "value": documents,
                },
            ),
            max_size=4,
        )
        | documents,
    )
    def test_any_patch(self, document: Any, operations: Any) -> None:
        """A patch applies, or is rejected with a Status, and is not changed."""
        before = orjson.dumps(operations)
        try:
            orjson.dumps(apply_json_patch({"a": document}, operations))
        except PatchError as error:
            self.assertIn(error.code, (400, 422))
        self.assertEqual(orjson.dumps(operations), before)

"""Tests for L{kubetwist.schema.strategicmerge}."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.strategicmerge import StrategicMergeError, strategic_merge

from .release import type_of


def merged(obj: Any, patch: Any, kind: str = "Pod", api_version: str = "v1") -> Any:
    """Return the result of a patch, and assert that its arguments are unchanged."""
    before = copy.deepcopy((obj, patch))
    result = strategic_merge(obj, patch, type_of(kind, api_version))
    assert (obj, patch) == before
    return result


def pod(*names: str, **spec: Any) -> Any:
    """Return a pod with containers of these names."""
    return {"spec": {"containers": [{"name": name, "image": f"{name}:1"} for name in names], **spec}}


def containers(obj: Any) -> str:
    """Return the names of the containers of a pod."""
    return "".join(item["name"] for item in obj["spec"]["containers"])


def patched(live: str, *items: Any, order: str = "") -> str:
    """Return the names of the containers after a patch; C{order} is the C{$setElementOrder}."""
    spec: dict[str, Any] = {"containers": [{"name": item} if isinstance(item, str) else item for item in items]}
    if order:
        spec["$setElementOrder/containers"] = [{"name": name} for name in order]
    if not items:
        del spec["containers"]
    return containers(merged(pod(*live), {"spec": spec}))


def ordered(live: str, *items: str) -> str:
    """Return the same as L{patched} with an empty C{$setElementOrder}."""
    spec = {"containers": [{"name": item} for item in items], "$setElementOrder/containers": []}
    return containers(merged(pod(*live), {"spec": spec}))


class MapTests(SynchronousTestCase):
    """Tests for patches of maps and structs."""

    def test_merge(self) -> None:
        """Maps merge field by field, and null removes a field."""
        obj = {"metadata": {"labels": {"a": "1", "b": "2"}, "name": "x"}}
        patch = {"metadata": {"labels": {"a": None, "c": "3", "d": None}}, "data": {"k": "v", "n": None}}
        expected = {"metadata": {"labels": {"b": "2", "c": "3"}, "name": "x"}, "data": {"k": "v"}}
        self.assertEqual(merged(obj, patch, "ConfigMap"), expected)

    def test_other_type(self) -> None:
        """A value of another type replaces the value."""
        self.assertEqual(merged({"data": {"a": "1"}}, {"data": "x"}, "ConfigMap"), {"data": "x"})
        self.assertEqual(merged({"data": None}, {"data": {"a": "1", "b": None}}, "ConfigMap"), {"data": {"a": "1"}})

    def test_replace(self) -> None:
        """C{$patch: replace} replaces the object by the patch, C{$patch: delete} by an empty object."""
        obj = {"metadata": {"labels": {"a": "1"}, "name": "x"}, "data": {"b": "2"}}
        patch = {"metadata": {"labels": {"$patch": "replace", "z": "26"}}, "data": {"$patch": "delete"}}
        expected = {"metadata": {"labels": {"z": "26"}, "name": "x"}, "data": {}}
        self.assertEqual(merged(obj, patch, "ConfigMap"), expected)

    def test_directives_without_counterpart(self) -> None:
        """A directive for an absent map adds nothing."""
        patch = {"data": {"$patch": "replace", "a": "1"}, "metadata": {"labels": {"$patch": "delete"}, "name": "n"}}
        self.assertEqual(merged({}, patch, "ConfigMap"), {"metadata": {"name": "n"}})

    def test_whole_fields(self) -> None:
        """A field with the strategy C{replace} is replaced."""
        live = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
        result = merged({"spec": live}, {"spec": {"updateStrategy": {"type": "OnDelete"}}}, "DaemonSet", "apps/v1")
        self.assertEqual(result["spec"]["updateStrategy"]["type"], "OnDelete")
        rules = merged(
            {"rules": [{"verbs": ["get"]}]}, {"rules": [{"verbs": ["list"]}]}, "Role", "rbac.authorization.k8s.io/v1"
        )
        self.assertEqual(rules, {"rules": [{"verbs": ["list"]}]})

    def test_retain_keys(self) -> None:
        """C{$retainKeys} removes all fields that it does not list."""
        live = pod("a", volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}])
        volume = {"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}
        result = merged(live, {"spec": {"volumes": [volume]}})
        expected = [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}]
        self.assertEqual(result["spec"]["volumes"], expected)

    def test_null_patch(self) -> None:
        """A null patch changes nothing."""
        self.assertEqual(merged(pod("a"), None), pod("a"))


class ListTests(SynchronousTestCase):
    """Tests for lists that merge by a key."""

    def test_items_merge(self) -> None:
        """An item merges into the item with its key."""
        result = merged(pod("a", "b"), {"spec": {"containers": [{"name": "b", "tty": True, "image": None}]}})
        self.assertEqual(result["spec"]["containers"], [{"name": "a", "image": "a:1"}, {"name": "b", "tty": True}])

    def test_order(self) -> None:
        """Items of the patch are in its order and before the rest, unless that was before them."""
        self.assertEqual(patched("abc", "c"), "abc")
        self.assertEqual(patched("abc", "c", "a"), "bca")
        self.assertEqual(patched("ab", "x"), "xab")
        self.assertEqual(patched("ab", "x", "b"), "xab")
        self.assertEqual(patched("ab", "b", "x"), "abx")

    def test_element_order(self) -> None:
        """C{$setElementOrder} defines the order of the items that it lists."""
        self.assertEqual(patched("abc", order="ca"), "bca")
        self.assertEqual(patched("abc", "x", order="axc"), "axbc")
        self.assertEqual(patched("abc", order="zb"), "abc")

    def test_order_of_a_new_list(self) -> None:
        """C{$setElementOrder} applies to a list that did not exist."""
        spec = {"volumes": [{"name": "v"}, {"name": "w"}], "$setElementOrder/volumes": [{"name": "v"}, {"name": "w"}]}
        self.assertEqual(merged({"spec": {}}, {"spec": spec})["spec"], {"volumes": [{"name": "v"}, {"name": "w"}]})
        self.assertEqual(merged({"spec": {}}, {"spec": {"$setElementOrder/volumes": []}})["spec"], {})

    def test_empty_order(self) -> None:
        """With an empty C{$setElementOrder}, live items keep their order, and new ones have none."""
        self.assertEqual(ordered("ab", "c"), "abc")
        self.assertEqual(ordered("abc", "x", "b", "y"), "yabcx")
        self.assertEqual(ordered("abc"), "abc")

    def test_empty_order_of_a_new_list(self) -> None:
        """In a new list, an empty C{$setElementOrder} reverses each 20 items, as Go's sort does."""
        names = [f"v{index:02}" for index in range(19)]
        spec = {"volumes": [{"name": name} for name in names], "$setElementOrder/volumes": []}
        result = merged({"spec": {}}, {"spec": spec})["spec"]["volumes"]
        self.assertEqual([item["name"] for item in result], names[::-1])

    def test_delete(self) -> None:
        """C{$patch: delete} removes all items with a key."""
        self.assertEqual(patched("abc", {"name": "b", "$patch": "delete"}, "c"), "ac")
        self.assertEqual(patched("abc", {"name": "z", "$patch": "delete"}), "abc")

    def test_replace(self) -> None:
        """C{$patch: replace} keeps only the other items of the patch."""
        self.assertEqual(patched("abc", {"$patch": "replace"}, "x", "b"), "xb")

    def test_same_key_twice(self) -> None:
        """Of live items with the same key, the first one is patched."""
        ports = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
        live = {"spec": {"containers": [{"name": "a", "ports": ports}]}}
        change = {"name": "a", "ports": [{"containerPort": 53, "name": "dns"}]}
        result = merged(live, {"spec": {"containers": [change]}})["spec"]["containers"][0]["ports"]
        self.assertEqual(result, [{"containerPort": 53, "protocol": "TCP", "name": "dns"}, ports[1]])

    def test_new_items_with_the_same_key(self) -> None:
        """New items with the same key merge with each other."""
        change = [{"name": "x", "image": "x:1"}, {"name": "x", "tty": True}]
        result = merged(pod("a"), {"spec": {"containers": change}})["spec"]["containers"]
        self.assertEqual(result, [{"name": "x", "image": "x:1", "tty": True}, {"name": "a", "image": "a:1"}])

    def test_long_lists(self) -> None:
        """Merging ten thousand items takes time proportional to their number."""
        env = [{"name": f"V{number}", "value": "1"} for number in range(10_000)]
        change = [{"name": item["name"], "value": "2"} for item in reversed(env)]
        live = {"spec": {"containers": [{"name": "a", "env": env}]}}
        result = merged(live, {"spec": {"containers": [{"name": "a", "env": change}]}})
        self.assertEqual(result["spec"]["containers"][0]["env"], change)


class PrimitiveListTests(SynchronousTestCase):
    """Tests for lists of strings."""

    def finalizers(self, live: list[str], **patch: Any) -> Any:
        """Return the finalizers after a patch."""
        return merged({"metadata": {"finalizers": live}}, {"metadata": patch}, "ConfigMap")["metadata"]["finalizers"]

    def test_merge(self) -> None:
        """A list that merges gets new values once."""
        self.assertEqual(self.finalizers(["a", "b"], finalizers=["c", "b", "c"]), ["c", "a", "b"])

    def test_delete(self) -> None:
        """C{$deleteFromPrimitiveList} removes values, also from lists that do not merge."""
        self.assertEqual(self.finalizers(["a", "b", "a"], **{"$deleteFromPrimitiveList/finalizers": ["a", "z"]}), ["b"])
        live = {"spec": {"containers": [{"name": "c", "args": ["x", "y"]}]}}
        change = {"name": "c", "$deleteFromPrimitiveList/args": ["x"]}
        result = merged(live, {"spec": {"containers": [change]}})
        self.assertEqual(result["spec"]["containers"], [{"name": "c", "args": ["y"]}])

    def test_delete_from_absent_list(self) -> None:
        """Removing values from an absent list does not add a list."""
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
        self.assertEqual(merged({"metadata": {}}, patch, "ConfigMap"), {"metadata": {}})

    def test_element_order(self) -> None:
        """C{$setElementOrder} orders strings, too."""
        order = {"$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"]}
        self.assertEqual(self.finalizers(["a", "b"], **order), ["c", "a", "b"])

    def test_replaced(self) -> None:
        """A list that does not merge is replaced."""
        live = {"spec": {"containers": [{"name": "c", "args": ["x", "y"]}]}}
        result = merged(live, {"spec": {"containers": [{"name": "c", "args": ["z"]}]}})
        self.assertEqual(result["spec"]["containers"][0]["args"], ["z"])


class ErrorTests(SynchronousTestCase):
    """Tests for patches that cannot be applied."""

    def check(self, patch: Any, message: str, code: int = 500, obj: Any = None, kind: str = "Pod") -> None:
        """Assert that patching a pod with a container C{a} fails with this error."""
        live = pod("a") | {"metadata": {"finalizers": ["f"]}} if obj is None else obj
        error = self.assertRaises(StrategicMergeError, merged, live, patch, kind)
        self.assertEqual((error.message, error.code), (message, code))

    def test_unknown_directives(self) -> None:
        """An unknown or misplaced C{$patch} is an error with the enclosing map."""
        self.check({"spec": {"$patch": 7}}, "unknown patch type: %!s(int64=7) in map: map[$patch:7]")
        self.check({"spec": {"$patch": "merge", "z": 3}}, "unknown patch type: merge in map: map[$patch:merge z:3]")
        item = {"$patch": "explode", "name": "b"}
        self.check({"spec": {"containers": [item]}}, "unknown patch type: explode in map: map[$patch:explode name:b]")
        item = {"$patch": "merge", "name": "b"}
        self.check({"spec": {"containers": [item]}}, "merging lists cannot yet be specified in the patch")

    def test_missing_merge_key(self) -> None:
        """An item without its key, in the patch or in the live object, is an error."""
        what = "does not contain declared merge key: name"
        self.check({"spec": {"containers": [{"image": "x"}]}}, f"map: map[image:x] {what}")
        self.check({"spec": {"containers": [{"$patch": "delete"}]}}, f"map: map[$patch:delete] {what}")
        live = {"spec": {"containers": [{"image": "y"}]}}
        self.check({"spec": {"containers": [{"name": "x"}]}}, f"map: map[image:y] {what}", obj=live)

    def test_element_order(self) -> None:
        """Items of the patch must be in the order of C{$setElementOrder}, which must be a list."""
        spec = {"containers": [{"name": "b"}], "$setElementOrder/containers": [{"name": "a"}]}
        self.check(
            {"spec": spec},
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        )
        not_a_list = {"$setElementOrder/containers": "a"}
        self.check({"spec": not_a_list}, "expected a []interface {}, but received a string")
        without_field = {"$setElementOrder": []}
        self.check({"spec": without_field}, "invalid patch format of setElementOrder list", 400)
        self.check({"spec": {"$setElementOrder/containers": ["a"]}}, "value for key 0 is not a map")
        strings = {"containers": [{"name": "a"}], "$setElementOrder/containers": ["a"]}
        self.check({"spec": strings}, "expected a map[string]interface {}, but received a string")

    def test_wrong_form(self) -> None:
        """Malformed directives are answered with 400 Bad Request."""
        for spec in ({"$retainKeys": "x"}, {"$retainKeys": ["x"], "nodeName": "n"}):
            self.check({"spec": spec}, "invalid patch format of retainKeys", 400)
        self.check({"metadata": {"$deleteFromPrimitiveList": ["f"]}}, "invalid patch format of primitive list", 400)
        self.check([1], "json: cannot unmarshal array into Go value of type map[string]interface {}", 400)

    def test_mixed_lists(self) -> None:
        """The items of a list must have one type, which is not a list."""
        self.check({"metadata": {"finalizers": [1]}}, "list element types are not identical: [[f] [1]]")
        self.check({"metadata": {"finalizers": [["f"]]}}, "list element types are not identical: [[f] [[f]]]")
        nested = {"metadata": {"finalizers": [["f"]]}}
        rejected = "the server rejected our request due to an error in our request"
        self.check({"metadata": {"finalizers": [["g"]]}}, rejected, 422, obj=nested)

    def test_no_such_field(self) -> None:
        """Merging into a value without fields, or into an unknown field, is an error."""
        revision = type_of("ControllerRevision", "apps/v1")
        live, patch = {"data": {"spec": {"a": 1}}}, {"data": {"spec": {"a": 2}}}
        error = self.assertRaises(StrategicMergeError, strategic_merge, live, patch, revision)
        self.assertEqual(error.message, 'unable to find api field in struct RawExtension for the json field "spec"')
        within_map = {"data": {"a": {"b": 1}}}
        self.check(
            within_map,
            "merging an object in json but data type is not struct, instead is: map",
            obj=within_map,
            kind="ConfigMap",
        )


_labels = st.dictionaries(st.sampled_from("abcd"), st.none() | st.sampled_from("xyz"))


class PropertyTests(SynchronousTestCase):
    """Properties of arbitrary patches."""

    @settings(max_examples=80, deadline=None)
    @given(live=_labels, patch=_labels)
    def test_maps_are_idempotent(self, live: dict[str, str], patch: dict[str, str | None]) -> None:
        """Merging maps twice changes nothing, and the values of the patch are set."""
        obj = {"data": {key: value for key, value in live.items() if value is not None}}
        once = merged(obj, {"data": patch}, "ConfigMap")
        self.assertEqual(merged(once, {"data": patch}, "ConfigMap"), once)
        for key, value in patch.items():
            self.assertEqual(once["data"].get(key), value)

    @settings(max_examples=80, deadline=None)
    @given(
        live=st.lists(st.sampled_from("abcdef"), unique=True), patch=st.lists(st.sampled_from("abcdefgh"), unique=True)
    )
    def test_lists_keep_both_orders(self, live: list[str], patch: list[str]) -> None:
        """Items of the patch keep its order, the rest the live order, and none is lost or duplicated."""
        names = containers(merged(pod(*live), {"spec": {"containers": [{"name": name} for name in patch]}}))
        self.assertEqual([name for name in names if name in patch], patch)
        self.assertEqual([name for name in names if name not in patch], [name for name in live if name not in patch])
        self.assertEqual(len(names), len({*live, *patch}))

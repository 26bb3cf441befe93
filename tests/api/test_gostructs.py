"""Tests for L{kubetwist.api.gostructs}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.gostructs import (
    _lines,
    _struct,
    go_struct,
    pod_spec_struct,
    pod_template_struct,
)
from kubetwist.schema.definitions import Definitions
from kubetwist.schema.nodes import ListNode, StructNode

#: Fields that internal types have in another struct, or not at all.
_ELSEWHERE = {
    "PodSpec": {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers", "serviceAccount"},
}


def _known_fields(definitions: Definitions, name: str) -> dict[str, str]:
    """Return the fields of a type and, for structs of the same group, their type; embedded structs are skipped."""
    group, _, type_name = name.rpartition(".")
    package = f"io.k8s.api.{group or 'core'}.v1"
    try:
        struct = definitions.struct(f"{package}.{type_name}")
        fields = struct.fields
    except KeyError:
        return {}
    result = {}
    for field in fields.values():
        node = field.node.item if isinstance(field.node, ListNode) else field.node
        of_group = isinstance(node, StructNode) and node.name.startswith(f"{package}.")
        result[field.name] = f"{group}.{node.go_type.rpartition('.')[2]}".lstrip(".") if of_group else ""
    return result


class GoStructTests(SynchronousTestCase):
    """Tests for objects as Go's internal structs."""

    def test_all_fields(self) -> None:
        """Every field in the definitions of 1.36 is shown, and has a known type."""
        definitions = Definitions.load("1.36")
        for name in _lines():
            fields = _known_fields(definitions, name)
            shown = {field.name: field for field in _struct(name)}
            self.assertEqual(set(fields) - shown.keys() - _ELSEWHERE.get(name, set()), set(), name)
            for field, inner in fields.items():
                if inner and field in shown:
                    self.assertEqual(shown[field].struct, inner, f"{name}.{field}")

    def test_pod(self) -> None:
        """The host namespaces of a pod are in its security context."""
        shown = pod_spec_struct(
            {"containers": [{"name": "c"}], "hostNetwork": True, "nodeSelector": {"b": "1", "a": ""}}
        )
        self.assertEqual(list(shown)[:4], ["Volumes", "InitContainers", "Containers", "EphemeralContainers"])
        self.assertIs(shown["SecurityContext"]["HostNetwork"], True)
        self.assertIs(shown["SecurityContext"]["HostPID"], False)
        self.assertNotIn("HostNetwork", shown)
        self.assertEqual(list(shown["NodeSelector"]), ["a", "b"])
        self.assertEqual(shown["Containers"][0]["Resources"], {"Limits": None, "Requests": None, "Claims": None})
        self.assertIsNone(pod_spec_struct({})["SecurityContext"])

    def test_template(self) -> None:
        """The metadata of a template is beside its spec, whose host fields are moved as in a pod."""
        shown = pod_template_struct({"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {"hostPID": True}})
        self.assertEqual(list(shown), ["labels", "Spec"])
        self.assertEqual(list(shown["labels"]), ["a", "b"])
        self.assertIs(shown["Spec"]["SecurityContext"]["HostPID"], True)

    def test_other_groups(self) -> None:
        """Types of other groups are named with their group."""
        rule = go_struct({"action": "Ignore", "onPodConditions": [{"type": "X"}]}, "batch.PodFailurePolicyRule")
        self.assertEqual(
            rule, {"Action": "Ignore", "OnExitCodes": None, "OnPodConditions": [{"Type": "X", "Status": ""}]}
        )
        request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}]}}
        shown = go_struct({"devices": {"requests": [request]}}, "resource.ResourceClaimSpec")
        exactly = shown["Devices"]["Requests"][0]["Exactly"]
        self.assertEqual(exactly["Selectors"], [{"CEL": {"Expression": "true"}}])
        self.assertIsNone(shown["Devices"]["Config"])

    def test_schemas(self) -> None:
        """A schema, list of schemas or boolean is wrapped in a struct; maps of structs are by key."""
        schema = {
            "items": {"type": "string"},
            "additionalProperties": False,
            "properties": {"b": {"items": [{}]}, "a": {"additionalProperties": {"default": {"d": 1, "c": 2}}}},
        }
        shown = go_struct(schema, "apiextensions.JSONSchemaProps")
        self.assertEqual(shown["Items"]["Schema"]["Type"], "string")
        self.assertIsNone(shown["Items"]["JSONSchemas"])
        self.assertEqual(shown["AdditionalProperties"], {"Allows": False, "Schema": None})
        self.assertEqual(list(shown["Properties"]), ["a", "b"])
        self.assertEqual(len(shown["Properties"]["b"]["Items"]["JSONSchemas"]), 1)
        inner = shown["Properties"]["a"]["AdditionalProperties"]
        self.assertIs(inner["Allows"], True)
        self.assertEqual(list(inner["Schema"]["Default"]), ["c", "d"])

    def test_empty(self) -> None:
        """Empty lists are shown, but metadata and selectors omit empty values."""
        template = {"metadata": {"labels": {}}, "spec": {"containers": []}}
        shown = pod_template_struct(template)
        self.assertNotIn("labels", shown)
        self.assertEqual(shown["Spec"]["Containers"], [])
        self.assertIsNone(shown["Spec"]["InitContainers"])
        claim = go_struct({"selector": {"matchLabels": {}}, "accessModes": []}, "PersistentVolumeClaimSpec")
        self.assertEqual((claim["Selector"], claim["AccessModes"]), ({}, []))

    def test_selector(self) -> None:
        """Selectors have a separate order, and maps in them are sorted by key."""
        selector = {"matchExpressions": [{"key": "a", "operator": "Exists"}], "matchLabels": {"b": "1", "a": "2"}}
        shown = go_struct({"selector": selector}, "PersistentVolumeClaimSpec")["Selector"]
        self.assertEqual(list(shown), ["matchLabels", "matchExpressions"])
        self.assertEqual(list(shown["matchLabels"]), ["a", "b"])

    def test_empty_selector(self) -> None:
        """The tags of selectors omit empty lists and maps, but an empty selector is shown."""
        selector = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}], "matchLabels": {}}
        for given, expected in (
            (selector, {"matchExpressions": [{"key": "a", "operator": "In"}]}),
            ({"matchLabels": {}}, {}),
            (
                {"matchExpressions": [{"values": ["x"]}]},
                {"matchExpressions": [{"key": "", "operator": "", "values": ["x"]}]},
            ),
            ({}, {}),
            (None, None),
        ):
            for type_name in ("PersistentVolumeClaimSpec", "policy.PodDisruptionBudgetSpec"):
                self.assertEqual(go_struct({"selector": given}, type_name)["Selector"], expected)

    def test_embedded(self) -> None:
        """The fields of an embedded struct are among the fields of the outer one; metadata keeps its tags."""
        volume = go_struct({"name": "v", "configMap": {"name": "m"}}, "Volume")
        self.assertEqual((volume["Name"], volume["ConfigMap"]["Name"], volume["EmptyDir"]), ("v", "m", None))
        template = go_struct({"spec": {"storageClassName": "s"}}, "PersistentVolumeClaimTemplate")
        self.assertEqual(list(template), ["Spec"])
        self.assertEqual(template["Spec"]["StorageClassName"], "s")

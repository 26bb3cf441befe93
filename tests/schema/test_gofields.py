"""Tests for L{kubetwist.schema.gofields} and its table."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.gofields import (
    NO_OMITEMPTY,
    OMITEMPTY,
    OMITZERO,
    POINTER_NO_OMITEMPTY,
    POINTER_OMITEMPTY,
    GoField,
    exceptions,
    go_field,
)

_CORE = "io.k8s.api.core.v1."
_TEXT = {"type": "string"}


class GoFieldTests(SynchronousTestCase):
    """Tests for L{go_field}."""

    def test_rules(self) -> None:
        """Without an exception, the properties of a field follow from its schema."""
        made_up = "io.k8s.api.core.v1.MadeUp"
        reference = {"$ref": f"#/$defs/{_CORE}Probe"}
        for schema, required, expected in [
            (_TEXT, True, GoField(NO_OMITEMPTY, "string", ())),
            (_TEXT, False, GoField(OMITEMPTY, "string", ())),
            ({"type": ["integer", "null"], "format": "int32"}, False, GoField(POINTER_OMITEMPTY, "int32", ())),
            ({"type": "array", "items": reference}, True, GoField(NO_OMITEMPTY, "[]v1.Probe", ())),
            ({"type": "object", "additionalProperties": _TEXT}, False, GoField(OMITEMPTY, "map[string]string", ())),
            (reference, False, GoField(POINTER_OMITEMPTY, "v1.Probe", ())),
            ({"type": "string", "format": "byte"}, False, GoField(OMITEMPTY, "[]uint8", ())),
        ]:
            self.assertEqual(go_field(made_up, "field", schema, required), expected)
        self.assertEqual(go_field(made_up, "status", reference, False).presence, NO_OMITEMPTY)

    def test_exceptions(self) -> None:
        """The table defines type names, embedded structs and presence."""
        pull_policy = go_field(f"{_CORE}Container", "imagePullPolicy", _TEXT, False)
        self.assertEqual(pull_policy, GoField(OMITEMPTY, "v1.PullPolicy", ()))
        host_path = go_field(f"{_CORE}Volume", "hostPath", {"$ref": f"#/$defs/{_CORE}HostPathVolumeSource"}, False)
        self.assertEqual(host_path, GoField(POINTER_OMITEMPTY, "v1.HostPathVolumeSource", ("VolumeSource",)))
        selector = {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"}
        self.assertEqual(
            go_field("io.k8s.api.apps.v1.DaemonSetSpec", "selector", selector, True).presence, POINTER_NO_OMITEMPTY
        )

    def test_exception_for_one_version(self) -> None:
        """An exception for one API version of a type does not affect its other versions."""
        schema = {"type": "integer", "format": "int32"}
        in_v1 = go_field("io.k8s.api.autoscaling.v1.HorizontalPodAutoscalerStatus", "currentReplicas", schema, True)
        in_v2 = go_field("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus", "currentReplicas", schema, False)
        self.assertEqual((in_v1.presence, in_v2.presence), (NO_OMITEMPTY, OMITEMPTY))

    def test_exception_for_earlier_releases(self) -> None:
        """The table has another presence before a release."""
        meta, schema = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", {"$ref": "#/$defs/v1.Time"}
        for release, presence in [
            ((1, 31), NO_OMITEMPTY),
            ((1, 33), NO_OMITEMPTY),
            ((1, 34), OMITZERO),
            (None, OMITZERO),
        ]:
            self.assertEqual(go_field(meta, "creationTimestamp", schema, False, release).presence, presence)

    def test_items(self) -> None:
        """The item type of a list follows from the list type, unless that is a named type."""
        self.assertEqual(GoField(OMITEMPTY, "[]types.UID", ()).item_field(_TEXT).go_type, "types.UID")
        self.assertEqual(GoField(OMITEMPTY, "map[string][]string", ()).item_field(_TEXT).go_type, "[]string")
        self.assertEqual(GoField(OMITEMPTY, "v1.ResourceList", ()).item_field(_TEXT).go_type, "string")

    def test_table_has_effect(self) -> None:
        """Every exception differs from the rules, and no line of the table is lost."""
        table = exceptions()
        self.assertGreater(len(table), 300)
        for type_name, fields in table.items():
            for field, exception in fields.items():
                self.assertTrue(any(exception), f"{type_name}.{field}")

"""Tests for L{kubetwist.api._gosyntax}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api._gosyntax import _structs, shown_in_go

_OLD = (1, 33)


def old(value: Any, go_type: str = "", release: tuple[int, int] = _OLD) -> str:
    """Return a value as a release before 1.34 shows it."""
    return shown_in_go(value, go_type, release)


class ValueTests(SynchronousTestCase):
    """Tests for L{shown_in_go}."""

    def test_inferred(self) -> None:
        """Without a type, lists and maps contain strings, and a missing value is a nil pointer."""
        self.assertEqual(old(None), '"null"')
        self.assertEqual(old(["a", 'b"']), '[]string{"a", "b\\""}')
        self.assertEqual(old({"b": "2", "a": "1"}), 'map[string]string{"a":"1", "b":"2"}')
        self.assertEqual(old({"a": [1, None]}), 'map[string]interface {}{"a":[]interface {}{1, interface {}(nil)}}')
        self.assertEqual([old(value) for value in ("a", 5, True, 1.5)], ['"a"', "5", "true", "1.5"])

    def test_nil(self) -> None:
        """A nil list or map has its type; a pointer is dereferenced."""
        self.assertEqual(old(None, "[]core.PodIP"), "[]core.PodIP(nil)")
        self.assertEqual(old(None, "map[string]string"), "map[string]string(nil)")
        self.assertEqual(old(None, "*string"), '"null"')
        self.assertEqual(old("a", "*string"), '"a"')

    def test_structs(self) -> None:
        """A struct has all fields in the order of their declaration."""
        owner = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}
        self.assertEqual(
            old(owner, "v1.OwnerReference"),
            'v1.OwnerReference{APIVersion:"v1", Kind:"Event", Name:"e", UID:"1", Controller:(*bool)(nil), '
            "BlockOwnerDeletion:(*bool)(nil)}",
        )
        self.assertEqual(
            old({"matchLabels": {"a": "b"}}, "*v1.LabelSelector"),
            'v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, '
            "MatchExpressions:[]v1.LabelSelectorRequirement(nil)}",
        )
        self.assertEqual(
            old({"key": "a", "effect": "NoExecute"}, "core.Taint"),
            'core.Taint{Key:"a", Value:"", Effect:"NoExecute", TimeAdded:<nil>}',
        )

    def test_pointers(self) -> None:
        """A pointer in a struct is an address."""
        shown = old({"type": "Localhost", "localhostProfile": "a"}, "core.SeccompProfile")
        self.assertRegex(
            shown, r'^core\.SeccompProfile{Type:"Localhost", LocalhostProfile:\(\*string\)\(0x[0-9a-f]+\)}$'
        )

    def test_fields_of_releases(self) -> None:
        """A field is shown from its release on."""
        shown = [old({}, "core.PodSpec", release) for release in ((1, 31), (1, 32))]
        self.assertEqual(["Resources:(*core" in text for text in shown], [False, True])

    def test_embedded(self) -> None:
        """The fields of an embedded struct are in the object itself, except for metadata."""
        template = {"metadata": {"name": "a"}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
        shown = old(template, "core.PodTemplateSpec")
        self.assertIn('core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"a", ', shown)
        self.assertIn('core.Volume{Name:"v", VolumeSource:core.VolumeSource{HostPath:(*core.HostPathVolume', shown)
        self.assertIn("CreationTimestamp:time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)", shown)

    def test_numbers_or_strings(self) -> None:
        """An IntOrString is a struct."""
        self.assertEqual(old("half", "intstr.IntOrString"), 'intstr.IntOrString{Type:1, IntVal:0, StrVal:"half"}')
        self.assertEqual(old(5, "*intstr.IntOrString"), 'intstr.IntOrString{Type:0, IntVal:5, StrVal:""}')

    def test_quantities(self) -> None:
        """A quantity is its struct, which keeps the text if that is canonical."""
        nil = "d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}"
        for text, amount, cached, family in [
            ("1500m", "value:1500, scale:-3", "1500m", "DecimalSI"),
            ("2Gi", "value:2147483648, scale:0", "2Gi", "BinarySI"),
            ("8Gi", "value:8589934592, scale:0", "", "BinarySI"),
            ("2e3", "value:2, scale:3", "2e3", "DecimalExponent"),
        ]:
            self.assertEqual(
                old(text, "resource.Quantity"),
                f'resource.Quantity{{i:resource.int64Amount{{{amount}}}, {nil}, s:"{cached}", Format:"{family}"}}',
            )
        self.assertIn("Dec:(*inf.Dec)(0x", old("100000000000000000000", "resource.Quantity"))
        shown = old({"cpu": "1"}, _RESOURCES)
        self.assertRegex(shown, r'^core\.ResourceList{"cpu":resource\.Quantity{i:')

    def test_methods(self) -> None:
        """Types with a C{String} method are shown by it, without quotes."""
        self.assertEqual(old("2030-01-01T00:00:00Z", "v1.Time"), "2030-01-01 00:00:00 +0000 UTC")
        self.assertEqual(old("2030-01-01T00:00:00.123000Z", "*v1.MicroTime"), "2030-01-01 00:00:00.123 +0000 UTC")
        self.assertEqual(old("90s", "v1.Duration"), "1m30s")
        self.assertEqual(old("a b", "core.ResourceName"), "a b")
        self.assertEqual(old(0, "uint64"), "0x0")

    def test_raw(self) -> None:
        """Raw JSON is a list of bytes."""
        self.assertEqual(
            old({"a": 1}, "runtime.RawExtension"),
            "runtime.RawExtension{Raw:[]uint8{0x7b, 0x22, 0x61, 0x22, 0x3a, 0x31, 0x7d}, Object:runtime.Object(nil)}",
        )


_RESOURCES = "core.ResourceList=map[core.ResourceName]resource.Quantity"


class TableTests(SynchronousTestCase):
    """Tests of the table of structs."""

    def test_zero(self) -> None:
        """All structs of the table can be shown."""
        for name in _structs():
            self.assertIn(f"{name}{{", old({}, name))

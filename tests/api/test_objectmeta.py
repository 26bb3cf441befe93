"""Tests for L{kubetwist.api.objectmeta}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import FieldError
from kubetwist.api.names import validate_dns1123_subdomain
from kubetwist.api.objectmeta import Rule, UpdateErrors, validate_metadata_on_create, validate_metadata_on_update

from .strategies import documents

GOOD = {"name": "a", "namespace": "ns", "uid": "u", "generation": 2, "creationTimestamp": "2020-01-01T00:00:00Z"}


def fields_and_messages(causes: Sequence[FieldError]) -> list[tuple[str, str]]:
    """Return fields and the beginnings of messages."""
    return [(cause.field.removeprefix("metadata."), cause.message.partition(" (e.g.")[0]) for cause in causes]


class CreationTests(SynchronousTestCase):
    """Tests for metadata of new objects."""

    def check(self, metadata: dict[str, Any], *expected: tuple[str, str], namespaced: bool = True) -> None:
        """Compare the errors of C{GOOD} with changes."""
        errors = validate_metadata_on_create({**GOOD, **metadata}, namespaced, validate_dns1123_subdomain)
        self.assertEqual(fields_and_messages(errors), list(expected))

    def test_valid(self) -> None:
        """Valid metadata has no errors."""
        self.check(
            {
                "labels": {"a.b/c": "d", "e": ""},
                "annotations": {"Upper.Case/Key": "any text"},
                "finalizers": ["orphan", "kubernetes", "example.com/x"],
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1", "controller": True}
                ],
                "managedFields": [{"operation": "Apply", "manager": "m", "fieldsType": "FieldsV1"}],
            }
        )

    def test_names(self) -> None:
        """Errors of the name, its prefix and the namespace come first."""
        self.check(
            {"name": "", "generateName": "X", "namespace": "a.b"},
            (
                "generateName",
                'Invalid value: "X": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                "characters, '-' or '.', and must start and end with an alphanumeric character",
            ),
            ("name", "Required value: name or generateName is required"),
            ("namespace", 'Invalid value: "a.b": must not contain dots'),
        )
        self.check({"namespace": ""}, ("namespace", "Required value"))
        self.check({"namespace": "ns"}, ("namespace", "Forbidden: not allowed on this type"), namespaced=False)

    def test_labels_and_annotations(self) -> None:
        """Errors of labels precede errors of annotations, and keys precede values."""
        self.check(
            {"labels": {"/a": "b" * 64, "c": "d"}, "annotations": {"e/": "f"}},
            ("labels", 'Invalid value: "/a": prefix part must be non-empty'),
            ("labels", f'Invalid value: "{"b" * 64}": must be no more than 63 bytes'),
            ("annotations", 'Invalid value: "e/": name part must be non-empty'),
            (
                "annotations",
                'Invalid value: "e/": name part must consist of alphanumeric characters, '
                "'-', '_' or '.', and must start and end with an alphanumeric character",
            ),
        )

    def test_annotations_size(self) -> None:
        """Annotations may have 256 KiB in total."""
        self.check({"annotations": {"a": "x" * (256 * 1024 - 1)}})
        self.check(
            {"annotations": {"a": "x" * 200_000, "b": "é" * 40_000}},
            ("annotations", "Too long: may not be more than 262144 bytes"),
        )

    def test_owners(self) -> None:
        """Owner references have all fields, at most one is a controller, and none is an Event."""
        self.check(
            {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "", "name": "", "uid": ""}]},
            ("ownerReferences.apiVersion", 'Invalid value: "a/b/c": version must not be empty'),
            ("ownerReferences.kind", 'Invalid value: "": must not be empty'),
            ("ownerReferences.name", 'Invalid value: "": must not be empty'),
            ("ownerReferences.uid", 'Invalid value: "": must not be empty'),
        )
        event = {"apiVersion": "v1", "kind": "Event", "name": "e", "uid": "1"}
        self.check(
            {"ownerReferences": [event]},
            (
                "ownerReferences",
                'Invalid value: {"apiVersion":"v1","kind":"Event","name":"e","uid":"1"}: '
                "/v1, Kind=Event is disallowed from being an owner",
            ),
        )
        one = {"uid": "1", "name": "o", "kind": "K", "apiVersion": "v1", "controller": True}
        self.check(
            {"ownerReferences": [one, {**one, "uid": "2", "name": "p", "blockOwnerDeletion": False}]},
            (
                "ownerReferences",
                'Invalid value: [{"apiVersion":"v1","kind":"K","name":"o","uid":"1","controller":true},'
                '{"apiVersion":"v1","kind":"K","name":"p","uid":"2","controller":true,"blockOwnerDeletion":false}]: '
                'Only one reference can have Controller set to true. Found "true" in references for K/o and K/p',
            ),
        )

    def test_finalizers(self) -> None:
        """Finalizers are standard names or qualified names; the error of the kind's rule comes last."""
        self.check(
            {"finalizers": ["nobodys", "/x", "orphan", "foregroundDeletion"]},
            ("finalizers", 'Invalid value: "/x": prefix part must be non-empty'),
            (
                "finalizers",
                'Invalid value: ["nobodys","/x","orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set",
            ),
            (
                "finalizers[0]",
                'Invalid value: "nobodys": name is neither a standard finalizer name nor is it fully qualified',
            ),
        )
        errors = validate_metadata_on_create(
            {**GOOD, "finalizers": ["nobodys"]}, True, validate_dns1123_subdomain, standard_finalizers=False
        )
        self.assertEqual(errors, [])

    def test_managed_fields(self) -> None:
        """Managed fields have valid operations, types and names."""
        self.check(
            {"managedFields": [{"operation": "Delete", "fieldsType": "X", "manager": "\n", "subresource": "s" * 257}]},
            ("managedFields[0].operation", 'Invalid value: "Delete": must be `Apply` or `Update`'),
            ("managedFields[0].fieldsType", 'Invalid value: "X": must be `FieldsV1`'),
            ("managedFields[0].manager", 'Invalid value: "\\n": invalid character U+000A (at position 0)'),
            ("managedFields[0].subresource", "Too long: may not be more than 256 bytes"),
        )

    def test_generation(self) -> None:
        """Generations are not negative."""
        self.check({"generation": -1}, ("generation", "Invalid value: -1: must be greater than or equal to 0"))

    @given(
        st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(st.text(), st.text()),
                "annotations": st.dictionaries(st.text(), st.text()),
                "finalizers": st.lists(st.text()),
                "ownerReferences": st.lists(
                    st.dictionaries(st.sampled_from(["apiVersion", "kind", "name", "uid"]), st.text())
                ),
                "name": st.text(),
                "generateName": st.text(),
            },
        )
    )
    def test_any_metadata(self, metadata: dict[str, Any]) -> None:
        """Any metadata is validated, and errors have paths in the metadata."""
        errors = validate_metadata_on_create({**GOOD, **metadata}, True, validate_dns1123_subdomain)
        errors += validate_metadata_on_update({**GOOD, **metadata}, GOOD, True, validate_dns1123_subdomain)
        for cause in errors:
            self.assertTrue(cause.field.startswith("metadata."))


class UpdateTests(SynchronousTestCase):
    """Tests for metadata of updates."""

    def report_counts(
        self, new: dict[str, Any], old: dict[str, Any] | None = None, rules: Sequence[Rule] = ("compare",)
    ) -> list[tuple[str, int]]:
        """Return how often each field is reported, in the order of the first reports."""
        errors = validate_metadata_on_update(
            {**GOOD, **new}, {**GOOD, **(old or {})}, True, validate_dns1123_subdomain, rules=rules
        )
        result: dict[str, int] = {}
        for cause in errors:
            result[cause.field] = result.get(cause.field, 0) + 1
        return list(result.items())

    def test_valid(self) -> None:
        """An update with allowed changes has no errors."""
        self.assertEqual(self.report_counts({"labels": {"a": "b"}, "generation": 3}), [])

    def test_repeats(self) -> None:
        """Errors are reported once for every rule that validates the field."""
        labels = {"labels": {"-": ""}}
        self.assertEqual(self.report_counts(labels, rules=()), [("metadata.labels", 2)])
        self.assertEqual(self.report_counts(labels), [("metadata.labels", 3)])
        self.assertEqual(self.report_counts(labels, rules=("compare", "whole")), [("metadata.labels", 4)])
        finalizers = {"finalizers": ["nobodys"]}
        self.assertEqual(self.report_counts(finalizers), [("metadata.finalizers[0]", 1)])
        self.assertEqual(self.report_counts(finalizers, rules=("compare", "whole")), [("metadata.finalizers[0]", 2)])

    def test_immutable(self) -> None:
        """The identity and the state of deletion are immutable."""
        self.assertEqual(
            self.report_counts(
                {"uid": "v", "deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 4},
                rules=("compare", "whole"),
            ),
            [("metadata.uid", 2), ("metadata.deletionTimestamp", 2), ("metadata.deletionGracePeriodSeconds", 2)],
        )
        errors = validate_metadata_on_update({**GOOD, "uid": ""}, GOOD, True, validate_dns1123_subdomain, rules=())
        self.assertEqual(fields_and_messages(errors), [("uid", 'Invalid value: "": field is immutable')])

    def test_generation(self) -> None:
        """Generations do not decrease."""
        self.assertEqual(self.report_counts({"generation": 1}), [("metadata.generation", 2)])

    def test_parts(self) -> None:
        """Errors beyond the metadata follow its errors; L{UpdateErrors} surround the last metadata validation."""
        spec, change = FieldError("FieldValueInvalid", "a", "spec"), FieldError("FieldValueInvalid", "b", "spec")
        new, labels = {**GOOD, "labels": {"a/b/c": ""}}, "metadata.labels"
        for rules, errors, fields in (
            (("compare",), [spec, change], [labels] * 3 + ["spec"] * 2),
            (("whole", "compare"), [spec, change], [labels] * 4 + ["spec"] * 2),
            (("whole", "compare"), UpdateErrors([spec], [change]), [labels] * 3 + ["spec", labels, "spec"]),
            (("whole", "compare"), UpdateErrors([spec, change]), [labels] * 3 + ["spec", "spec", labels]),
            (("compare",), UpdateErrors([spec], [change]), [labels] * 2 + ["spec", labels, "spec"]),
            ((), UpdateErrors([spec], [change]), [labels] * 2 + ["spec"] * 2),
        ):
            causes = validate_metadata_on_update(new, GOOD, True, validate_dns1123_subdomain, rules=rules, found=errors)
            self.assertEqual([cause.field for cause in causes], fields)

    def test_no_new_finalizers(self) -> None:
        """No finalizers can be added while an object is being deleted."""
        old = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a.b/c"]}
        self.assertEqual(self.report_counts({**old, "finalizers": []}, old), [])
        errors = validate_metadata_on_update(
            {**GOOD, **old, "finalizers": ["x.y/z", "a.b/c", "d.e/f"]},
            {**GOOD, **old},
            True,
            validate_dns1123_subdomain,
            rules=(),
        )
        self.assertEqual(
            fields_and_messages(errors),
            [
                (
                    "finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, "
                    'found new finalizers []string{"d.e/f", "x.y/z"}',
                )
            ],
        )

    @given(documents)
    def test_values_are_shown(self, value: Any) -> None:
        """An error shows any old and new grace period."""
        validate_metadata_on_update(
            {**GOOD, "deletionGracePeriodSeconds": value}, GOOD, True, validate_dns1123_subdomain, rules=()
        )

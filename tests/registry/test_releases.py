"""Tests of validation that differs between releases; see also C{tests/resources/test_releases.py}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import MAX_LENGTH, FieldError, invalid, too_long
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.names import validate_label_value, validate_qualified_name
from kubetwist.registry.strategies import strategy_for
from kubetwist.schema.structural import Structural
from kubetwist.schema.validation.listrules import validate_lists
from kubetwist.schema.validation.validator import SchemaValidator
from tests.registry.strategytools import (
    CONTAINER,
    SUBDOMAIN_RULE,
    change_problems,
    copy,
    problems,
    status_problems,
    texts,
)

_OLD, _NEW = (1, 33), (1, 34)
_STORAGE = "storage.k8s.io"


class NameTests(SynchronousTestCase):
    """Tests for the messages of names, which changed in 1.35."""

    def test_labels(self) -> None:
        """A label that is too long has characters or bytes; the rule of keys has another subject."""
        for found, old, new in [
            (validate_label_value("a" * 64), "must be no more than 63 characters", "must be no more than 63 bytes"),
            (
                validate_qualified_name("a" * 64),
                "name part must be no more than 63 characters",
                "name part must be no more than 63 bytes",
            ),
            (
                validate_qualified_name("a" * 254 + "/b"),
                "prefix part must be no more than 253 characters",
                "prefix part must be no more than 253 bytes",
            ),
        ]:
            errors = [invalid("a", "b", text) for text in found]
            self.assertIn(f'a: Invalid value: "b": {old}', texts(errors, (1, 34)))
            self.assertIn(f'a: Invalid value: "b": {new}', texts(errors, (1, 35)))
        (error,) = [invalid("a", "b", text) for text in validate_qualified_name("a/b/c")]
        self.assertIn("a qualified name must consist", texts([error], (1, 34))[0])
        self.assertIn("a valid label key must consist", texts([error], (1, 35))[0])


class StorageTests(SynchronousTestCase):
    """Tests for the kinds of C{storage.k8s.io}."""

    def test_storage_class(self) -> None:
        """An immutable field is forbidden to change before 1.36."""
        for release, expected in [
            ((1, 35), "provisioner: Forbidden: updates to provisioner are forbidden."),
            ((1, 36), 'provisioner: Invalid value: "c/d": field is immutable'),
        ]:
            old, new = {"provisioner": "a/b"}, {"provisioner": "c/d"}
            self.assertEqual(change_problems(_STORAGE, "StorageClass", old, new, release), [expected])

    def test_nodes(self) -> None:
        """Errors of an update are reported twice before 1.36, and an empty name with its rule before 1.35."""
        old: Any = {"spec": {"drivers": []}}
        new = {"spec": {"drivers": [{"name": "", "nodeID": "x"}]}}
        required = "spec.drivers[0].name: Required value"
        rule = f'spec.drivers[0].name: Invalid value: "": {SUBDOMAIN_RULE}'
        for release, expected in [
            ((1, 34), [required, rule] * 2),
            ((1, 35), [required] * 2),
            ((1, 36), [required]),
        ]:
            self.assertEqual(change_problems(_STORAGE, "CSINode", old, new, release), expected)

    def test_attachments(self) -> None:
        """The attacher is validated last before 1.36."""
        source = {"persistentVolumeName": "a"}
        spec = {"attacher": "A b", "nodeName": "B", "source": source}
        attacher, node = (
            f'spec.{name}: Invalid value: "{value}": {SUBDOMAIN_RULE}'
            for name, value in (("attacher", "A b"), ("nodeName", "B"))
        )
        for release, expected in [((1, 35), [node, attacher]), ((1, 36), [attacher, node])]:
            self.assertEqual(problems(_STORAGE, "VolumeAttachment", release, spec=spec), expected)
        spec["attacher"] = ""
        required = "spec.attacher: Required value"
        self.assertEqual(problems(_STORAGE, "VolumeAttachment", (1, 35), spec=spec), [required, node, required])


class KindTests(SynchronousTestCase):
    """Tests for single messages of other kinds."""

    def test_runtime_classes(self) -> None:
        """The path of a toleration was wrong before 1.35."""
        scheduling = {"tolerations": [{"operator": "Near", "key": "a"}]}
        for release, path in [((1, 34), ".tolerations.tolerations[0]"), ((1, 35), ".tolerations[0]")]:
            (text,) = problems("node.k8s.io", "RuntimeClass", release, handler="h", scheduling=scheduling)
            self.assertTrue(text.startswith(f"scheduling{path}.operator: "), text)

    def test_ingress_classes(self) -> None:
        """A missing field has a detail before 1.34."""
        spec = {"controller": "a/b", "parameters": {"scope": "Cluster"}}
        for release, details in [(_OLD, (": kind is required", ": name is required")), (_NEW, ("", ""))]:
            expected = [f"spec.parameters.{name}: Required value" for name in ("kind", "name")]
            found = problems("networking.k8s.io", "IngressClass", release, spec=spec)
            self.assertEqual(found, [text + detail for text, detail in zip(expected, details, strict=True)])

    def test_quotas(self) -> None:
        """Lists of named types have the name in Go syntax, quantities their struct."""
        spec = {"hard": {"pods": "1500m"}, "scopes": ["Sometimes"]}
        amount = "{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}"
        found = problems("", "ResourceQuota", _OLD, spec=spec)
        quantity = f'resource.Quantity{amount}, s:"1500m", Format:"DecimalSI"}}'
        self.assertEqual(found[0], f"spec.hard[pods]: Invalid value: {quantity}: must be an integer")
        self.assertIn('spec.scopes: Invalid value: []core.ResourceQuotaScope{"Sometimes"}: unsupported scope', found)
        self.assertIn(
            'spec.scopes: Invalid value: ["Sometimes"]: unsupported scope', problems("", "ResourceQuota", spec=spec)
        )

    def test_jobs(self) -> None:
        """Messages about times of jobs have another wording and reason."""
        spec = {"template": {}, "suspend": False}
        old = {"metadata": {"name": "a"}, "spec": spec, "status": {"startTime": "2026-01-02T03:04:05Z"}}
        new = {**old, "status": {}}
        for release, expected in [
            ((1, 35), "Required value: startTime cannot be removed for unsuspended job"),
            ((1, 36), "Invalid value: null: field is immutable for unsuspended job once set"),
        ]:
            found = status_problems("batch", "Job", old, new, release)
            self.assertEqual(found, [f"status.startTime: {expected}"])

    def test_too_long(self) -> None:
        """Limits of lengths have other words before 1.32, which depend on the function of the reference."""
        seccomp = {"type": "Localhost", "localhostProfile": "a"}
        app_armor = {"type": "Localhost", "localhostProfile": "a" * 4096}
        errors = [too_long("a", 63), too_long("b", 5, earlier=MAX_LENGTH)]
        self.assertEqual(
            texts(errors, (1, 31)),
            ["a: Too long: must have at most 63 bytes", "b: Too long: may not be longer than 5"],
        )
        self.assertEqual(
            texts(errors, (1, 32)),
            ["a: Too long: may not be more than 63 bytes", "b: Too long: may not be more than 5 bytes"],
        )
        containers = [{**CONTAINER, "securityContext": {"appArmorProfile": app_armor, "seccompProfile": seccomp}}]
        found = problems("", "Pod", (1, 31), spec={"containers": containers})
        path = "spec.containers[0].securityContext.appArmorProfile.localhostProfile"
        self.assertIn(f"{path}: Too long: may not be longer than 4095", found)
        (problem,) = SchemaValidator({"type": "string", "maxLength": 1}).problems("abc")
        self.assertEqual(texts([problem.cause("spec")], (1, 31)), ["spec: Too long: may not be longer than 1"])
        self.assertEqual(texts([problem.cause("spec")], (1, 32)), ["spec: Too long: may not be more than 1 byte"])

    def test_autoscalers(self) -> None:
        """The maximum is required since 1.36, the group of the target since 1.34."""
        spec = {"scaleTargetRef": {"kind": "Deployment", "name": "a"}}
        group = 'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group'
        minimum = "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`"
        old = ["spec.maxReplicas: Invalid value: 0: must be greater than 0", minimum]
        new = ["spec.maxReplicas: Required value: must be set and greater than 0", minimum, group]
        for release, expected in [((1, 33), old), ((1, 34), [*old, group]), ((1, 36), new)]:
            self.assertEqual(problems("autoscaling", "HorizontalPodAutoscaler", release, spec=spec), expected)

    def test_services(self) -> None:
        """Names are labels of RFC 1035 without a gate that is enabled since 1.36; a warning is new in 1.34."""
        service = {
            "metadata": {"name": "a"},
            "spec": {"clusterIP": "None", "type": "ClusterIP", "externalIPs": ["1.2.3.4"]},
        }
        warning = "spec.externalIPs is ignored for headless services"
        for release, valid, warns in [(_OLD, False, False), ((1, 35), False, True), ((1, 36), True, True)]:
            strategy = strategy_for("", "Service").with_features(FeatureGates(release))
            self.assertEqual(not strategy.validate_name("1a", False), valid)
            self.assertEqual(warning in strategy.warnings(copy(service), None), warns)

    def test_lists(self) -> None:
        """Items of custom lists are untyped maps."""
        schema = Structural({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}})
        errors: list[FieldError] = validate_lists([{"a": "1"}, {"a": "1"}], schema, "spec")
        self.assertEqual(texts(errors, _OLD), ['spec[1]: Duplicate value: map[string]interface {}{"a":"1"}'])
        self.assertEqual(texts(errors, _NEW), ['spec[1]: Duplicate value: {"a":"1"}'])


class SchemaTests(SynchronousTestCase):
    """Tests for the validation of custom objects."""

    def test_ranges(self) -> None:
        """Numbers must be in the range of their format since 1.36."""
        for schema, value in [({"type": "integer", "format": "int32"}, 1 << 31), ({"type": "integer"}, 1.5)]:
            for release, checks in [((1, 35), False), ((1, 36), True)]:
                validator = SchemaValidator({"type": "object", "properties": {"a": schema}}, release)
                messages = [problem.message for problem in validator.problems({"a": value})]
                self.assertEqual(any("Checked value" in message for message in messages), checks)
                self.assertEqual(validator.accepts({"a": 1 << 31}), not checks or "format" not in schema)

    def test_formats(self) -> None:
        """Formats of names are validated since 1.34, and other ones have warnings since then."""
        for release, known in [(_OLD, False), (_NEW, True)]:
            validator = SchemaValidator({"type": "string", "format": "k8s-short-name"}, release)
            self.assertEqual((validator.accepts("a.b"), bool(validator.problems("a.b"))), (not known, known))
            strategy = strategy_for("apiextensions.k8s.io", "CustomResourceDefinition")
            schema = {"openAPIV3Schema": {"type": "string", "format": "made-up"}}
            crd = {"metadata": {"name": "a"}, "spec": {"versions": [{"name": "v1", "schema": schema}]}}
            expected = ['unrecognized format "made-up"'] if known else []
            self.assertEqual([*strategy.with_features(FeatureGates(release)).warnings(crd, None)], expected)

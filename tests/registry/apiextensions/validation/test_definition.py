"""
Tests for L{kubetwist.registry.apiextensions.validation.definition} and
L{kubetwist.registry.apiextensions.validation.schema}.
"""

from __future__ import annotations

import base64
from typing import Any

from tests.registry.apiextensions.validation.definitioncase import TEXT, DefinitionTestCase, copy
from tests.resources.customserver import definition


class SpecTests(DefinitionTestCase):
    """Tests for names, versions and other fields of the spec."""

    def test_valid(self) -> None:
        """A CRD with all required fields is valid."""
        self.assertEqual(self.errors(definition()), [])

    def test_name(self) -> None:
        """The name of a CRD is its plural and group."""
        crd = definition()
        names = self.strategy.name_validator(crd)
        self.assertEqual(names(crd["metadata"]["name"], False), [])
        self.assertEqual(names("other.example.com", False), ['must be spec.names.plural+"."+spec.group'])
        self.assertEqual(len(names("A_b", False)), 2)

    def test_group(self) -> None:
        """A group has at least two labels, so that it differs from built-in groups."""
        crd = definition()
        crd["spec"]["group"], crd["metadata"]["name"] = "apps", "kites.apps"
        self.assertEqual(
            self.errors(crd), [("spec.group", 'Invalid value: "apps": should be a domain with at least one dot')]
        )

    def test_protected_group(self) -> None:
        """Protected groups require an approval, or a reason why there is none."""
        crd = definition()
        crd["spec"]["group"], crd["metadata"]["name"] = "a.k8s.io", "kites.a.k8s.io"
        self.assertEqual(self.fields(crd), ["metadata.annotations[api-approved.kubernetes.io]"])
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, experimental"}
        self.assertEqual(self.fields(crd), [])

    def test_versions(self) -> None:
        """One version is the storage version, and the names of versions are unique."""
        crd = definition()
        crd["spec"]["versions"] *= 2
        self.assertEqual(self.fields(crd), ["spec.versions", "spec.versions", "status.storedVersions"])

    def test_errors_of_common_schemas(self) -> None:
        """An error of a common schema is reported once, an error of one version with its index."""
        crd = definition({"type": "array", "items": TEXT})
        self.assertEqual(self.fields(crd), ["spec.validation.openAPIV3Schema.type"])
        second = copy(definition()["spec"]["versions"][0])
        crd["spec"]["versions"].append({**second, "name": "v2", "storage": False})
        self.assertEqual(self.fields(crd), ["spec.versions[0].schema.openAPIV3Schema.type"])

    def test_parts(self) -> None:
        """Scale paths, columns and selectable fields are validated."""
        crd = definition(
            subresources={"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": ".spec.n"}},
            additionalPrinterColumns=[{"name": "A", "type": "length", "jsonPath": "x"}],
            selectableFields=[{"jsonPath": ".spec"}, {"jsonPath": ".spec.nowhere"}],
        )
        self.assertEqual(
            self.fields(crd),
            [
                "spec.subresources.scale.specReplicasPath",
                "spec.subresources.scale.statusReplicasPath",
                "spec.additionalPrinterColumns[0].type",
                "spec.additionalPrinterColumns[0].JSONPath",
                "spec.selectableFields[0].jsonPath",
                "spec.selectableFields[1].jsonPath",
            ],
        )

    def test_selectable_paths(self) -> None:
        """Paths of selectable fields are checked against the schema, without brackets and metadata."""
        schema = {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {"a": TEXT}},
                "metadata": {"type": "object", "properties": {"name": TEXT}},
                "metadatas": TEXT,
            },
        }
        expected = {
            ".spec.a": [],
            ".metadatas": [],
            "spec.a": ["is an invalid path: expected [ or . but got: spec"],
            ".spec['a']": ["is an invalid path: array notation is not allowed"],
            ".spec.": ["is an invalid path: unexpected end of JSON path"],
            ".spec.a.b": ["is an invalid path: does not refer to a valid field"],
            ".metadata.name": ["must not point to fields in metadata"],
        }
        for path, texts in expected.items():
            errors = self.errors(definition(schema, selectableFields=[{"jsonPath": path}]))
            field = "spec.selectableFields[0].jsonPath"
            self.assertEqual(errors, [(field, f'Invalid value: "{path}": {text}') for text in texts])

    def test_preserved_fields(self) -> None:
        """CRDs that preserve unknown fields cannot have defaults or conversion webhooks."""
        crd = definition({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}})
        crd["spec"]["preserveUnknownFields"] = True
        client = {"url": "https://webhooks.example.com/convert"}
        crd["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }
        errors = self.errors(crd)
        self.assertEqual(
            [field for field, _ in errors],
            ["spec.preserveUnknownFields", "spec.conversion.strategy", "spec.preserveUnknownFields"],
        )
        self.assertIn("must be false in order to use defaults in the schema", errors[0][1])
        self.assertIn("must be None if spec.preserveUnknownFields is true", errors[1][1])

    def test_bundle(self) -> None:
        """An established CRD cannot get an invalid CA bundle, unless it has an invalid one."""
        old = self.made(definition())
        old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
        new = copy(old)
        bundle = base64.b64encode(b"none").decode()
        webhook = {
            "clientConfig": {"url": "https://webhooks.example.com/", "caBundle": bundle},
            "conversionReviewVersions": ["v1"],
        }
        new["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        errors = [(cause.field, cause.message) for cause in self.strategy.validate_update(new, old)]
        reason = "unable to load root certificates: unable to parse bytes as PEM block"
        path = "spec.conversion.webhookClientConfig.caBundle"
        self.assertEqual(errors, [(path, f'Invalid value: "{bundle}": {reason}')])
        self.assertEqual(list(self.strategy.validate_update(new, new)), [])
        old["status"]["conditions"][0]["status"] = "False"
        self.assertEqual(list(self.strategy.validate_update(new, old)), [])


class UpdateTests(DefinitionTestCase):
    """Tests for updates."""

    def update_errors(self, change: Any) -> list[str]:
        """Return the fields with errors of an update of an established CRD."""
        old = self.made(definition())
        old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
        new = copy(old)
        change(new)
        return [cause.field for cause in self.strategy.validate_update(new, old)]

    def test_immutable(self) -> None:
        """Scope, kind, group and plural of an established CRD are immutable."""

        def change(crd: dict[str, Any]) -> None:
            crd["spec"]["scope"] = "Cluster"
            crd["spec"]["names"]["kind"] = "Other"

        self.assertEqual(self.update_errors(change), ["spec.scope", "spec.names.kind"])

    def test_stored_versions(self) -> None:
        """A stored version cannot be removed."""

        def change(crd: dict[str, Any]) -> None:
            crd["status"]["storedVersions"] = ["v0", "v1"]

        self.assertEqual(self.update_errors(change), ["status.storedVersions[0]"])


class DefinitionTests(DefinitionTestCase):
    """Tests for CRDs."""

    def validation_errors_of_update(self, old: dict[str, Any], crd: dict[str, Any]) -> list[str]:
        """Return the errors of an update of a CRD."""
        before, after = self.made(old), copy(crd)
        self.strategy.default(after)
        self.strategy.prepare_for_update(after, before)
        return [str(cause) for cause in self.strategy.validate_update(after, before)]

    def test_generated_name(self) -> None:
        """Names of CRDs cannot be generated."""
        crd = definition()
        names = self.strategy.name_validator(crd)
        self.assertEqual(names("kites-", True), ['must be spec.names.plural+"."+spec.group'])

    def test_stored_versions(self) -> None:
        """The status of a new CRD has one stored version, even if several are storage versions."""
        crd = definition()
        second = {**copy(crd["spec"]["versions"][0]), "name": "v2"}
        crd["spec"]["versions"].append(second)
        self.assertEqual(self.made(crd)["status"]["storedVersions"], ["v1"])
        self.assertEqual(
            self.errors(crd)[1:], [("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v2')]
        )
        self.assertEqual(
            self.validation_errors_of_update(definition(), crd)[1:],
            [f"{field}: {text}" for field, text in self.errors(crd)[1:]],
        )

    def test_duplicate_versions(self) -> None:
        """A duplicate version is stored once, and one without a name is stored, too."""
        crd = definition()
        crd["spec"]["versions"].append(copy(crd["spec"]["versions"][0]))
        self.assertEqual(
            self.errors(crd)[2:], [("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v1')]
        )
        crd = definition()
        crd["spec"]["versions"][0]["name"] = ""
        self.assertEqual([field for field, _ in self.errors(crd)], ["spec.versions[0].name"])
        self.assertNotIn("must have the storage version", str(self.validation_errors_of_update(definition(), crd)))

    def test_first_version(self) -> None:
        """The first version is also validated as the deprecated field spec.version."""
        crd = definition()
        crd["spec"]["versions"][0]["name"] = "V1"
        self.assertEqual([field for field, _ in self.errors(crd)], ["spec.versions[0].name", "spec.version"])

    def test_empty_webhook(self) -> None:
        """An empty webhook is absent."""
        crd = definition()
        crd["spec"]["conversion"] = {"strategy": "None", "webhook": {"conversionReviewVersions": []}}
        self.assertEqual(self.made(crd)["spec"]["conversion"], {"strategy": "None"})

    def test_no_versions(self) -> None:
        """An error shows an empty list as such, and an absent one as null."""
        crd = definition()
        for versions, shown in (([], "[]"), (None, "null")):
            crd["spec"]["versions"] = versions
            text = f"Invalid value: {shown}: must have exactly one version marked as storage version"
            self.assertEqual(self.errors(crd)[0], ("spec.versions", text))

    def test_fields_without_schema(self) -> None:
        """Selectable fields require a schema."""
        crd = definition()
        crd["spec"]["versions"][0].update({"schema": None, "selectableFields": [{"jsonPath": ".spec.a"}]})
        text = 'Invalid value: "": may only be set when validations.schema is included'
        self.assertIn(("spec.selectableFields", text), self.errors(crd))

    def test_fields_and_schema_of_versions(self) -> None:
        """Two versions have both schema and selectable fields in common, or neither."""
        color = {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "integer"}}}
        shape = {"type": "object", "properties": {"color": {"type": "string"}}}
        fields = [{"jsonPath": ".color"}]
        apart = 'Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not included'
        common = 'Invalid value: "": may only be set when validations.schema is included'
        for schema, chosen, wrong in (
            (color, fields, []),
            (shape, None, []),
            (color, None, [("spec.versions[0].selectableFields", apart)]),
            (shape, fields, [("spec.selectableFields", common)]),
        ):
            crd = definition()
            first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": color}}
            second = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}}
            crd["spec"]["versions"] = [first | {"selectableFields": fields}, second]
            if chosen is not None:
                second["selectableFields"] = chosen
            self.assertEqual(self.errors(crd), wrong)

    def test_schemas_that_differ_by_type(self) -> None:
        """Schemas whose defaults differ in their type only are different."""
        crd, apart = copy(definition()), []
        for name, default in (("v1", 1), ("v2", True)):
            mixed = {"x-kubernetes-int-or-string": True, "default": default, "enum": ["a"]}
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"l": mixed}}}
            apart.append({"name": name, "served": True, "storage": name == "v1", "schema": schema})
        crd["spec"]["versions"] = apart
        self.assertEqual(
            [path for path, _ in self.errors(crd)],
            [f"spec.versions[{index}].schema.openAPIV3Schema.properties[l].default" for index in range(2)],
        )

    def test_mixed_defaults(self) -> None:
        """The default of an integer-or-string may have any type, but is otherwise validated."""
        crd = copy(definition())
        mixed = {"x-kubernetes-int-or-string": True, "default": True}
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"l": mixed}
        self.assertEqual(self.errors(crd), [])
        properties["l"] = {**mixed, "enum": [1]}
        text = 'Unsupported value: true: supported values: "1"'
        self.assertEqual(self.errors(crd), [("spec.validation.openAPIV3Schema.properties[l].default", text)])

    def test_keyed_items(self) -> None:
        """The items of a list map have one schema; an array of schemas is shown in the error."""
        crd = copy(definition())
        schema = {"type": "array", "items": [], "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"l": schema}
        text = (
            'Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema if '
            "x-kubernetes-list-type is map"
        )
        self.assertIn(("spec.validation.openAPIV3Schema.properties[l].items", text), self.errors(crd))

    def test_missing_stored_versions(self) -> None:
        """A stored version that is missing in the spec is reported once."""
        crd = self.made(definition())
        crd["status"]["storedVersions"] = ["v0", "v1", "v0"]
        errors = [cause.field for cause in self.strategy.validate(crd)]
        self.assertEqual(errors, ["status.storedVersions[2]"])

    def test_old_without_schemas(self) -> None:
        """Older CRDs may lack schemas, if nothing is pruned or served."""
        old = definition()
        del old["spec"]["versions"][0]["schema"]
        path = "spec.versions[0].schema.openAPIV3Schema: Required value"
        self.assertEqual([f"{field}: {text}" for field, text in self.errors(old)], [path])
        self.assertEqual(
            self.validation_errors_of_update(old, old), [f"{path}: because otherwise all fields are pruned"]
        )
        unserved = copy(old)
        unserved["spec"]["versions"][0]["served"] = False
        self.assertEqual(self.validation_errors_of_update(unserved, unserved), [])
        old["spec"]["preserveUnknownFields"] = True
        self.assertEqual(self.validation_errors_of_update(old, old), [])

    def test_old_non_structural(self) -> None:
        """Older CRDs may have schemas that are not structural, if no feature requires structural ones."""
        loose = {"type": "object", "properties": {"a": {}}}
        old = definition(loose)
        self.assertEqual(self.fields(old), ["spec.validation.openAPIV3Schema.properties[a].type"])
        old["spec"]["preserveUnknownFields"] = True
        self.assertEqual(self.validation_errors_of_update(old, old), [])
        pruning = copy(old)
        pruning["spec"]["preserveUnknownFields"] = False
        self.assertNotEqual(self.validation_errors_of_update(old, pruning), [])
        extended = copy(old)
        schema = extended["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["b"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self.assertNotEqual(self.validation_errors_of_update(old, extended), [])

    def test_null_keywords(self) -> None:
        """Keywords that are null are absent."""
        schema = {"type": "object", "properties": {"a": {**TEXT, "$ref": None, "additionalItems": None}}}
        self.assertEqual(self.errors(definition(schema)), [])

    def test_dependencies(self) -> None:
        """Dependencies are not supported, and errors within them are reported as well."""
        schema = {"type": "object", "dependencies": {"a": {"type": "array", "uniqueItems": True}, "b": ["c"]}}
        path = "spec.validation.openAPIV3Schema.dependencies"
        self.assertEqual(self.fields(definition(schema)), [path, f"{path}[a].uniqueItems"])

    def test_many_keys(self) -> None:
        """Errors of thousands of keys share their texts, since each quotes all keys."""
        keys = [f"k{number}" for number in range(2000)] * 2
        items = {"type": "object", "properties": {"a": TEXT}}
        keyed = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
            "items": items,
        }
        errors = self.strategy.validate(self.made(definition({"type": "object", "properties": {"l": keyed}})))
        self.assertEqual((len(errors), len({id(cause) for cause in errors})), (6000, 2))

    def test_review_versions(self) -> None:
        """Review versions are unique."""
        crd = definition()
        webhook = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1", "v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        expected = [("spec.conversion.conversionReviewVersions[1]", 'Invalid value: "v1": duplicate version')]
        self.assertEqual(self.errors(crd), expected)

    def test_service_path(self) -> None:
        """A conversion webhook may have the root path of a service."""
        crd = definition()
        service = {"name": "a", "namespace": "b", "path": ""}
        webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        self.assertEqual(self.errors(crd), [])

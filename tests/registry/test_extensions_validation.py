"""
Tests for L{kubetwist.registry.generic.validation}: what extends the server or steers it.

Webhooks, admission policies, definitions of custom resources, flow schemas and priority levels.
"""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import LONGEST_CAUSES
from kubetwist.registry.admissionregistration.validation.policies import validate_policy_binding
from kubetwist.registry.flowcontrol.bootstrap import PRIORITY_LEVELS
from kubetwist.registry.strategies import strategy_for
from tests.registry.apiextensions.validation.test_definition import DefinitionTestCase
from tests.registry.test_strategies_validation import change_problems, copy, made, problems
from tests.resources.customserver import definition

ADMISSION = "admissionregistration.k8s.io"
FLOW = "flowcontrol.apiserver.k8s.io"
TEXT = {"type": "string"}
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def status_problems(group: str, kind: str, status: dict[str, Any]) -> list[str]:
    """What is wrong with a status."""
    obj = {"metadata": {"name": "x"}, "spec": {}, "status": status}
    return [str(cause) for cause in strategy_for(group, kind).validate_status_update(obj, {})]


class WebhookTests(SynchronousTestCase):
    """Webhook configurations."""

    WEBHOOK: ClassVar[dict[str, Any]] = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://example.com"},
    }

    def test_old_selectors(self) -> None:
        """Values that no label can have may stay in selectors that had some already."""
        kind = "ValidatingWebhookConfiguration"
        bad = {
            **self.WEBHOOK,
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]},
        }
        path = "webhooks[0].objectSelector.matchExpressions[0].values[0]"
        (found,) = problems(ADMISSION, kind, webhooks=[bad])
        self.assertIn(f'{path}: Invalid value: "-": a valid label must be', found)
        self.assertEqual(change_problems(ADMISSION, kind, {"webhooks": [bad]}, {"webhooks": [bad]}), [])
        (found,) = change_problems(ADMISSION, kind, {"webhooks": [self.WEBHOOK]}, {"webhooks": [bad]})
        self.assertIn(path, found)

    def service(self, path: str) -> list[str]:
        """What is wrong with a path of a service."""
        service = {"name": "a", "namespace": "b", "path": path}
        webhook = {**self.WEBHOOK, "clientConfig": {"service": service}}
        return problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])

    def test_service_paths(self) -> None:
        """An empty path is the root; each step of others is a name."""
        where = "webhooks[0].clientConfig.service.path: Invalid value"
        self.assertEqual(self.service(""), [])
        self.assertEqual(self.service("//"), [f'{where}: "//": segment[0] may not be empty'])
        self.assertEqual(
            self.service("ab//c"),
            [f"{where}: \"ab//c\": must start with a '/'", f'{where}: "ab//c": segment[1] may not be empty'],
        )

    def test_nameless_service(self) -> None:
        """Of a service without a name, the namespace is told to be missing, and the other way round."""
        again = {"reinvocationPolicy": "Sometimes"}
        webhook = {**self.WEBHOOK, **again, "clientConfig": {"service": {"namespace": "n"}}}
        found = problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])
        self.assertEqual(
            [one.partition(":")[0] for one in found],
            ["webhooks[0].reinvocationPolicy", "webhooks[0].clientConfig.service.namespace"],
        )
        webhook["clientConfig"] = {"service": {"name": "n"}}
        found = problems(ADMISSION, "MutatingWebhookConfiguration", webhooks=[webhook])
        self.assertEqual(found[1], "webhooks[0].clientConfig.service.name: Required value")

    def test_many_steps(self) -> None:
        """Of a path of thousands of empty steps no more is made than is told."""
        path = "/" * 10_000
        self.assertTrue(0 < len(self.service(path)) <= 3 + LONGEST_CAUSES // len(path))


class PolicyTests(SynchronousTestCase):
    """Admission policies and their bindings."""

    def policy(self, mutating: bool = False, **spec: Any) -> list[str]:
        """What is wrong with a policy."""
        spec.setdefault("matchConstraints", {"resourceRules": [RULE]})
        if mutating:
            patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
            spec.setdefault("mutations", [patch])
        else:
            spec.setdefault("validations", [{"expression": "true"}])
        kind = "MutatingAdmissionPolicy" if mutating else "ValidatingAdmissionPolicy"
        return problems(ADMISSION, kind, spec=spec)

    def test_reasons(self) -> None:
        """A refusal is not for want of a user."""
        self.assertEqual(self.policy(validations=[{"expression": "true", "reason": "Forbidden"}]), [])
        self.assertEqual(
            self.policy(validations=[{"expression": "true", "reason": "Unauthorized"}]),
            [
                'spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", '
                '"Invalid", "RequestEntityTooLarge"'
            ],
        )

    def test_constants_without_value(self) -> None:
        """A constant that has no value is an internal error, unless its type is wrong already."""
        bad = "int('x')"
        no_value = "Internal error: program instantiation failed: type conversion error from 'string' to 'int'"
        conditions = [{"name": "a", "expression": f"{bad} == 1"}]
        self.assertEqual(
            self.policy(validations=[{"expression": f"{bad} == 1"}, {"expression": bad}], matchConditions=conditions),
            [
                f"spec.matchConditions[0].expression: {no_value}",
                f"spec.validations[0].expression: {no_value}",
                f'spec.validations[1].expression: Invalid value: "{bad}": must evaluate to bool but got int',
            ],
        )
        variables = [{"name": "v", "expression": bad}]
        self.assertEqual(self.policy(variables=variables), [f"spec.variables[0].expression: {no_value}"])

    def test_without_variables(self) -> None:
        """A validating policy that has no variables does not know the word; a mutating one does."""
        (found,) = self.policy(validations=[{"expression": "variables.x"}])
        self.assertIn("undeclared reference to 'variables'", found)
        patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "variables.x"}}
        (found,) = self.policy(True, mutations=[patch], reinvocationPolicy="Never")
        self.assertIn("undefined field 'x'", found)

    def test_many_annotations(self) -> None:
        """Annotations that are too many are shown as Go has them."""
        notes = [{"key": f"k{number}", "valueExpression": "'a'"} for number in range(21)]
        (found,) = self.policy(auditAnnotations=notes)
        start = 'spec.auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"\'a\'"},'
        self.assertEqual(found[: len(start)], start)
        self.assertTrue(found.endswith(": must not have more than 20 auditAnnotations"))

    def test_reinvocation(self) -> None:
        """Whether a mutating policy wants to be asked again has to be said."""
        self.assertEqual(self.policy(True, reinvocationPolicy="Never"), [])
        self.assertEqual(self.policy(True), ["spec.reinvocationPolicy: Required value"])

    def test_mutating_operations(self) -> None:
        """Mutating policies are for whatever can be mutated, in a policy and in a binding."""
        rules = [{**RULE, "operations": ["*"]}]
        match = {"resourceRules": rules}
        self.assertEqual(self.policy(True, reinvocationPolicy="Never", matchConstraints=match), [])
        kind = "MutatingAdmissionPolicyBinding"
        spec: dict[str, Any] = {"policyName": "p", "matchResources": match}
        self.assertEqual(problems(ADMISSION, kind, spec=spec), [])
        rules[0]["operations"] = ["DELETE"]
        self.assertEqual(
            problems(ADMISSION, kind, spec=spec),
            [
                'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", '
                '"CONNECT", "CREATE", "UPDATE"'
            ],
        )

    def test_resource_names(self) -> None:
        """Names of resources come once."""
        match = {"resourceRules": [{**RULE, "resourceNames": ["a", "b", "a"]}]}
        where = "spec.matchConstraints.resourceRules[0].resourceNames[2]"
        self.assertEqual(self.policy(matchConstraints=match), [f'{where}: Duplicate value: "a"'])

    def binding(self, **spec: Any) -> list[str]:
        """What is wrong with a binding."""
        spec = {"policyName": "p", "validationActions": ["Deny"], **spec}
        return [str(cause) for cause in validate_policy_binding({"metadata": {"name": "b"}, "spec": spec}, False)]

    def test_actions(self) -> None:
        """Actions that exclude each other are shown in the order in which they were given."""
        (found,) = self.binding(validationActions=["Warn", "Deny"])
        self.assertIn('spec.validationActions: Invalid value: ["Warn","Deny"]: must not contain both', found)
        (found, _) = self.binding(validationActions=["Warn", "Deny", "Warn"])
        self.assertEqual(found, 'spec.validationActions[2]: Duplicate value: "Warn"')

    def test_parameters(self) -> None:
        """A selector is looked at even beside a name; what happens without parameters has to be said."""
        selector = {"matchExpressions": [{"key": "a", "operator": "In"}]}
        reference = {"name": "x", "selector": selector, "parameterNotFoundAction": ""}
        self.assertEqual(
            self.binding(paramRef=reference),
            [
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector.matchExpressions[0].values: Required value: must be specified when `operator` "
                "is 'In' or 'NotIn'",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        )

    def status(self, **status: Any) -> list[str]:
        """What is wrong with a status of a policy."""
        return status_problems(ADMISSION, "ValidatingAdmissionPolicy", status)

    def test_warnings(self) -> None:
        """What type checking has found has a place and a text."""
        path = "status.typeChecking.expressionWarnings[0]"
        self.assertEqual(
            self.status(typeChecking={"expressionWarnings": [{"fieldRef": " "}]}),
            [f"{path}.warning: Required value", f"{path}.fieldRef: Required value"],
        )
        warning = {"fieldRef": "spec.validations[0].expression", "warning": "no"}
        self.assertEqual(self.status(typeChecking={"expressionWarnings": [warning]}), [])
        self.assertEqual(self.status(typeChecking=None, conditions=None), [])

    def test_conditions(self) -> None:
        """Conditions are complete, and each is of a type of its own."""
        good = {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Done"}
        self.assertEqual(self.status(conditions=[good]), [])
        path = "status.conditions[0]"
        found = self.status(conditions=[{"type": "A", "status": "Perhaps", "observedGeneration": -1}, good])
        self.assertEqual(
            found,
            [
                f'{path}.status: Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"',
                f"{path}.observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                f"{path}.lastTransitionTime: Required value",
                f"{path}.reason: Required value",
                'status.conditions[1].type: Duplicate value: "A"',
            ],
        )
        (found_reason,) = self.status(conditions=[{**good, "reason": "1"}])
        self.assertEqual(
            found_reason,
            f'{path}.reason: Invalid value: "1": a condition reason must start with alphabetic character, optionally '
            "followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or "
            "'_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
            "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
        )
        (found_type,) = self.status(conditions=[{**good, "type": "a b"}])
        self.assertIn(f'{path}.type: Invalid value: "a b": name part must consist', found_type)
        self.assertEqual(
            self.status(conditions=[{**good, "reason": "a" * 1025, "message": "a" * 32769}]),
            [
                f"{path}.reason: Too long: may not be more than 1024 bytes",
                f"{path}.message: Too long: may not be more than 32768 bytes",
            ],
        )


class FlowSchemaTests(SynchronousTestCase):
    """Flow schemas."""

    RESOURCES: ClassVar[dict[str, Any]] = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    USER: ClassVar[dict[str, Any]] = {"kind": "User", "user": {"name": "u"}}

    def schema(self, **rule: Any) -> list[str]:
        """What is wrong with a rule of a schema."""
        rule.setdefault("subjects", [self.USER])
        if "nonResourceRules" not in rule:
            rule.setdefault("resourceRules", [self.RESOURCES])
        spec = {"priorityLevelConfiguration": {"name": "l"}, "rules": [rule]}
        return [one.removeprefix("spec.rules[0].") for one in problems(FLOW, "FlowSchema", spec=spec)]

    def paths(self, *urls: str) -> list[str]:
        """What is wrong with paths."""
        return self.schema(nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": list(urls)}])

    def test_paths(self) -> None:
        """Paths are absolute, and have wildcards at the end only."""
        where = "nonResourceRules[0].nonResourceURLs"
        self.assertEqual(self.paths("/", "/healthz", "/apis/*", "/*"), [])
        self.assertEqual(self.paths("*"), [])
        self.assertEqual(
            self.paths("", "a", "/a b", "/a//b", "/a*", "/*/b", "/*/*"),
            [
                f'{where}[0]: Invalid value: "": must not be empty',
                f'{where}[1]: Invalid value: "a": must start with slash',
                f'{where}[2]: Invalid value: "/a b": must not contain white-space',
                f'{where}[3]: Invalid value: "/a//b": must not contain double slash',
                f'{where}[4]: Invalid value: "/a*": wildcard can only do suffix matching',
                f'{where}[5]: Invalid value: "/*/b": wildcard can only do suffix matching',
                f'{where}[6]: Invalid value: "/*/*": wildcard can only do suffix matching',
            ],
        )
        text = "if '*' is present, must not specify other non-resource URLs"
        self.assertEqual(self.paths("*", "x"), [f'{where}: Invalid value: ["*","x"]: {text}'])

    def test_verbs(self) -> None:
        """Beside a wildcard nobody looks at other verbs."""
        found = self.schema(resourceRules=[{**self.RESOURCES, "verbs": ["*", "eat"]}])
        text = "if '*' is present, must not specify other verbs"
        self.assertEqual(found, [f'resourceRules[0].verbs: Invalid value: ["*","eat"]: {text}'])

    def test_namespaces(self) -> None:
        """Namespaces have names, or there is a wildcard alone."""
        where = "resourceRules[0].namespaces"
        found = self.schema(resourceRules=[{**self.RESOURCES, "namespaces": ["*", "A"]}])
        text = "if '*' is present, must not specify other namespaces"
        self.assertEqual(found, [f'{where}: Invalid value: ["*","A"]: {text}'])
        (message,) = self.schema(resourceRules=[{**self.RESOURCES, "namespaces": ["A"]}])
        text = "each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must"
        self.assertIn(f'{where}[0]: Invalid value: "A": {text}', message)

    def test_subjects(self) -> None:
        """A subject has what its kind needs, and nothing of other kinds."""
        self.assertEqual(
            self.schema(subjects=[{"kind": "ServiceAccount", "serviceAccount": {}}]),
            [
                "subjects[0].serviceAccount.name: Required value",
                "subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account",
            ],
        )
        both = {"serviceAccount": {"name": "*", "namespace": "n"}, "user": {"name": "u"}, "group": {"name": "g"}}
        wanted = {
            "ServiceAccount": ["user", "group"],
            "User": ["serviceAccount", "group"],
            "Group": ["serviceAccount", "user"],
        }
        for kind, names in wanted.items():
            found = self.schema(subjects=[{"kind": kind, **both}])
            self.assertEqual([one.partition(":")[0] for one in found], [f"subjects[0].{name}" for name in names])

    def test_conditions(self) -> None:
        """Each condition is of a type, and of one of its own."""
        for kind in ("FlowSchema", "PriorityLevelConfiguration"):
            conditions = [{"type": "A"}, {"type": "A"}, {}]
            self.assertEqual(
                status_problems(FLOW, kind, {"conditions": conditions}),
                [
                    'status.conditions[1].type: Duplicate value: "A"',
                    "status.conditions[2].type: Required value",
                ],
            )


class PriorityLevelTests(SynchronousTestCase):
    """Priority levels."""

    def level(self, name: str, spec: dict[str, Any]) -> list[str]:
        """What is wrong with a level of this name."""
        strategy = strategy_for(FLOW, "PriorityLevelConfiguration")
        obj = copy({"metadata": {"name": name}, "spec": spec})
        strategy.default(obj)
        return [str(cause) for cause in strategy.validate(obj)]

    def queues(self, queues: int, hand: int) -> list[str]:
        """What is wrong with a hand of queues."""
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand}}
        return self.level("l", {"type": "Limited", "limited": {"limitResponse": response}})

    def test_hands(self) -> None:
        """A hand is dealt with the bits of a hash."""
        where = "spec.limited.limitResponse.queuing.handSize"
        self.assertEqual(self.queues(1024, 6), [])
        self.assertEqual(self.queues(10_000_000, 2), [])
        text = "required entropy bits of deckSize 512 and handSize 8 should not be greater than 60"
        self.assertEqual(self.queues(512, 8), [f"{where}: Invalid value: 8: {text}"])

    def test_fixed(self) -> None:
        """Nobody changes the two levels that there have to be, but for the share of one."""
        for name, spec in PRIORITY_LEVELS.items():
            self.assertEqual(self.level(name, spec), [], name)
        self.assertEqual(self.level("exempt", {"type": "Exempt"}), [])
        self.assertEqual(self.level("exempt", {"type": "Exempt", "exempt": {"lendablePercent": 5}}), [])
        limited = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
        self.assertEqual(
            self.level("exempt", {"type": "Exempt", "limited": limited}),
            [
                "spec.limited: Forbidden: must be nil if the type is not Limited",
                'spec: Invalid value: {"Type":"Exempt","Limited":{"NominalConcurrencyShares":5,"LimitResponse":'
                '{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},"Exempt":null}: '
                "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
            ],
        )
        (found,) = self.level("catch-all", {"type": "Limited", "limited": {**limited, "lendablePercent": 1}})
        self.assertTrue(found.endswith(": spec of 'catch-all' must equal the fixed value"), found)


class DefinitionTests(DefinitionTestCase):
    """Definitions of custom resources."""

    def changed(self, old: dict[str, Any], crd: dict[str, Any]) -> list[str]:
        """What is wrong with a definition that takes the place of another."""
        before, after = self.made(old), copy(crd)
        self.strategy.default(after)
        self.strategy.prepare_for_update(after, before)
        return [str(cause) for cause in self.strategy.validate_update(after, before)]

    def test_generated_name(self) -> None:
        """Names of definitions are not generated."""
        crd = definition()
        names = self.strategy.names_for(crd)
        self.assertEqual(names("kites-", True), ['must be spec.names.plural+"."+spec.group'])

    def test_stored_versions(self) -> None:
        """A new definition stores one version only, however many say that it is they."""
        crd = definition()
        second = {**copy(crd["spec"]["versions"][0]), "name": "v2"}
        crd["spec"]["versions"].append(second)
        self.assertEqual(self.made(crd)["status"]["storedVersions"], ["v1"])
        self.assertEqual(
            self.told(crd)[1:], [("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v2')]
        )
        self.assertEqual(
            self.changed(definition(), crd)[1:], [f"{field}: {text}" for field, text in self.told(crd)[1:]]
        )

    def test_repeated_versions(self) -> None:
        """A version that is there twice is stored once, and one without a name is stored like others."""
        crd = definition()
        crd["spec"]["versions"].append(copy(crd["spec"]["versions"][0]))
        self.assertEqual(
            self.told(crd)[2:], [("status.storedVersions", 'Invalid value: ["v1"]: must have the storage version v1')]
        )
        crd = definition()
        crd["spec"]["versions"][0]["name"] = ""
        self.assertEqual([field for field, _ in self.told(crd)], ["spec.versions[0].name"])
        self.assertNotIn("must have the storage version", str(self.changed(definition(), crd)))

    def test_first_version(self) -> None:
        """The first version is that of definitions of old, too, and is looked at as that."""
        crd = definition()
        crd["spec"]["versions"][0]["name"] = "V1"
        self.assertEqual([field for field, _ in self.told(crd)], ["spec.versions[0].name", "spec.version"])

    def test_empty_webhook(self) -> None:
        """A webhook of which nothing is said is none."""
        crd = definition()
        crd["spec"]["conversion"] = {"strategy": "None", "webhook": {"conversionReviewVersions": []}}
        self.assertEqual(self.made(crd)["spec"]["conversion"], {"strategy": "None"})

    def test_no_versions(self) -> None:
        """A list that is empty is shown as that, and one that is missing as nothing."""
        crd = definition()
        for versions, shown in (([], "[]"), (None, "null")):
            crd["spec"]["versions"] = versions
            text = f"Invalid value: {shown}: must have exactly one version marked as storage version"
            self.assertEqual(self.told(crd)[0], ("spec.versions", text))

    def test_fields_without_schema(self) -> None:
        """Fields that can be selected by are some of a schema."""
        crd = definition()
        crd["spec"]["versions"][0].update({"schema": None, "selectableFields": [{"jsonPath": ".spec.a"}]})
        text = 'Invalid value: "": may only be set when validations.schema is included'
        self.assertIn(("spec.selectableFields", text), self.told(crd))

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
            self.assertEqual(self.told(crd), wrong)

    def test_like_schemas(self) -> None:
        """Schemas whose defaults differ by type only are different."""
        crd, apart = copy(definition()), []
        for name, default in (("v1", 1), ("v2", True)):
            mixed = {"x-kubernetes-int-or-string": True, "default": default, "enum": ["a"]}
            schema = {"openAPIV3Schema": {"type": "object", "properties": {"l": mixed}}}
            apart.append({"name": name, "served": True, "storage": name == "v1", "schema": schema})
        crd["spec"]["versions"] = apart
        self.assertEqual(
            [path for path, _ in self.told(crd)],
            [f"spec.versions[{index}].schema.openAPIV3Schema.properties[l].default" for index in range(2)],
        )

    def test_mixed_defaults(self) -> None:
        """A default of what is an integer or a string may be anything, but is looked at otherwise."""
        crd = copy(definition())
        mixed = {"x-kubernetes-int-or-string": True, "default": True}
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"l": mixed}
        self.assertEqual(self.told(crd), [])
        properties["l"] = {**mixed, "enum": [1]}
        text = 'Unsupported value: true: supported values: "1"'
        self.assertEqual(self.told(crd), [("spec.validation.openAPIV3Schema.properties[l].default", text)])

    def test_keyed_items(self) -> None:
        """Items of a list with keys have one schema; where they have several, these are shown."""
        crd = copy(definition())
        schema = {"type": "array", "items": [], "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"l": schema}
        text = (
            'Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema if '
            "x-kubernetes-list-type is map"
        )
        self.assertIn(("spec.validation.openAPIV3Schema.properties[l].items", text), self.told(crd))

    def test_lost_versions(self) -> None:
        """A version that is stored somewhere, and is gone, is told of once."""
        crd = self.made(definition())
        crd["status"]["storedVersions"] = ["v0", "v1", "v0"]
        found = [cause.field for cause in self.strategy.validate(crd)]
        self.assertEqual(found, ["status.storedVersions[2]"])

    def test_old_without_schemas(self) -> None:
        """Older definitions may lack schemas, as long as nothing is pruned or served."""
        old = definition()
        del old["spec"]["versions"][0]["schema"]
        where = "spec.versions[0].schema.openAPIV3Schema: Required value"
        self.assertEqual([f"{field}: {text}" for field, text in self.told(old)], [where])
        self.assertEqual(self.changed(old, old), [f"{where}: because otherwise all fields are pruned"])
        unserved = copy(old)
        unserved["spec"]["versions"][0]["served"] = False
        self.assertEqual(self.changed(unserved, unserved), [])
        old["spec"]["preserveUnknownFields"] = True
        self.assertEqual(self.changed(old, old), [])

    def test_old_unstructural(self) -> None:
        """Older definitions may have schemas that are not structural, until something depends on that."""
        loose = {"type": "object", "properties": {"a": {}}}
        old = definition(loose)
        self.assertEqual(self.fields(old), ["spec.validation.openAPIV3Schema.properties[a].type"])
        old["spec"]["preserveUnknownFields"] = True
        self.assertEqual(self.changed(old, old), [])
        pruning = copy(old)
        pruning["spec"]["preserveUnknownFields"] = False
        self.assertNotEqual(self.changed(old, pruning), [])
        extended = copy(old)
        schema = extended["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["b"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        self.assertNotEqual(self.changed(old, extended), [])

    def test_nothing_said(self) -> None:
        """Keywords that are null are not there."""
        schema = {"type": "object", "properties": {"a": {**TEXT, "$ref": None, "additionalItems": None}}}
        self.assertEqual(self.told(definition(schema)), [])

    def test_dependencies(self) -> None:
        """Dependencies are not supported, and what is wrong within them is told as well."""
        schema = {"type": "object", "dependencies": {"a": {"type": "array", "uniqueItems": True}, "b": ["c"]}}
        where = "spec.validation.openAPIV3Schema.dependencies"
        self.assertEqual(self.fields(definition(schema)), [where, f"{where}[a].uniqueItems"])

    def test_many_keys(self) -> None:
        """Thousands of keys that are wrong are told of by texts that are made once: each quotes all of them."""
        keys = [f"k{number}" for number in range(2000)] * 2
        items = {"type": "object", "properties": {"a": TEXT}}
        keyed = {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys,
            "items": items,
        }
        causes = self.strategy.validate(self.made(definition({"type": "object", "properties": {"l": keyed}})))
        self.assertEqual((len(causes), len({id(cause) for cause in causes})), (6000, 2))

    def test_review_versions(self) -> None:
        """Versions of reviews come once."""
        crd = definition()
        webhook = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1", "v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        found = [("spec.conversion.conversionReviewVersions[1]", 'Invalid value: "v1": duplicate version')]
        self.assertEqual(self.told(crd), found)

    def test_service_path(self) -> None:
        """A webhook that converts may be at the root of a service."""
        crd = definition()
        service = {"name": "a", "namespace": "b", "path": ""}
        webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        self.assertEqual(self.told(crd), [])


class DefaultTests(SynchronousTestCase):
    """What is filled in."""

    def test_policies(self) -> None:
        """Policies fail, unless they say otherwise; whether they are asked again is theirs to say."""
        policy = made(ADMISSION, "MutatingAdmissionPolicy", spec={})
        self.assertEqual(policy["spec"], {"failurePolicy": "Fail"})

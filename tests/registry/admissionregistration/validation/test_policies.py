"""Tests for L{kubetwist.registry.admissionregistration.validation.policies}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.admissionregistration.validation.policies import validate_policy_binding
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import new_status_problems, problems

ADMISSION = "admissionregistration.k8s.io"


RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


class PolicyTests(SynchronousTestCase):
    """Tests for admission policies and bindings."""

    def policy_errors(self, mutating: bool = False, **spec: Any) -> list[str]:
        """Return the errors of a policy."""
        spec.setdefault("matchConstraints", {"resourceRules": [RULE]})
        if mutating:
            patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
            spec.setdefault("mutations", [patch])
        else:
            spec.setdefault("validations", [{"expression": "true"}])
        kind = "MutatingAdmissionPolicy" if mutating else "ValidatingAdmissionPolicy"
        return problems(ADMISSION, kind, spec=spec)

    def test_reasons(self) -> None:
        """The reason Unauthorized is not allowed."""
        self.assertEqual(self.policy_errors(validations=[{"expression": "true", "reason": "Forbidden"}]), [])
        self.assertEqual(
            self.policy_errors(validations=[{"expression": "true", "reason": "Unauthorized"}]),
            [
                'spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", '
                '"Invalid", "RequestEntityTooLarge"'
            ],
        )

    def test_constants_without_value(self) -> None:
        """A constant expression without a value is an internal error, unless its type is wrong."""
        bad = "int('x')"
        no_value = "Internal error: program instantiation failed: type conversion error from 'string' to 'int'"
        conditions = [{"name": "a", "expression": f"{bad} == 1"}]
        self.assertEqual(
            self.policy_errors(
                validations=[{"expression": f"{bad} == 1"}, {"expression": bad}], matchConditions=conditions
            ),
            [
                f"spec.matchConditions[0].expression: {no_value}",
                f"spec.validations[0].expression: {no_value}",
                f'spec.validations[1].expression: Invalid value: "{bad}": must evaluate to bool but got int',
            ],
        )
        variables = [{"name": "v", "expression": bad}]
        self.assertEqual(self.policy_errors(variables=variables), [f"spec.variables[0].expression: {no_value}"])

    def test_without_variables(self) -> None:
        """A validating policy without variables does not declare C{variables}; a mutating one does."""
        (error,) = self.policy_errors(validations=[{"expression": "variables.x"}])
        self.assertIn("undeclared reference to 'variables'", error)
        patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "variables.x"}}
        (error,) = self.policy_errors(True, mutations=[patch], reinvocationPolicy="Never")
        self.assertIn("undefined field 'x'", error)

    def test_many_annotations(self) -> None:
        """Too many annotations are shown as Go prints them."""
        notes = [{"key": f"k{number}", "valueExpression": "'a'"} for number in range(21)]
        (error,) = self.policy_errors(auditAnnotations=notes)
        start = 'spec.auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"\'a\'"},'
        self.assertEqual(error[: len(start)], start)
        self.assertTrue(error.endswith(": must not have more than 20 auditAnnotations"))

    def test_reinvocation_policy(self) -> None:
        """A mutating policy requires a reinvocation policy."""
        self.assertEqual(self.policy_errors(True, reinvocationPolicy="Never"), [])
        self.assertEqual(self.policy_errors(True), ["spec.reinvocationPolicy: Required value"])

    def test_mutating_operations(self) -> None:
        """Mutating policies and their bindings may have all operations except for DELETE."""
        rules = [{**RULE, "operations": ["*"]}]
        match = {"resourceRules": rules}
        self.assertEqual(self.policy_errors(True, reinvocationPolicy="Never", matchConstraints=match), [])
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
        """Resource names are unique."""
        match = {"resourceRules": [{**RULE, "resourceNames": ["a", "b", "a"]}]}
        path = "spec.matchConstraints.resourceRules[0].resourceNames[2]"
        self.assertEqual(self.policy_errors(matchConstraints=match), [f'{path}: Duplicate value: "a"'])

    def binding_errors(self, **spec: Any) -> list[str]:
        """Return the errors of a binding."""
        spec = {"policyName": "p", "validationActions": ["Deny"], **spec}
        return [str(cause) for cause in validate_policy_binding({"metadata": {"name": "b"}, "spec": spec}, False)]

    def test_actions(self) -> None:
        """Incompatible actions are shown in their order."""
        (error,) = self.binding_errors(validationActions=["Warn", "Deny"])
        self.assertIn('spec.validationActions: Invalid value: ["Warn","Deny"]: must not contain both', error)
        (error, _) = self.binding_errors(validationActions=["Warn", "Deny", "Warn"])
        self.assertEqual(error, 'spec.validationActions[2]: Duplicate value: "Warn"')

    def test_parameters(self) -> None:
        """A selector is validated even beside a name; the action for missing parameters is required."""
        selector = {"matchExpressions": [{"key": "a", "operator": "In"}]}
        reference = {"name": "x", "selector": selector, "parameterNotFoundAction": ""}
        self.assertEqual(
            self.binding_errors(paramRef=reference),
            [
                "spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.selector.matchExpressions[0].values: Required value: must be specified when `operator` "
                "is 'In' or 'NotIn'",
                "spec.paramRef.selector: Forbidden: name and selector are mutually exclusive",
                "spec.paramRef.parameterNotFoundAction: Required value",
            ],
        )

    def status_errors(self, **status: Any) -> list[str]:
        """Return the errors of a policy's status."""
        return new_status_problems(ADMISSION, "ValidatingAdmissionPolicy", status)

    def test_warnings(self) -> None:
        """Warnings of type checking have a field and a text."""
        path = "status.typeChecking.expressionWarnings[0]"
        self.assertEqual(
            self.status_errors(typeChecking={"expressionWarnings": [{"fieldRef": " "}]}),
            [f"{path}.warning: Required value", f"{path}.fieldRef: Required value"],
        )
        warning = {"fieldRef": "spec.validations[0].expression", "warning": "no"}
        self.assertEqual(self.status_errors(typeChecking={"expressionWarnings": [warning]}), [])
        self.assertEqual(self.status_errors(typeChecking=None, conditions=None), [])

    def test_conditions(self) -> None:
        """Conditions are complete, and their types unique."""
        good = {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Done"}
        self.assertEqual(self.status_errors(conditions=[good]), [])
        path = "status.conditions[0]"
        result = self.status_errors(conditions=[{"type": "A", "status": "Perhaps", "observedGeneration": -1}, good])
        self.assertEqual(
            result,
            [
                f'{path}.status: Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"',
                f"{path}.observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                f"{path}.lastTransitionTime: Required value",
                f"{path}.reason: Required value",
                'status.conditions[1].type: Duplicate value: "A"',
            ],
        )
        (found_reason,) = self.status_errors(conditions=[{**good, "reason": "1"}])
        self.assertEqual(
            found_reason,
            f'{path}.reason: Invalid value: "1": a condition reason must start with alphabetic character, optionally '
            "followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or "
            "'_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
            "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
        )
        (found_type,) = self.status_errors(conditions=[{**good, "type": "a b"}])
        self.assertIn(f'{path}.type: Invalid value: "a b": name part must consist', found_type)
        self.assertEqual(
            self.status_errors(conditions=[{**good, "reason": "a" * 1025, "message": "a" * 32769}]),
            [
                f"{path}.reason: Too long: may not be more than 1024 bytes",
                f"{path}.message: Too long: may not be more than 32768 bytes",
            ],
        )

    def test_types_of_variables(self) -> None:
        """Chains of variables whose types grow exponentially end in an error message, not in a traceback."""
        group, kind = "admissionregistration.k8s.io", "ValidatingAdmissionPolicy"
        variables = [{"name": "v0", "expression": "[1]"}]
        for number in range(1200):
            expression = f"[variables.v{number}, variables.v{number}]"
            variables.append({"name": f"v{number + 1}", "expression": expression})
        spec = {"variables": variables, "validations": [{"expression": "true"}]}
        policy = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": {"name": "p"}, "spec": spec}
        strategy_for(group, kind).default(policy)
        texts = [cause.message for cause in strategy_for(group, kind).validate(policy)]
        self.assertTrue(any("the types nest too deep" in text for text in texts), texts[:3])

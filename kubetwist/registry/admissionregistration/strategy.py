"""Strategies of webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from .validation import policies
from .validation import webhooks as rules


def _default_rules(webhook: JSONObject, name: str) -> None:
    for rule in webhook.get(name) or ():
        if rule.get("scope") is None:
            rule["scope"] = "*"


def _default_match(resources: JSONObject) -> None:
    """Add defaults to match resources, which policies and bindings share."""
    if resources.get("matchPolicy") is None:
        resources["matchPolicy"] = "Equivalent"
    for name in ("namespaceSelector", "objectSelector"):
        if resources.get(name) is None:
            resources[name] = {}
    _default_rules(resources, "resourceRules")
    _default_rules(resources, "excludeResourceRules")


class WebhookConfigurationStrategy(Strategy):
    """admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration and MutatingWebhookConfiguration."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    standard_finalizers = False
    has_generation = True
    allow_unconditional_update = False

    def __init__(self, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/admissionregistration/v1/defaults.go}."""
        for webhook in obj.get("webhooks") or ():
            if webhook.get("failurePolicy") is None:
                webhook["failurePolicy"] = "Fail"
            if webhook.get("matchPolicy") is None:
                webhook["matchPolicy"] = "Equivalent"
            for name in ("namespaceSelector", "objectSelector"):
                if webhook.get(name) is None:
                    webhook[name] = {}
            if webhook.get("timeoutSeconds") is None:
                webhook["timeoutSeconds"] = 10
            if self._mutating and webhook.get("reinvocationPolicy") is None:
                webhook["reinvocationPolicy"] = "Never"
            webhook.setdefault("sideEffects", None)
            webhook.setdefault("admissionReviewVersions", None)
            service = webhook.setdefault("clientConfig", {}).get("service")
            if service is not None and service.get("port") is None:
                service["port"] = 443
            _default_rules(webhook, "rules")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate every webhook."""
        return rules.validate_webhooks(obj, self._mutating)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate every webhook; errors of the stored object that older servers accepted are ignored."""
        return rules.validate_webhooks(obj, self._mutating, old)


class PolicyStrategy(Strategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    standard_finalizers = False
    status_metadata_update_rules: Sequence[Rule] = ()
    has_generation = True
    allow_unconditional_update = False

    def __init__(self, mutating: bool) -> None:
        self._mutating = mutating
        self.has_status = not mutating

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/admissionregistration/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        if spec.get("failurePolicy") is None:
            spec["failurePolicy"] = "Fail"
        if spec.get("matchConstraints") is not None:
            _default_match(spec["matchConstraints"])

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: the policy is not type-checked yet."""
        if not self._mutating:
            obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the policy, including its expressions."""
        return policies.validate_policy(obj, self._mutating)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the policy; unchanged match conditions are not validated again."""
        return policies.validate_policy(obj, self._mutating, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the results of type checking, and the conditions."""
        return policies.validate_policy_status(obj)


class PolicyBindingStrategy(Strategy):
    """admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    standard_finalizers = False
    has_generation = True
    allow_unconditional_update = False

    def __init__(self, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/admissionregistration/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        if spec.get("matchResources") is not None:
            _default_match(spec["matchResources"])

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the policy name, the parameters and the validation actions."""
        return policies.validate_policy_binding(obj, self._mutating)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ValidatingWebhookConfiguration": WebhookConfigurationStrategy(mutating=False),
    "MutatingWebhookConfiguration": WebhookConfigurationStrategy(mutating=True),
    "ValidatingAdmissionPolicy": PolicyStrategy(mutating=False),
    "MutatingAdmissionPolicy": PolicyStrategy(mutating=True),
    "ValidatingAdmissionPolicyBinding": PolicyBindingStrategy(mutating=False),
    "MutatingAdmissionPolicyBinding": PolicyBindingStrategy(mutating=True),
}

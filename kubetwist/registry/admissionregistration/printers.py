"""Table rows of webhook configurations, admission policies and their bindings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Row, described_before, integer
from ..generic.printers.texts import UNSET, name_of, spec_of


def webhook_configuration(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a webhook configuration: the number of its webhooks."""
    yield name_of(obj)
    yield len(obj.get("webhooks") or ())
    yield age(obj)


def admission_policy(rules: str) -> Callable[[JSONObject], Iterator[Cell]]:
    """Return a function that makes the row of a policy, whose rules are in the field C{rules}."""

    def row(obj: JSONObject) -> Iterator[Cell]:
        spec = spec_of(obj)
        parameters = spec.get("paramKind")
        yield name_of(obj)
        yield len(spec.get(rules) or ())
        yield UNSET if parameters is None else f"{parameters.get('apiVersion', '')}/{parameters.get('kind', '')}"
        yield age(obj)

    return row


def admission_policy_binding(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a policy binding: its policy and parameters."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("policyName", "")
    yield _parameters(spec.get("paramRef"))
    yield age(obj)


def _parameters(reference: JSONObject | None) -> str:
    if reference is None:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else _go_selector(selector)


def _go_selector(selector: JSONObject) -> str:
    """Return a label selector as Go's generated String method prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def _admission_policy(rules: str, description: str) -> tuple[Column, ...]:
    return (
        NAME,
        integer(rules, description),
        Column("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy"),
        AGE,
    )


_WEBHOOKS: Final = (
    NAME,
    integer("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"),
    AGE,
)


_POLICY_BINDING: Final = (
    NAME,
    Column("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
    *described_before(
        "1.35",
        # The misspelling is the reference's.
        "ParamRef indicates the param resource which sets the configration param",
        Column("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
    ),
    AGE,
)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": _admission_policy(
        "Validations", "Validations indicates the number of validation rules defined in this configuration"
    ),
    "MutatingAdmissionPolicy": _admission_policy(
        "Mutations", "Mutation indicates the number of mutations rules defined in this configuration"
    ),
    "ValidatingAdmissionPolicyBinding": _POLICY_BINDING,
    "MutatingAdmissionPolicyBinding": _POLICY_BINDING,
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "MutatingWebhookConfiguration": webhook_configuration,
    "ValidatingWebhookConfiguration": webhook_configuration,
    "ValidatingAdmissionPolicy": admission_policy("validations"),
    "MutatingAdmissionPolicy": admission_policy("mutations"),
    "ValidatingAdmissionPolicyBinding": admission_policy_binding,
    "MutatingAdmissionPolicyBinding": admission_policy_binding,
}

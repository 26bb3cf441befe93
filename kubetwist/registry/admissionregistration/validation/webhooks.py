"""
Validation of webhook configurations.

See kubernetes, C{pkg/apis/admissionregistration/validation/validation.go}.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ....admission.expressions import Compiler, OptionalVariables
from ....api.errors import FieldError, duplicate, invalid, required
from ....api.names import validate_dns1035_label, validate_fully_qualified_name, validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, check, is_selector, label_selector, unsupported
from ...generic.validation.webhookclient import webhook_service, webhook_url

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_VERSIONS: Final = ("v1", "v1beta1")
_EFFECTS: Final = ("None", "NoneOnDryRun")
_SELECTORS: Final = ("namespaceSelector", "objectSelector")


@frozen
class _Leniency:
    """
    Errors that are ignored in an update, since the stored object has them already.

    @ivar effects: Side effects other than C{None} and C{NoneOnDryRun}.
    @ivar versions: Webhooks without a supported version of AdmissionReview.
    @ivar names: Duplicate names.
    @ivar conditions: Match conditions: all are unchanged.
    @ivar selectors: Values in selectors that are not valid label values.
    """

    effects: bool = False
    versions: bool = False
    names: bool = False
    conditions: bool = False
    selectors: bool = False

    @classmethod
    def of(cls, before: list[JSONObject], after: list[JSONObject]) -> _Leniency:
        names = [one.get("name") for one in before]
        return cls(
            effects=any(one.get("sideEffects") not in _EFFECTS for one in before),
            versions=any(
                one.get("admissionReviewVersions") and not set(_VERSIONS) & set(one["admissionReviewVersions"])
                for one in before
            ),
            names=len(set(names)) < len(names),
            conditions=len(before) == len(after)
            and all(
                (one.get("matchConditions") or []) == (other.get("matchConditions") or [])
                for one, other in zip(before, after, strict=True)
            ),
            selectors=not all(
                is_selector(one[name]) for one in before for name in _SELECTORS if one.get(name) is not None
            ),
        )


def validate_webhooks(obj: JSONObject, mutating: bool, old: JSONObject | None = None) -> list[FieldError]:
    """Validate every webhook of a configuration; names must be unique."""
    errors: ErrorList = []
    names: set[str] = set()
    webhooks: list[JSONObject] = obj.get("webhooks") or []
    lenient = _Leniency() if old is None else _Leniency.of(old.get("webhooks") or [], webhooks)
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        _validate_webhook(webhook, mutating, path, lenient, errors)
        name = webhook.get("name") or ""
        versions = webhook.get("admissionReviewVersions") or []
        if not versions:
            text = f"must specify one of {', '.join(_VERSIONS)}"
            errors.append(required(f"{path}.admissionReviewVersions", text))
        else:
            _validate_review_versions(versions, f"{path}.admissionReviewVersions", lenient, errors)
        if name and not lenient.names:
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
    return errors


def _validate_review_versions(versions: list[str], path: str, lenient: _Leniency, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            errors.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        check(version, f"{path}[{index}]", validate_dns1035_label, errors)
    if not lenient.versions and not any(version in _VERSIONS for version in versions):
        text = f"must include at least one of {', '.join(_VERSIONS)}"
        errors.append(invalid(path, versions, text))


def _validate_webhook(webhook: JSONObject, mutating: bool, path: str, lenient: _Leniency, errors: ErrorList) -> None:
    name = webhook.get("name") or ""
    for text in validate_fully_qualified_name(name):
        errors.append(invalid(f"{path}.name", name, text) if text else required(f"{path}.name"))
    for index, rule in enumerate(webhook.get("rules") or ()):
        check_rule(rule, f"{path}.rules[{index}]", errors)
    policy, match = webhook.get("failurePolicy"), webhook.get("matchPolicy")
    if policy is not None and policy not in ("Fail", "Ignore"):
        errors.append(unsupported(f"{path}.failurePolicy", policy, ("Fail", "Ignore")))
    if match is not None and match not in ("Equivalent", "Exact"):
        errors.append(unsupported(f"{path}.matchPolicy", match, ("Equivalent", "Exact")))
    effects = webhook.get("sideEffects")
    allowed = (*_EFFECTS, "Some", "Unknown") if lenient.effects else _EFFECTS
    if effects is None:
        errors.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    elif effects not in allowed:
        errors.append(unsupported(f"{path}.sideEffects", effects, allowed))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, text))
    for field in _SELECTORS:
        label_selector(webhook.get(field), f"{path}.{field}", errors, values=not lenient.selectors)
    if mutating:
        again = webhook.get("reinvocationPolicy")
        if again is not None and again not in ("IfNeeded", "Never"):
            errors.append(unsupported(f"{path}.reinvocationPolicy", again, ("IfNeeded", "Never")))
    _validate_client(webhook.get("clientConfig") or {}, f"{path}.clientConfig", errors)
    if not lenient.conditions:
        check_conditions(webhook.get("matchConditions") or [], f"{path}.matchConditions", errors, OptionalVariables())


def check_conditions(conditions: list[JSONObject], path: str, errors: ErrorList, names: OptionalVariables) -> None:
    """
    Validate C{matchConditions}.

    @param conditions: The match conditions.
    @param path: Their path.
    @param errors: Receives the errors.
    @param names: The optional variables that the expressions may use.
    """
    if len(conditions) > 64:
        text = f"Too many: {len(conditions)}: must have at most 64 items"
        errors.append(FieldError("FieldValueTooMany", text, path))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        item_path, name = f"{path}[{index}]", condition.get("name") or ""
        expression = (condition.get("expression") or "").strip()
        if not expression:
            errors.append(required(f"{item_path}.expression"))
        else:
            errors += _validate_match_condition(expression, f"{item_path}.expression", names)
        if not name:
            errors.append(required(f"{item_path}.name"))
        else:
            check(name, f"{item_path}.name", validate_qualified_name, errors)
            if name in seen:
                errors.append(duplicate(f"{item_path}.name", name))
            seen.add(name)


def _validate_match_condition(expression: str, path: str, names: OptionalVariables) -> list[FieldError]:
    from ....cel.types import BOOL

    field_error = Compiler().compile(expression, names, (BOOL,)).cause(path)
    return [] if field_error is None else [field_error]


def check_rule(rule: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate a C{RuleWithOperations}."""
    operations = rule.get("operations") or []
    if not operations:
        errors.append(required(f"{path}.operations"))
    if "*" in operations and len(operations) > 1:
        text = "if '*' is present, must not specify other operations"
        errors.append(invalid(f"{path}.operations", operations, text, "[]admissionregistration.OperationType"))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS))
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            errors.append(required(f"{path}.{name}"))
        if "*" in values and len(values) > 1:
            text = f"if '*' is present, must not specify other {what}"
            errors.append(invalid(f"{path}.{name}", values, text))
        if name == "apiVersions":
            for index, value in enumerate(values):
                if not value:
                    errors.append(required(f"{path}.{name}[{index}]"))
    resources = rule.get("resources") or []
    if not resources:
        errors.append(required(f"{path}.resources"))
    _validate_resources(resources, f"{path}.resources", errors)
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        errors.append(unsupported(f"{path}.scope", scope, _SCOPES))


def _validate_resources(resources: list[str], path: str, errors: ErrorList) -> None:
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, text in enumerate(resources):
        item_path = f"{path}[{index}]"
        if not text:
            errors.append(required(item_path))
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            # As in the reference, the last one decides.
            plain = text != "*"
            continue
        if resource in whole:
            errors.append(invalid(item_path, text, f"if '{resource}/*' is present, must not specify {text}"))
        if subresource in everywhere:
            errors.append(invalid(item_path, text, f"if '*/{subresource}' is present, must not specify {text}"))
        if subresource == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(subresource)
    if "*/*" in resources and len(resources) > 1:
        errors.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid(path, resources, text))


def _validate_client(client: JSONObject, path: str, errors: ErrorList) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        errors.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        webhook_url(url, f"{path}.url", True, errors)
    elif service is not None:
        webhook_service(service, f"{path}.service", errors)

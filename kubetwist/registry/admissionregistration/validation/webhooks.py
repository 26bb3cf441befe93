"""Webhook configurations; see kubernetes, C{pkg/apis/admissionregistration/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ....admission.expressions import Compiler, OptionalVariables
from ....api.errors import Cause, duplicate, invalid, required
from ....api.names import fully_qualified_name_problems, is_dns1035_label_problems, qualified_name_problems
from ....api.resource import JSONObject
from ...generic.validation.fields import Causes, check, is_selector, label_selector, unsupported
from ...generic.validation.webhookclient import webhook_service, webhook_url

_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_VERSIONS: Final = ("v1", "v1beta1")
_EFFECTS: Final = ("None", "NoneOnDryRun")
_SELECTORS: Final = ("namespaceSelector", "objectSelector")


@frozen
class _Leniency:
    """
    What is let pass in an update, since it was there before the rule was.

    @ivar effects: Side effects that were not declared as none.
    @ivar versions: Webhooks that know no version of reviews that we do.
    @ivar names: Names that come twice.
    @ivar conditions: Match conditions: none has changed.
    @ivar selectors: Values in selectors that no label can have.
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


def validate_webhooks(obj: JSONObject, mutating: bool, old: JSONObject | None = None) -> list[Cause]:
    """Every webhook of a configuration, each with a name of its own."""
    causes: Causes = []
    names: set[str] = set()
    webhooks: list[JSONObject] = obj.get("webhooks") or []
    lenient = _Leniency() if old is None else _Leniency.of(old.get("webhooks") or [], webhooks)
    for index, webhook in enumerate(webhooks):
        path = f"webhooks[{index}]"
        _webhook(webhook, mutating, path, lenient, causes)
        name = webhook.get("name") or ""
        versions = webhook.get("admissionReviewVersions") or []
        if not versions:
            text = f"must specify one of {', '.join(_VERSIONS)}"
            causes.append(required(f"{path}.admissionReviewVersions", text))
        else:
            _review_versions(versions, f"{path}.admissionReviewVersions", lenient, causes)
        if name and not lenient.names:
            if name in names:
                causes.append(duplicate(f"{path}.name", name))
            names.add(name)
    return causes


def _review_versions(versions: list[str], path: str, lenient: _Leniency, causes: Causes) -> None:
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            causes.append(invalid(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        check(version, f"{path}[{index}]", is_dns1035_label_problems, causes)
    if not lenient.versions and not any(version in _VERSIONS for version in versions):
        text = f"must include at least one of {', '.join(_VERSIONS)}"
        causes.append(invalid(path, versions, text))


def _webhook(webhook: JSONObject, mutating: bool, path: str, lenient: _Leniency, causes: Causes) -> None:
    name = webhook.get("name") or ""
    for text in fully_qualified_name_problems(name):
        causes.append(invalid(f"{path}.name", name, text) if text else required(f"{path}.name"))
    for index, rule in enumerate(webhook.get("rules") or ()):
        check_rule(rule, f"{path}.rules[{index}]", causes)
    policy, match = webhook.get("failurePolicy"), webhook.get("matchPolicy")
    if policy is not None and policy not in ("Fail", "Ignore"):
        causes.append(unsupported(f"{path}.failurePolicy", policy, ("Fail", "Ignore")))
    if match is not None and match not in ("Equivalent", "Exact"):
        causes.append(unsupported(f"{path}.matchPolicy", match, ("Equivalent", "Exact")))
    effects = webhook.get("sideEffects")
    allowed = (*_EFFECTS, "Some", "Unknown") if lenient.effects else _EFFECTS
    if effects is None:
        causes.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    elif effects not in allowed:
        causes.append(unsupported(f"{path}.sideEffects", effects, allowed))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        causes.append(invalid(f"{path}.timeoutSeconds", seconds, text))
    for field in _SELECTORS:
        label_selector(webhook.get(field), f"{path}.{field}", causes, values=not lenient.selectors)
    if mutating:
        again = webhook.get("reinvocationPolicy")
        if again is not None and again not in ("IfNeeded", "Never"):
            causes.append(unsupported(f"{path}.reinvocationPolicy", again, ("IfNeeded", "Never")))
    _client(webhook.get("clientConfig") or {}, f"{path}.clientConfig", causes)
    if not lenient.conditions:
        check_conditions(webhook.get("matchConditions") or [], f"{path}.matchConditions", causes, OptionalVariables())


def check_conditions(conditions: list[JSONObject], path: str, causes: Causes, names: OptionalVariables) -> None:
    """
    C{matchConditions}.

    @param names: What they may name.
    """
    if len(conditions) > 64:
        text = f"Too many: {len(conditions)}: must have at most 64 items"
        causes.append(Cause("FieldValueTooMany", text, path))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        expression = (condition.get("expression") or "").strip()
        if not expression:
            causes.append(required(f"{here}.expression"))
        else:
            causes += _condition_causes(expression, f"{here}.expression", names)
        if not name:
            causes.append(required(f"{here}.name"))
        else:
            check(name, f"{here}.name", qualified_name_problems, causes)
            if name in seen:
                causes.append(duplicate(f"{here}.name", name))
            seen.add(name)


def _condition_causes(expression: str, path: str, names: OptionalVariables) -> list[Cause]:
    from ....cel.types import BOOL

    cause = Compiler().compile(expression, names, (BOOL,)).cause(path)
    return [] if cause is None else [cause]


def check_rule(rule: JSONObject, path: str, causes: Causes) -> None:
    """A C{RuleWithOperations}."""
    operations = rule.get("operations") or []
    if not operations:
        causes.append(required(f"{path}.operations"))
    if "*" in operations and len(operations) > 1:
        text = "if '*' is present, must not specify other operations"
        causes.append(invalid(f"{path}.operations", operations, text))
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            causes.append(unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS))
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            causes.append(required(f"{path}.{name}"))
        if "*" in values and len(values) > 1:
            text = f"if '*' is present, must not specify other {what}"
            causes.append(invalid(f"{path}.{name}", values, text))
        if name == "apiVersions":
            for index, value in enumerate(values):
                if not value:
                    causes.append(required(f"{path}.{name}[{index}]"))
    resources = rule.get("resources") or []
    if not resources:
        causes.append(required(f"{path}.resources"))
    _resources(resources, f"{path}.resources", causes)
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        causes.append(unsupported(f"{path}.scope", scope, _SCOPES))


def _resources(resources: list[str], path: str, causes: Causes) -> None:
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, text in enumerate(resources):
        here = f"{path}[{index}]"
        if not text:
            causes.append(required(here))
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            # As in the reference, the last one decides.
            plain = text != "*"
            continue
        if resource in whole:
            causes.append(invalid(here, text, f"if '{resource}/*' is present, must not specify {text}"))
        if subresource in everywhere:
            causes.append(invalid(here, text, f"if '*/{subresource}' is present, must not specify {text}"))
        if subresource == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(subresource)
    if "*/*" in resources and len(resources) > 1:
        causes.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        text = "if '*' is present, must not specify other resources without subresources"
        causes.append(invalid(path, resources, text))


def _client(client: JSONObject, path: str, causes: Causes) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        causes.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        webhook_url(url, f"{path}.url", True, causes)
    elif service is not None:
        webhook_service(service, f"{path}.service", causes)

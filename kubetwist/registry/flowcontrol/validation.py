"""
Validation of FlowSchemas and PriorityLevelConfigurations.

See kubernetes, C{pkg/apis/flowcontrol/validation/validation.go}.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ...api.errors import FieldError, duplicate, forbidden, invalid, required
from ...api.gostructs import go_struct
from ...api.resource import JSONObject
from ..generic.validation.fields import ErrorList, check, dns_label, dns_subdomain, go_json, invalid_shown, unsupported

_VERBS: Final = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
)
_KINDS: Final = ("Group", "ServiceAccount", "User")
#: The fields of subjects by their kinds, in the order in which misplaced ones are reported.
_SUBJECTS: Final = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
#: Number of hash bits that shuffle sharding uses for a hand of queues.
_HASH_BITS: Final = 60


def _everything(group: str) -> JSONObject:
    return {"kind": "Group", "group": {"name": group}}


_EVERY_RULE: Final[JSONObject] = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
#: Specs of mandatory objects, which are immutable so that administrators keep access.
FIXED_SCHEMAS: Final[dict[str, JSONObject]] = {
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": [{"subjects": [_everything("system:masters")], **_EVERY_RULE}],
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [_everything("system:unauthenticated"), _everything("system:authenticated")],
                **_EVERY_RULE,
            }
        ],
    },
}
#: The same for priority levels; administrators may change the share of C{exempt}.
_FIXED_LEVELS: Final[dict[str, JSONObject]] = {
    "exempt": {"type": "Exempt"},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
    },
}


def _without_empty(spec: JSONObject) -> JSONObject:
    return {name: value for name, value in spec.items() if value is not None}


def _shown_schema(spec: JSONObject) -> str:
    """Return a spec as Go prints it."""

    def method(value: JSONObject | None) -> JSONObject | None:
        return None if value is None else {"Type": value.get("type", "")}

    def subject(value: JSONObject) -> JSONObject:
        user, group, account = value.get("user"), value.get("group"), value.get("serviceAccount")
        return {
            "Kind": value.get("kind", ""),
            "User": user and {"Name": user.get("name", "")},
            "Group": group and {"Name": group.get("name", "")},
            "ServiceAccount": account and {"Namespace": account.get("namespace", ""), "Name": account.get("name", "")},
        }

    def resource_rule(value: JSONObject) -> JSONObject:
        return {
            "Verbs": value.get("verbs"),
            "APIGroups": value.get("apiGroups"),
            "Resources": value.get("resources"),
            "ClusterScope": value.get("clusterScope", False),
            "Namespaces": value.get("namespaces"),
        }

    def path_rule(value: JSONObject) -> JSONObject:
        return {"Verbs": value.get("verbs"), "NonResourceURLs": value.get("nonResourceURLs")}

    def each(make: Callable[[JSONObject], JSONObject], value: list[JSONObject] | None) -> list[JSONObject] | None:
        return None if value is None else [make(one) for one in value]

    rules = [
        {
            "Subjects": each(subject, one.get("subjects")),
            "ResourceRules": each(resource_rule, one.get("resourceRules")),
            "NonResourceRules": each(path_rule, one.get("nonResourceRules")),
        }
        for one in spec.get("rules") or ()
    ]
    return go_json(
        {
            "PriorityLevelConfiguration": {"Name": spec["priorityLevelConfiguration"].get("name", "")},
            "MatchingPrecedence": spec.get("matchingPrecedence", 0),
            "DistinguisherMethod": method(spec.get("distinguisherMethod")),
            "Rules": rules,
        }
    )


def validate_flow_schema(obj: JSONObject) -> list[FieldError]:
    """Validate a FlowSchema."""
    errors: ErrorList = []
    spec, name = obj["spec"], obj["metadata"].get("name") or ""
    precedence = spec.get("matchingPrecedence") or 0
    if precedence <= 0:
        errors.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    elif precedence > 10000:
        errors.append(invalid("spec.matchingPrecedence", precedence, "must not be greater than 10000"))
    elif precedence == 1 and name != "exempt":
        text = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(invalid("spec.matchingPrecedence", precedence, text))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown = {"Type": method.get("type") or ""}
        path, go_type = "spec.distinguisherMethod.type", "flowcontrol.FlowDistinguisherMethod"
        errors.append(unsupported(path, shown, ("ByNamespace", "ByUser"), method, go_type))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    path = "spec.priorityLevelConfiguration.name"
    if not level:
        errors.append(required(path, "must reference a priority level"))
    else:
        check(level, path, dns_subdomain, errors)
    for index, rule in enumerate(spec.get("rules") or ()):
        _validate_rule(rule, f"spec.rules[{index}]", errors)
    fixed = FIXED_SCHEMAS.get(name)
    if fixed is not None and _without_empty(spec) != fixed:
        text = f"spec of '{name}' must equal the fixed value"
        errors.append(invalid_shown("spec", _shown_schema(spec), text, spec, "flowcontrol.FlowSchemaSpec"))
    return errors


def _validate_rule(rule: JSONObject, path: str, errors: ErrorList) -> None:
    subjects = rule.get("subjects") or []
    if not subjects:
        errors.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        _validate_subject(subject, f"{path}.subjects[{index}]", errors)
    resources, paths = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not paths:
        text = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(path, text))
    for index, one in enumerate(resources):
        _validate_resource_rule(one, f"{path}.resourceRules[{index}]", errors)
    for index, one in enumerate(paths):
        item_path = f"{path}.nonResourceRules[{index}]"
        _validate_verbs(one.get("verbs") or [], f"{item_path}.verbs", errors)
        _validate_urls(one.get("nonResourceURLs") or [], f"{item_path}.nonResourceURLs", errors)


def _validate_urls(urls: list[str], path: str, errors: ErrorList) -> None:
    if not urls:
        errors.append(required(path, "nonResourceURLs must contain at least one value"))
    elif "*" in urls:
        if len(urls) > 1:
            text = "if '*' is present, must not specify other non-resource URLs"
            errors.append(invalid(path, urls, text))
    else:
        for place, url in enumerate(urls):
            problem = _url_problem(url)
            if problem:
                errors.append(invalid(f"{path}[{place}]", url, problem))


def _url_problem(url: str) -> str:
    """Return the error of a path, which may end in a wildcard; C{""} for none."""
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def _validate_subject(subject: JSONObject, path: str, errors: ErrorList) -> None:
    kind = subject.get("kind") or ""
    own = _SUBJECTS.get(kind)
    if own is None:
        errors.append(unsupported(f"{path}.kind", kind, _KINDS))
        return
    details: JSONObject | None = subject.get(own)
    if details is None:
        errors.append(required(f"{path}.{own}", f"{own} is required when subject kind is '{kind}'"))
    else:
        name = details.get("name") or ""
        if not name:
            errors.append(required(f"{path}.{own}.name"))
        elif kind == "ServiceAccount" and name != "*":
            check(name, f"{path}.{own}.name", dns_subdomain, errors)
        if kind == "ServiceAccount":
            _validate_account_namespace(details.get("namespace") or "", f"{path}.{own}.namespace", errors)
    for other_kind, other in _SUBJECTS.items():
        if other != own and subject.get(other) is not None:
            text = f"{other} is forbidden when subject kind is not '{other_kind}'"
            errors.append(forbidden(f"{path}.{other}", text))


def _validate_account_namespace(namespace: str, path: str, errors: ErrorList) -> None:
    if not namespace:
        errors.append(required(path, "must specify namespace for service account"))
    else:
        check(namespace, path, dns_label, errors)


def _validate_verbs(verbs: list[str], path: str, errors: ErrorList) -> None:
    if not verbs:
        errors.append(required(path, "verbs must contain at least one value"))
    elif "*" in verbs:
        if len(verbs) > 1:
            errors.append(invalid(path, verbs, "if '*' is present, must not specify other verbs"))
    elif not set(verbs) <= set(_VERBS):
        errors.append(unsupported(path, verbs, _VERBS))


def _validate_resource_rule(rule: JSONObject, path: str, errors: ErrorList) -> None:
    _validate_verbs(rule.get("verbs") or [], f"{path}.verbs", errors)
    for name, detail, other in (
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ):
        values = rule.get(name) or []
        if not values:
            errors.append(required(f"{path}.{name}", detail))
        elif "*" in values and len(values) > 1:
            errors.append(invalid(f"{path}.{name}", values, f"if '*' is present, must not specify other {other}"))
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        errors.append(required(f"{path}.namespaces", text))
    elif "*" in namespaces:
        if len(namespaces) > 1:
            text = "if '*' is present, must not specify other namespaces"
            errors.append(invalid(f"{path}.namespaces", namespaces, text))
    else:
        for index, name in enumerate(namespaces):
            for problem in dns_label(name):
                text = f"each member of this list must be '*' or a DNS-1123 label; {problem}"
                errors.append(invalid(f"{path}.namespaces[{index}]", name, text))


def validate_flow_control_status(obj: JSONObject) -> list[FieldError]:
    """Validate the conditions of a flow schema or priority level: types must be unique."""
    errors: ErrorList = []
    seen: set[str] = set()
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        path, kind = f"status.conditions[{index}].type", condition.get("type") or ""
        if kind in seen:
            errors.append(duplicate(path, kind))
        seen.add(kind)
        if not kind:
            errors.append(required(path))
    return errors


# --- priority levels ---------------------------------------------------------------------------------------------


def _shown_level(spec: JSONObject) -> str:
    return go_json(go_struct(spec, "flowcontrol.PriorityLevelConfigurationSpec"))


def validate_priority_level(obj: JSONObject) -> list[FieldError]:
    """Validate a PriorityLevelConfiguration."""
    errors: ErrorList = []
    spec, name = obj["spec"], obj["metadata"].get("name") or ""
    kind = spec.get("type") or ""
    exempt, limited = spec.get("exempt"), spec.get("limited")
    if (kind == "Exempt") != (name == "exempt") and (kind == "Exempt" or name == "exempt"):
        text = "must be 'Exempt' if and only if `name` is 'exempt'"
        earlier = "type must be 'Exempt' if and only if name is 'exempt'"
        errors.append(invalid("spec.type", kind, text).reworded(1, 34, earlier))
    if kind == "Exempt":
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        if exempt is not None:
            _validate_share(exempt, "spec.exempt", errors)
    elif kind == "Limited":
        if exempt is not None:
            errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            _validate_limited(limited, errors)
    else:
        errors.append(unsupported("spec.type", kind, ("Exempt", "Limited")))
    fixed = _FIXED_LEVELS.get(name)
    if fixed is not None:
        besides = " except the 'spec.exempt' field" if name == "exempt" else ""
        shown = _shown_level(spec)
        # The message shows null and absent fields alike.
        if (_shown_level({**spec, "exempt": None}) if besides else shown) != _shown_level(fixed):
            text = f"spec of '{name}'{besides} must equal the fixed value"
            errors.append(invalid_shown("spec", shown, text, spec, "flowcontrol.PriorityLevelConfigurationSpec"))
    return errors


def _validate_share(settings: JSONObject, path: str, errors: ErrorList) -> None:
    shares, lendable = settings.get("nominalConcurrencyShares"), settings.get("lendablePercent")
    if shares is not None and shares < 0:
        errors.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    if lendable is not None and not 0 <= lendable <= 100:
        errors.append(invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))


def _validate_limited(limited: JSONObject, errors: ErrorList) -> None:
    path = "spec.limited"
    shares = limited.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        errors.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    response = limited.get("limitResponse") or {}
    kind, queuing = response.get("type") or "", response.get("queuing")
    item_path = f"{path}.limitResponse"
    if kind == "Reject":
        if queuing is not None:
            text = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(forbidden(f"{item_path}.queuing", text))
    elif kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(required(f"{item_path}.queuing", text))
        else:
            _validate_queuing(queuing, f"{item_path}.queuing", errors)
    else:
        errors.append(unsupported(f"{item_path}.type", kind, ("Queue", "Reject")))
    lendable, borrowing_limit = limited.get("lendablePercent"), limited.get("borrowingLimitPercent")
    if lendable is not None and not 0 <= lendable <= 100:
        errors.append(invalid(f"{path}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))
    if borrowing_limit is not None and borrowing_limit < 0:
        text = "if specified, must be a non-negative integer"
        errors.append(invalid(f"{path}.borrowingLimitPercent", borrowing_limit, text))


def _validate_queuing(queuing: JSONObject, path: str, errors: ErrorList) -> None:
    length, queues, hand_size = (queuing.get(name) or 0 for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        errors.append(invalid(f"{path}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > 10000000:
        text = "must not be greater than 10000000"
        errors.append(invalid(f"{path}.queues", queues, text))
    if hand_size <= 0:
        errors.append(invalid(f"{path}.handSize", hand_size, "must be positive"))
    elif hand_size > queues:
        text = f"should not be greater than queues ({queues})"
        errors.append(invalid(f"{path}.handSize", hand_size, text))
    elif math.ceil(math.log2(queues) * hand_size) > _HASH_BITS:
        needed = f"required entropy bits of deckSize {queues} and handSize {hand_size}"
        errors.append(invalid(f"{path}.handSize", hand_size, f"{needed} should not be greater than {_HASH_BITS}"))

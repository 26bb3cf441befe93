"""Validation of APIServices; see kube-aggregator, C{pkg/apis/apiregistration/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.errors import FieldError, invalid, required
from ...api.names import validate_dns1035_label, validate_path_segment_name
from ...api.resource import JSONObject
from ..core.configmap.validation import decoded_size
from ..generic.validation.fields import PORT_RANGE, ErrorList, dns_subdomain, invalid_shown, quote, unsupported


def validate_api_service_name(obj: JSONObject, name: str, prefix: bool) -> Sequence[str]:
    """Validate the name of an APIService; a name that is not a path segment gets no further errors."""
    spec = obj.get("spec") or {}
    expected = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    problems = validate_path_segment_name(name)
    if problems or name == expected:
        return problems
    return [f'must be `spec.version+"."+spec.group`: {quote(expected)}']


def validate_api_service(obj: JSONObject) -> list[FieldError]:
    """Validate the group version of an APIService and its service."""
    errors: ErrorList = []
    spec = obj["spec"]
    group, version = spec.get("group") or "", spec.get("version") or ""
    if not group:
        if version != "v1":
            text = "only v1 may have an empty group and it better be legacy kube"
            errors.append(required("spec.group", text))
    else:
        for text in dns_subdomain(group):
            errors.append(invalid("spec.group", group, text))
    for text in validate_dns1035_label(version):
        errors.append(invalid("spec.version", version, text))
    for field, maximum in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field) or 0
        if not 0 < value <= maximum:
            errors.append(invalid(f"spec.{field}", value, f"must be positive and less than {maximum}"))
    service, bundle, insecure = spec.get("service"), spec.get("caBundle"), bool(spec.get("insecureSkipTLSVerify"))
    if service is None:
        if bundle:
            text = "local APIServices may not have a caBundle"
            errors.append(invalid_shown("spec.caBundle", quote(f"{decoded_size(bundle)} bytes"), text))
        if insecure:
            text = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid("spec.insecureSkipTLSVerify", True, text))
        return errors
    for field in ("namespace", "name"):
        if not service.get(field):
            errors.append(required(f"spec.service.{field}"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        errors.append(invalid("spec.service.port", port, f"port is not valid: {PORT_RANGE}"))
    if insecure and bundle:
        text = "may not be true if caBundle is present"
        errors.append(invalid("spec.insecureSkipTLSVerify", True, text))
    return errors


def validate_api_service_status(obj: JSONObject) -> list[FieldError]:
    """Validate the status of the conditions: C{True}, C{False} or C{Unknown}."""
    errors: ErrorList = []
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        status = condition.get("status") or ""
        if status not in ("True", "False", "Unknown"):
            path = f"status.conditions[{index}].status"
            errors.append(unsupported(path, status, ("True", "False", "Unknown")))
    return errors

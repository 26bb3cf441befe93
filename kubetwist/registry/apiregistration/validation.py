"""APIServices; see kube-aggregator, C{pkg/apis/apiregistration/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.errors import Cause, invalid, required
from ...api.names import is_dns1035_label_problems, path_segment_problems
from ...api.resource import JSONObject
from ..core.configmap.validation import decoded_size
from ..generic.validation.fields import PORT_RANGE, Causes, dns_subdomain, invalid_shown, quote, unsupported


def api_service_name_problems(obj: JSONObject, name: str, prefix: bool) -> Sequence[str]:
    """What is wrong with a name of this service of an API; of what can be no part of a path nothing else is told."""
    spec = obj.get("spec") or {}
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    problems = path_segment_problems(name)
    if problems or name == wanted:
        return problems
    return [f'must be `spec.version+"."+spec.group`: {quote(wanted)}']


def validate_api_service(obj: JSONObject) -> list[Cause]:
    """An API group's version, and who serves it."""
    causes: Causes = []
    spec = obj["spec"]
    group, version = spec.get("group") or "", spec.get("version") or ""
    if not group:
        if version != "v1":
            text = "only v1 may have an empty group and it better be legacy kube"
            causes.append(required("spec.group", text))
    else:
        for text in dns_subdomain(group):
            causes.append(invalid("spec.group", group, text))
    for text in is_dns1035_label_problems(version):
        causes.append(invalid("spec.version", version, text))
    for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field) or 0
        if not 0 < value <= most:
            causes.append(invalid(f"spec.{field}", value, f"must be positive and less than {most}"))
    service, bundle, insecure = spec.get("service"), spec.get("caBundle"), bool(spec.get("insecureSkipTLSVerify"))
    if service is None:
        if bundle:
            text = "local APIServices may not have a caBundle"
            causes.append(invalid_shown("spec.caBundle", quote(f"{decoded_size(bundle)} bytes"), text))
        if insecure:
            text = "local APIServices may not have insecureSkipTLSVerify"
            causes.append(invalid("spec.insecureSkipTLSVerify", True, text))
        return causes
    for field in ("namespace", "name"):
        if not service.get(field):
            causes.append(required(f"spec.service.{field}"))
    port = service.get("port") or 0
    if not 1 <= port <= 65535:
        causes.append(invalid("spec.service.port", port, f"port is not valid: {PORT_RANGE}"))
    if insecure and bundle:
        text = "may not be true if caBundle is present"
        causes.append(invalid("spec.insecureSkipTLSVerify", True, text))
    return causes


def validate_api_service_status(obj: JSONObject) -> list[Cause]:
    """Conditions that are true, false or unknown."""
    causes: Causes = []
    for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        status = condition.get("status") or ""
        if status not in ("True", "False", "Unknown"):
            path = f"status.conditions[{index}].status"
            causes.append(unsupported(path, status, ("True", "False", "Unknown")))
    return causes

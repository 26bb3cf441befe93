"""Validation of the spec of pods and templates; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .....api.addresses import validate_ip
from .....api.errors import duplicate, forbidden, invalid, required, too_long
from .....api.names import (
    validate_dns1123_subdomain,
    validate_label_value,
    validate_qualified_name,
    validate_search_domain,
)
from .....api.podspecs import containers as containers_of
from .....api.quantity import Quantity
from .....api.resource import JSONObject
from ....generic.privileges import privileged_allowed
from ....generic.validation.fields import (
    MAX_INT32,
    NO_FIELD,
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    go_json,
    invalid_shown,
    labels,
    one_of,
    quantity,
    quote,
    unsupported,
)
from .affinity import validate_affinity, validate_topology_spread
from .containers import (
    PodContext,
    validate_containers,
    validate_ephemeral_containers,
    validate_files_of_variables,
    validate_init_containers,
)
from .options import PodValidationOptions
from .resources import is_huge_pages, pod_resource_name, validate_requirements
from .security import validate_pod_security_context
from .volumes import validate_volumes

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: Operators of tolerations that compare numbers.
_COMPARISONS: Final = ("Lt", "Gt")
_COMPARISON_GATE: Final = "TaintTolerationComparisonOperators"
_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")
_GO_INTEGER: Final = re.compile("[-+]?[0-9]+")
#: The annotation of mirror pods, which represent static pods of a kubelet.
MIRROR: Final = "kubernetes.io/config.mirror"
MAX_HOSTNAME_LENGTH: Final = 64


def validate_pod_spec(
    spec: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions, *, pod: JSONObject | None = None
) -> None:
    """
    Validate the spec of a pod or template.

    @param spec: The spec.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param options: What the server permits.
    @param pod: The metadata of the pod; L{None} for a template.
    """
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    pod_name = (pod.get("name") or "") if pod is not None else ""
    volumes = validate_volumes(spec.get("volumes"), f"{path}.volumes", errors, pod_name)
    if spec.get("resourceClaims"):
        if pod is not None and MIRROR in (pod.get("annotations") or {}):
            text = "static pods do not support resource claims"
            errors.extend(forbidden(NO_FIELD, text) for _ in spec["resourceClaims"])
        else:
            _resource_claims(spec["resourceClaims"], f"{path}.resourceClaims", errors)
    context = PodContext(spec, volumes, options)
    containers = spec.get("containers")
    validate_containers(containers, context, f"{path}.containers", errors)
    if spec.get("initContainers"):
        validate_init_containers(spec["initContainers"], containers, context, f"{path}.initContainers", errors)
    if spec.get("ephemeralContainers"):
        validate_ephemeral_containers(spec, context, f"{path}.ephemeralContainers", errors)
    if spec.get("resources") is not None and options.features.enabled("PodLevelResources"):
        _pod_resources(spec, context, f"{path}.resources", errors)
    if spec.get("hostNetwork"):
        _host_network(spec, path, pod is not None, errors)
    one_of(spec.get("restartPolicy"), RESTART_POLICIES, f"{path}.restartPolicy", errors)
    one_of(spec.get("dnsPolicy"), DNS_POLICIES, f"{path}.dnsPolicy", errors)
    labels(spec.get("nodeSelector"), f"{path}.nodeSelector", errors)
    security = spec.get("securityContext")
    if security or spec.get("shareProcessNamespace"):
        validate_pod_security_context(security or {}, spec, f"{path}.securityContext", errors, options)
    if spec.get("affinity"):
        validate_affinity(spec["affinity"], f"{path}.affinity", errors)
    _dns_config(spec.get("dnsConfig"), spec.get("dnsPolicy"), f"{path}.dnsConfig", errors, options)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        field_path = f"{path}.readinessGates[{index}].conditionType"
        check(gate.get("conditionType") or "", field_path, validate_qualified_name, errors)
    _scheduling_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates", errors)
    if spec.get("topologySpreadConstraints"):
        field_path = f"{path}.topologySpreadConstraints"
        validate_topology_spread(spec["topologySpreadConstraints"], field_path, errors, options)
    _host_process(spec, path, errors)
    if spec.get("hostUsers") is False:
        _user_namespace(spec, path, errors, options)
    if spec.get("hostnameOverride") is not None:
        _hostname_override(spec, f"{path}.hostnameOverride", errors)
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            check(spec[name], f"{path}.{name}", dns_subdomain, errors)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        text = f"must be between 1 and {MAX_INT32}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, text))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            check(spec[name], f"{path}.{name}", dns_label, errors)
    if spec.get("tolerations"):
        validate_tolerations(spec["tolerations"], f"{path}.tolerations", errors, options)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        item_path = f"{path}.hostAliases[{index}]"
        for text in validate_ip(alias.get("ip") or "", options.strict_addresses, canonical=False):
            errors.append(invalid(f"{item_path}.ip", alias.get("ip") or "", text))
        for position, name in enumerate(alias.get("hostnames") or ()):
            check(name, f"{item_path}.hostnames[{position}]", dns_subdomain, errors)
    if spec.get("priorityClassName"):
        check(spec["priorityClassName"], f"{path}.priorityClassName", dns_subdomain, errors)
    if spec.get("runtimeClassName") is not None:
        check(spec["runtimeClassName"], f"{path}.runtimeClassName", dns_subdomain, errors)
    if spec.get("preemptionPolicy") is not None:
        choice = ("PreemptLowerPriority", "Never")
        one_of(spec["preemptionPolicy"], choice, f"{path}.preemptionPolicy", errors)
    if spec.get("overhead"):
        validate_requirements({"limits": spec["overhead"]}, f"{path}.overhead", errors)
    if spec.get("os") is not None:
        _os(spec, path, errors)
    validate_files_of_variables(with_paths(spec, path), spec.get("volumes"), errors)


def _resource_claims(claims: list[JSONObject], path: str, errors: ErrorList) -> None:
    names: set[str] = set()
    for index, claim in enumerate(claims):
        item_path, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            errors.append(required(f"{item_path}.name"))
        elif name in names:
            errors.append(duplicate(f"{item_path}.name", name))
        else:
            check(name, f"{item_path}.name", dns_label, errors)
            names.add(name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        formatted = go_json(
            {"Name": name, "ResourceClaimName": direct, "ResourceClaimTemplateName": template},
        )
        if direct is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid_shown(item_path, formatted, text, claim, "core.PodResourceClaim"))
        if direct is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid_shown(item_path, formatted, text, claim, "core.PodResourceClaim"))
        for field, value in (("resourceClaimName", direct), ("resourceClaimTemplateName", template)):
            if value is not None:
                check(value, f"{item_path}.{field}", dns_subdomain, errors)


def _user_namespace(spec: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """Validate that a pod with a user namespace does not use other namespaces of the host."""
    text = "when `hostUsers` is false"
    if not options.features.since(1, 34):
        text = "when `pod.Spec.HostUsers` is false"
    # Two of the three field paths of the reference begin with a capital letter.
    for name, field in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(name) and not (name == "hostNetwork" and options.allows("UserNamespacesHostNetworkSupport")):
            errors.append(forbidden(f"{path}.{field}", text).reworded(1, 34, "when `pod.Spec.HostUsers` is false"))
    old = options.old
    if not options.features.since(1, 34):
        return
    if old is not None and old.get("hostUsers") is False and any(_with_devices(old, path)):
        return
    errors.extend(forbidden(f"{field_path}.volumeDevices", text) for field_path in _with_devices(spec, path))


def _with_devices(spec: JSONObject, path: str) -> Iterator[str]:
    """Return the field paths of containers with volume devices."""
    return (field_path for container, field_path in with_paths(spec, path) if container.get("volumeDevices"))


def _hostname_override(spec: JSONObject, path: str, errors: ErrorList) -> None:
    name = spec["hostnameOverride"]
    for field in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(field):
            errors.append(forbidden(path, f"may not be specified when {field} is true"))
    if len(name.encode()) > MAX_HOSTNAME_LENGTH:
        errors.append(too_long(path, MAX_HOSTNAME_LENGTH))
    check(name, path, dns_subdomain, errors)


def _pod_resources(spec: JSONObject, context: PodContext, path: str, errors: ErrorList) -> None:
    """Validate pod-level resources, which must not be less than those of the containers."""
    resources: JSONObject = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        errors.append(forbidden(path, "may not be set for a windows pod"))
        return
    if resources.get("claims") is not None:
        errors.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    validate_requirements(resources, path, errors, claims=context.claims, known=pod_resource_name)
    for part in ("requests", "limits"):
        whole = resources.get(part) or {}
        total = _together(spec, part)
        for name in sorted(total.keys() & whole.keys()):
            # Limits of resources that can be overcommitted are not compared.
            if total[name] > quantity(whole[name]) and (part == "requests" or is_huge_pages(name)):
                text = f"must be greater than or equal to aggregate container {part} of {total[name]}"
                errors.append(invalid(f"{path}.{part}[{name}]", str(whole[name]), text))
    limits = resources.get("limits") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, value in sorted(((container.get("resources") or {}).get("limits") or {}).items()):
            if name in limits and quantity(value) > quantity(limits[name]):
                text = f"must be less than or equal to pod limits of {limits[name]}"
                field_path = f"{path}.containers[{index}][{name}].limits"
                errors.append(invalid(field_path, str(value), text))


def _together(spec: JSONObject, part: str) -> dict[str, Quantity]:
    """
    Return the peak of the resources of the containers of a pod.

    @param part: C{"requests"} or C{"limits"}.
    """
    total: dict[str, Quantity] = {}
    lasting: dict[str, Quantity] = {}
    highest: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container, part)
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add(total, container, part)
            _add(lasting, container, part)
            continue
        for name, value in ((container.get("resources") or {}).get(part) or {}).items():
            now = lasting[name] + quantity(value) if name in lasting else quantity(value)
            if name not in highest or now > highest[name]:
                highest[name] = now
    for name, most in highest.items():
        if name not in total or most > total[name]:
            total[name] = most
    return total


def _add(total: dict[str, Quantity], container: JSONObject, part: str) -> None:
    for name, value in ((container.get("resources") or {}).get(part) or {}).items():
        total[name] = total[name] + quantity(value) if name in total else quantity(value)


def _host_network(spec: JSONObject, path: str, is_pod: bool, errors: ErrorList) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        for position, port in enumerate(container.get("ports") or ()):
            host, inner = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != inner:
                field_path = f"{path}.containers[{index}].ports[{position}].hostPort"
                errors.append(invalid(field_path, host, "must match `containerPort` when `hostNetwork` is true"))


def _dns_config(
    config: JSONObject | None, policy: str | None, path: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    if policy == "None":
        if config is None:
            errors.append(required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.append(required(f"{path}.nameservers", text))
            return
    if config is None:
        return
    servers, searches = config.get("nameservers") or [], config.get("searches") or []
    if len(servers) > 3:
        errors.append(invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        for text in validate_ip(server, options.strict_addresses, canonical=False):
            errors.append(invalid(f"{path}.nameservers[{index}]", server, text))
    if len(searches) > 32:
        errors.append(invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        text = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(invalid(f"{path}.searches", searches, text))
    relaxed = bool(searches) and options.allows("RelaxedDNSSearchValidation")
    for index, search in enumerate(searches):
        if search != "." or not relaxed:
            name = search.removesuffix(".")
            for text in validate_search_domain(name) if relaxed else validate_dns1123_subdomain(name):
                errors.append(invalid(f"{path}.searches[{index}]", name, text))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))


def _scheduling_gates(gates: list[JSONObject], path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        check(name, f"{path}[{index}]", validate_qualified_name, errors)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def validate_tolerations(
    tolerations: list[JSONObject], path: str, errors: ErrorList, options: PodValidationOptions | None = None
) -> None:
    """
    Validate tolerations.

    @param tolerations: The tolerations.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param options: What the server permits in a pod; L{None} for RuntimeClasses, which never compare numbers.
    """
    for index, toleration in enumerate(tolerations):
        item_path = f"{path}[{index}]"
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        value, effect = toleration.get("value") or "", toleration.get("effect") or ""
        if key:
            check(key, f"{item_path}.key", validate_qualified_name, errors)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{item_path}.operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{item_path}.effect", effect, text))
        if operator in ("Equal", ""):
            texts = validate_label_value(value)
            if texts:
                errors.append(invalid(f"{item_path}.operator", value, ";".join(texts)))
        elif operator == "Exists":
            if value:
                text = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{item_path}.operator", value, text))
        elif operator in _COMPARISONS and options is not None and options.allows(_COMPARISON_GATE):
            _compared_number(value, f"{item_path}.value", errors)
        else:
            # The message names the operators even if their feature gate is disabled.
            known = operator in _COMPARISONS and (options is None or options.features.since(1, 35))
            choice = ("Equal", "Exists", *_COMPARISONS) if known else ("Equal", "Exists")
            errors.append(unsupported(f"{item_path}.operator", operator, choice))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(unsupported(f"{item_path}.effect", effect, TAINT_EFFECTS))


def _compared_number(value: str, path: str, errors: ErrorList) -> None:
    """Validate a number that is compared with the value of a taint."""
    if not value:
        errors.append(invalid(path, value, "must be non-empty"))
    elif not _INTEGER.fullmatch(value):
        errors.append(invalid(path, value, "must be a valid decimal integer in canonical form"))
    if not _GO_INTEGER.fullmatch(value):
        errors.append(invalid(path, value, f"strconv.ParseInt: parsing {quote(value)}: invalid syntax"))
    elif not -(2**63) <= int(value) < 2**63:
        errors.append(invalid(path, value, f"strconv.ParseInt: parsing {quote(value)}: value out of range"))


def with_paths(spec: JSONObject, path: str) -> Iterator[tuple[JSONObject, str]]:
    """Return all containers with their field paths."""
    return ((container, field_path) for container, field_path, _ in containers_of(spec, path))


def _host_process(spec: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that all or no containers of a pod are Windows host processes."""
    pod_value = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    yes = no = False
    for container, item_path in with_paths(spec, path):
        host_process = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        field_path = f"{item_path}.securityContext.windowsOptions.hostProcess"
        if pod_value is not None and host_process is not None and pod_value != host_process:
            errors.append(
                invalid(
                    field_path,
                    host_process,
                    f"pod hostProcess value must be identical if both are specified, was {str(pod_value).lower()}",
                )
            )
        if host_process or (host_process is None and pod_value):
            yes = True
        else:
            no = True
    if not yes:
        return
    if no:
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        errors.append(invalid(path, "", text))
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.append(invalid(f"{path}.hostNetwork", False, text))
    if not privileged_allowed():
        errors.append(forbidden(path, "hostProcess containers are disallowed by cluster policy"))


_WINDOWS_POD: Final = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_EMPTY_IS_UNSET: Final = frozenset(("hostPID", "hostIPC", "sysctls"))
_WINDOWS_CONTAINER: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def _os(spec: JSONObject, path: str, errors: ErrorList) -> None:
    name = spec["os"].get("name") or ""
    if not name:
        errors.append(required(f"{path}.os.name"))
    elif name not in ("linux", "windows"):
        errors.append(unsupported(f"{path}.os", name, ("linux", "windows")))
    elif name == "linux":
        text = "windows options cannot be set for a linux pod"
        if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
            errors.append(forbidden(f"{path}.securityContext.windowsOptions", text))
        for container, item_path in with_paths(spec, path):
            if (container.get("securityContext") or {}).get("windowsOptions") is not None:
                errors.append(forbidden(f"{item_path}.securityContext.windowsOptions", text))
    else:
        text = "cannot be set for a windows pod"
        for part, field in _WINDOWS_POD:
            value = (spec.get(part) or {}).get(field) if part else spec.get(field)
            # False or empty values count as unset, except for pointers in Go.
            if value is not None and (value or field not in _EMPTY_IS_UNSET):
                errors.append(forbidden(f"{path}.{part}.{field}" if part else f"{path}.{field}", text))
        for container, item_path in with_paths(spec, path):
            context = container.get("securityContext") or {}
            for field in _WINDOWS_CONTAINER:
                if context.get(field) is not None:
                    errors.append(forbidden(f"{item_path}.securityContext.{field}", text))

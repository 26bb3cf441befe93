"""The containers of a pod, of all sorts; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .....api.errors import duplicate, forbidden, invalid, not_found, required, too_many
from .....api.names import (
    validate_config_map_key,
    validate_dns1123_subdomain,
    validate_env_var_name,
    validate_http_header_name,
    validate_port_name,
)
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    local_path,
    need,
    no_backsteps,
    not_negative,
    one_of,
    port_number,
    port_number_or_name,
    unsupported,
)
from .resources import validate_requirements
from .security import validate_security_context
from .volumes import field_selector, resource_selector

_TERMINATION: Final = ("File", "FallbackToLogsOnError")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SCHEMES: Final = ("HTTP", "HTTPS")
ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_RESTART: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_MOST_RESTART_RULES: Final = 20
_MOST_EXIT_CODES: Final = 255
_SIDECAR_ONLY: Final = "may not be set for init containers without restartPolicy=Always"
#: What ephemeral containers may not have; in the order of the struct in Go.
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
#: Those of them that are there as soon as they are named, if only with nothing in them.
_POINTERS: Final = frozenset(("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"))


class PodContext:
    """What the containers of a pod have to know of it."""

    __slots__ = ("claims", "grace", "host_users", "old", "restart_policy", "volumes")

    def __init__(self, spec: JSONObject, volumes: Mapping[str, JSONObject], old: JSONObject | None = None) -> None:
        self.volumes = volumes
        self.old = old
        self.grace: int | None = spec.get("terminationGracePeriodSeconds")
        self.restart_policy: str = spec.get("restartPolicy") or ""
        self.host_users: bool = spec.get("hostUsers") is not False
        self.claims = {claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")}


def validate_containers(containers: list[JSONObject] | None, pod: PodContext, path: str, errors: ErrorList) -> None:
    """The regular ones."""
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        _common(container, pod, here, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        _lifecycle_and_probes(container, pod, here, errors)
        _restart(container, here, errors)
    _host_ports(containers, path, errors)


def validate_init_containers(
    containers: list[JSONObject] | None,
    regular: list[JSONObject] | None,
    pod: PodContext,
    path: str,
    errors: ErrorList,
) -> None:
    """Those that run before the others, and those of them that go on running."""
    names = {container.get("name") or "" for container in regular or ()}
    tolerated = pod.old is not None and any(
        one.get("restartPolicy") != "Always" and _restarted_for(one) for one in pod.old.get("initContainers") or ()
    )
    for index, container in enumerate(containers or ()):
        here = f"{path}[{index}]"
        _common(container, pod, here, errors)
        policy = container.get("restartPolicy")
        _restart(container, here, errors, starting=True)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        _host_ports([container], path, errors)
        if policy == "Always":
            _lifecycle_and_probes(container, pod, here, errors)
        else:
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(field) is not None:
                    errors.append(forbidden(f"{here}.{field}", _SIDECAR_ONLY))
            for place in () if tolerated else _restarted_for(container):
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{here}.resizePolicy[{place}].restartPolicy", "RestartContainer", text))


def _restarted_for(container: JSONObject) -> list[int]:
    """Which of its policies have a container restarted when it gets more of something."""
    policies = container.get("resizePolicy") or ()
    return [place for place, one in enumerate(policies) if one.get("restartPolicy") == "RestartContainer"]


def _restart(container: JSONObject, path: str, errors: ErrorList, *, starting: bool = False) -> None:
    """
    When a container of its own, rather than its pod's, rules is started again.

    @param starting: Whether it is one of those that start a pod.
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None and policy not in _RESTART:
        errors.append(unsupported(f"{path}.restartPolicy", policy, _RESTART))
    elif policy is None and rules:
        text = "must specify restartPolicy when restart rules are used"
        errors.append(required(f"{path}.restartPolicy", text))
        if starting:
            return
    if len(rules) > _MOST_RESTART_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RESTART_RULES))
    for index, rule in enumerate(rules):
        here, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") not in _RESTART_ACTIONS:
            errors.append(unsupported(f"{here}.action", rule.get("action") or "", _RESTART_ACTIONS))
        if codes is None:
            errors.append(required(f"{here}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(unsupported(f"{here}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")))
        values = codes.get("values") or ()
        if len(values) > _MOST_EXIT_CODES:
            errors.append(too_many(f"{here}.exitCodes.values", len(values), _MOST_EXIT_CODES))


def validate_ephemeral_containers(spec: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    """Those that are added to a running pod."""
    others = {
        container.get("name") or "" for kind in ("containers", "initContainers") for container in spec.get(kind) or ()
    }
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here = f"{path}[{index}]"
        _common(container, pod, here, errors)
        trimmed_image(container, here, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{here}.name", name))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            errors.append(not_found(f"{here}.targetContainerName", target))
        for field in _NOT_EPHEMERAL:
            if container.get(field) or (field in _POINTERS and container.get(field) is not None):
                errors.append(forbidden(f"{here}.{field}", "cannot be set for an Ephemeral Container"))
        for place, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    where = f"{here}.volumeMounts[{place}].{field}"
                    errors.append(forbidden(where, "cannot be set for an Ephemeral Container"))


def trimmed_image(container: JSONObject, path: str, errors: ErrorList) -> None:
    """Pods, though not templates, need the name of an image without spaces around it."""
    image = container.get("image") or ""
    if image != image.strip():
        errors.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))


def _common(container: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    name = container.get("name")
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        check(name, f"{path}.name", dns_label, errors)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    one_of(container.get("terminationMessagePolicy"), _TERMINATION, f"{path}.terminationMessagePolicy", errors)
    mounts, devices = container.get("volumeMounts"), container.get("volumeDevices")
    if container.get("ports"):
        _ports(container["ports"], f"{path}.ports", errors)
    if container.get("env"):
        _env(container["env"], f"{path}.env", errors)
    if container.get("envFrom"):
        _env_from(container["envFrom"], f"{path}.envFrom", errors)
    if mounts:
        _mounts(mounts, devices or [], pod.volumes, container, f"{path}.volumeMounts", errors)
    if devices:
        _devices(devices, mounts or [], pod.volumes, f"{path}.volumeDevices", errors)
    one_of(container.get("imagePullPolicy"), _PULL_POLICIES, f"{path}.imagePullPolicy", errors)
    if container.get("resources"):
        validate_requirements(container["resources"], f"{path}.resources", errors, claims=pod.claims)
    if container.get("resizePolicy"):
        _resize_policy(container["resizePolicy"], pod, f"{path}.resizePolicy", errors)
    if container.get("securityContext"):
        validate_security_context(container["securityContext"], f"{path}.securityContext", pod.host_users, errors)


def _ports(ports: list[JSONObject], path: str, errors: ErrorList) -> None:
    names: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{path}[{index}]"
        name = port.get("name")
        if name and check(name, f"{here}.name", validate_port_name, errors):
            if name in names:
                errors.append(duplicate(f"{here}.name", name))
            names.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{here}.containerPort"))
        else:
            port_number(port["containerPort"], f"{here}.containerPort", errors)
        if port.get("hostPort"):
            port_number(port["hostPort"], f"{here}.hostPort", errors)
        one_of(port.get("protocol"), _PROTOCOLS, f"{here}.protocol", errors)


def _host_ports(containers: list[JSONObject], path: str, errors: ErrorList) -> None:
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort")
            if not number:
                continue
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            if text in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{place}].hostPort", text))
            taken.add(text)


def _env(variables: list[JSONObject], path: str, errors: ErrorList) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        else:
            check(name, f"{path}[{index}].name", validate_env_var_name, errors)
        source = variable.get("valueFrom")
        if source is not None:
            _env_source(variable, source, f"{path}[{index}].valueFrom", errors)


def _env_source(variable: JSONObject, source: JSONObject, path: str, errors: ErrorList) -> None:
    count = 0
    if source.get("fieldRef") is not None:
        count += 1
        field_selector(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef", errors)
    if source.get("resourceFieldRef") is not None:
        count += 1
        resource_selector(source["resourceFieldRef"], f"{path}.resourceFieldRef", errors, volume=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        reference = source.get(kind)
        if reference is None:
            continue
        count += 1
        here = f"{path}.{kind}"
        check(reference.get("name") or "", f"{here}.name", dns_subdomain, errors)
        if not reference.get("key"):
            errors.append(required(f"{here}.key"))
        else:
            check(reference["key"], f"{here}.key", validate_config_map_key, errors)
    if source.get("fileKeyRef") is not None:
        count += 1
        _file_key(source["fileKeyRef"], f"{path}.fileKeyRef", errors)
    if not count:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", text))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _file_key(reference: JSONObject, path: str, errors: ErrorList) -> None:
    """A variable in a file that a container before this one has written."""
    need(reference.get("key"), f"{path}.key", validate_env_var_name, errors)
    need(reference.get("volumeName"), f"{path}.volumeName", dns_label, errors)
    if not reference.get("path"):
        errors.append(required(f"{path}.path"))
    else:
        no_backsteps(reference["path"], f"{path}.path", errors)


def validate_files_of_variables(
    containers: Iterable[tuple[JSONObject, str]], volumes: list[JSONObject] | None, errors: ErrorList
) -> None:
    """
    The files that variables are read from are in volumes that the pod has for itself.

    @param containers: All of a pod, with their paths.
    """
    known: dict[str, JSONObject] | None = None
    for container, path in containers:
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            if known is None:
                known = {volume.get("name") or "": volume for volume in volumes or ()}
            where, name = f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName", reference.get("volumeName") or ""
            if name not in known:
                errors.append(not_found(where, name))
            elif known[name].get("emptyDir") is None:
                errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))


def _env_from(sources: list[JSONObject], path: str, errors: ErrorList) -> None:
    for index, source in enumerate(sources):
        here = f"{path}[{index}]"
        if source.get("prefix"):
            check(source["prefix"], f"{here}.prefix", validate_env_var_name, errors)
        count = 0
        for kind in ("configMapRef", "secretRef"):
            reference = source.get(kind)
            if reference is None:
                continue
            count += 1
            if not reference.get("name"):
                errors.append(required(f"{here}.{kind}.name"))
            else:
                # As if more were to come after it.
                for text in validate_dns1123_subdomain(reference["name"], True):
                    errors.append(invalid(f"{here}.{kind}.name", reference["name"], text))
        if not count:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _mounts(
    mounts: list[JSONObject],
    devices: list[JSONObject],
    volumes: Mapping[str, JSONObject],
    container: JSONObject,
    path: str,
    errors: ErrorList,
) -> None:
    points: set[str] = set()
    device_names = {device.get("name") for device in devices}
    device_paths = {device.get("devicePath") for device in devices}
    for index, mount in enumerate(mounts):
        here = f"{path}[{index}]"
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{here}.name"))
        if name not in volumes:
            errors.append(not_found(f"{here}.name", name))
        if not where:
            errors.append(required(f"{here}.mountPath"))
        if where in points:
            errors.append(invalid(f"{here}.mountPath", where, "must be unique"))
        points.add(where)
        if name in device_names:
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if where in device_paths:
            errors.append(invalid(f"{here}.mountPath", where, "must not already exist as a path in volumeDevices"))
        sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
        # The reference leaves the index out of the paths of the rest.
        if sub:
            local_path(sub, f"{path}.subPath", errors)
        if expression:
            if sub:
                text = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{here}.subPathExpr", expression, text))
            local_path(expression, f"{path}.subPathExpr", errors)
        if mount.get("mountPropagation") is not None:
            _propagation(mount["mountPropagation"], container, f"{path}.mountPropagation", errors)
        recursive = mount.get("recursiveReadOnly")
        if recursive is not None:
            _recursive(mount, recursive, f"{path}.recursiveReadOnly", errors)


def _propagation(value: str, container: JSONObject, path: str, errors: ErrorList) -> None:
    choice = ("Bidirectional", "HostToContainer", "None")
    if value not in choice:
        errors.append(unsupported(path, value, choice))
    privileged = (container.get("securityContext") or {}).get("privileged")
    if value == "Bidirectional" and not privileged:
        errors.append(forbidden(path, "Bidirectional mount propagation is available only to privileged containers"))


def _recursive(mount: JSONObject, value: str, path: str, errors: ErrorList) -> None:
    if value == "Disabled":
        return
    if value not in ("Enabled", "IfPossible"):
        errors.append(unsupported(path, value, ("Disabled", "Enabled", "IfPossible")))
        return
    if not mount.get("readOnly"):
        errors.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.get("mountPropagation") not in (None, "None"):
        errors.append(forbidden(path, "may only be specified when mountPropagation is None or not specified"))


def _devices(
    devices: list[JSONObject],
    mounts: list[JSONObject],
    volumes: Mapping[str, JSONObject],
    path: str,
    errors: ErrorList,
) -> None:
    names: set[str] = set()
    paths: set[str] = set()
    mount_names = {mount.get("name") for mount in mounts}
    mount_paths = {mount.get("mountPath") for mount in mounts}
    for index, device in enumerate(devices):
        here = f"{path}[{index}]"
        name, where = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            errors.append(required(f"{here}.name"))
        if name in names:
            errors.append(invalid(f"{here}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(not_found(f"{here}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{here}.name", name, text))
        if not where:
            errors.append(required(f"{here}.devicePath"))
        if where in paths:
            errors.append(invalid(f"{here}.devicePath", where, "must be unique"))
        climbing: ErrorList = []
        no_backsteps(where, "", climbing)
        if where and climbing:
            errors.append(invalid(f"{here}.devicePath", where, "can not contain backsteps ('..')"))
        else:
            paths.add(where)
        if name in mount_names:
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if where in mount_paths:
            errors.append(invalid(f"{here}.devicePath", where, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)


def _resize_policy(policies: list[JSONObject], pod: PodContext, path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
        one_of(name, ("cpu", "memory"), path, errors)
        one_of(restart, ("NotRequired", "RestartContainer"), path, errors)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, text))


def _lifecycle_and_probes(container: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                _handler(lifecycle[name], pod.grace, f"{path}.lifecycle.{name}", errors)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _probe(probe, pod, name, f"{path}.{name}", errors)


def _probe(probe: JSONObject, pod: PodContext, name: str, path: str, errors: ErrorList) -> None:
    _handler(probe, pod.grace, path, errors)
    for field in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        not_negative(probe.get(field), f"{path}.{field}", errors)
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if name == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, text))
    elif probe.get("successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))


def _handler(handler: JSONObject, grace: int | None, path: str, errors: ErrorList) -> None:
    count = 0
    for kind in _HANDLERS:
        action = handler.get(kind)
        if action is None:
            continue
        count += 1
        here = f"{path}.{kind}"
        if count > 1:
            errors.append(forbidden(here, "may not specify more than 1 handler type"))
        elif kind == "exec":
            if not action.get("command"):
                errors.append(required(f"{here}.command"))
        elif kind == "httpGet":
            if not action.get("path"):
                errors.append(required(f"{here}.path"))
            port_number_or_name(action.get("port", 0), f"{here}.port", errors)
            if action.get("scheme") not in _SCHEMES:
                errors.append(unsupported(f"{here}.scheme", action.get("scheme") or "", _SCHEMES))
            for header in action.get("httpHeaders") or ():
                check(header.get("name") or "", f"{here}.httpHeaders", validate_http_header_name, errors)
        elif kind in ("tcpSocket", "grpc"):
            port_number_or_name(action.get("port", 0), f"{here}.port", errors)
        else:
            seconds = action.get("seconds") or 0
            if grace is not None and not 0 <= seconds <= grace:
                text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                errors.append(invalid(here, seconds, text))
    if not count:
        errors.append(required(path, "must specify a handler type"))

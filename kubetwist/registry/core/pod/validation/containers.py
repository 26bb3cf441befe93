"""Validation of the containers of a pod; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .....api.errors import duplicate, forbidden, invalid, not_found, required
from .....api.gostructs import go_struct
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
    go_json,
    invalid_shown,
    local_path,
    need,
    no_backsteps,
    not_negative,
    one_of,
    port_number,
    port_number_or_name,
    unsupported,
)
from ._restarts import validate_restart, validate_restart_of_init_container
from .options import PodValidationOptions
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
_SIDECAR_ONLY: Final = "may not be set for init containers without restartPolicy=Always"
#: Fields that ephemeral containers must not have, in the order of the struct in Go.
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
#: Fields of L{_NOT_EPHEMERAL} that are pointers in Go: empty values are errors, too.
_POINTERS: Final = frozenset(("livenessProbe", "readinessProbe", "startupProbe", "lifecycle"))


class PodContext:
    """The parts of a pod that the validation of its containers needs."""

    __slots__ = ("claims", "env_name", "grace", "host_users", "options", "restart_policy", "volumes")

    def __init__(self, spec: JSONObject, volumes: Mapping[str, JSONObject], options: PodValidationOptions) -> None:
        self.volumes = volumes
        self.options = options
        self.env_name = options.env_name_validator(spec)
        self.grace: int | None = spec.get("terminationGracePeriodSeconds")
        self.restart_policy: str = spec.get("restartPolicy") or ""
        self.host_users: bool = spec.get("hostUsers") is not False
        self.claims = {claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")}


def validate_containers(containers: list[JSONObject] | None, pod: PodContext, path: str, errors: ErrorList) -> None:
    """
    Validate the regular containers.

    @param containers: The containers.
    @param pod: The pod of the containers.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    if not containers:
        errors.append(required(path))
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        item_path = f"{path}[{index}]"
        _common(container, pod, item_path, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{item_path}.name", name))
        names.add(name)
        _lifecycle_and_probes(container, pod, item_path, errors)
        if container.get("restartPolicy") is not None or container.get("restartPolicyRules"):
            validate_restart(container, item_path, errors, pod.options)
    _host_ports(containers, path, errors)


def validate_init_containers(
    containers: list[JSONObject] | None,
    regular: list[JSONObject] | None,
    pod: PodContext,
    path: str,
    errors: ErrorList,
) -> None:
    """
    Validate the init containers, including restartable ones.

    @param containers: The init containers.
    @param regular: The regular containers of the pod.
    @param pod: The pod of the containers.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    names = {container.get("name") or "" for container in regular or ()}
    old, since = pod.options.old, pod.options.features.since
    tolerated = not since(1, 36) or (
        old is not None
        and any(one.get("restartPolicy") != "Always" and _restarted_for(one) for one in old.get("initContainers") or ())
    )
    for index, container in enumerate(containers or ()):
        item_path = f"{path}[{index}]"
        _common(container, pod, item_path, errors)
        policy = container.get("restartPolicy")
        if policy is not None or container.get("restartPolicyRules"):
            validate_restart_of_init_container(container, item_path, errors, pod.options)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{item_path}.name", name))
        elif name:
            names.add(name)
        _host_ports([container], path, errors)
        if policy == "Always":
            _lifecycle_and_probes(container, pod, item_path, errors)
        else:
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(field) is not None:
                    errors.append(forbidden(f"{item_path}.{field}", _SIDECAR_ONLY))
        if container.get("resizePolicy") and not pod.options.allows_sidecar_resize_policy:
            shown = go_json([go_struct(one, "ContainerResizePolicy") for one in container["resizePolicy"]])
            errors.append(invalid_shown(f"{item_path}.resizePolicy", shown, "must not be set for init containers"))
        if policy != "Always":
            for position in () if tolerated else _restarted_for(container):
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{item_path}.resizePolicy[{position}].restartPolicy", "RestartContainer", text))


def _restarted_for(container: JSONObject) -> list[int]:
    """Return the indexes of resize policies that restart the container."""
    policies = container.get("resizePolicy") or ()
    return [position for position, policy in enumerate(policies) if policy.get("restartPolicy") == "RestartContainer"]


def validate_ephemeral_containers(spec: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    """
    Validate the ephemeral containers.

    @param spec: The spec of the pod.
    @param pod: The pod of the containers.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    container_names = {
        container.get("name") or "" for kind in ("containers", "initContainers") for container in spec.get(kind) or ()
    }
    names = set(container_names)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        item_path = f"{path}[{index}]"
        _common(container, pod, item_path, errors)
        trimmed_image(container, item_path, errors)
        name = container.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{item_path}.name", name))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in container_names:
            errors.append(not_found(f"{item_path}.targetContainerName", target))
        for field in _NOT_EPHEMERAL:
            if container.get(field) or (field in _POINTERS and container.get(field) is not None):
                errors.append(forbidden(f"{item_path}.{field}", "cannot be set for an Ephemeral Container"))
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    target_path = f"{item_path}.volumeMounts[{position}].{field}"
                    errors.append(forbidden(target_path, "cannot be set for an Ephemeral Container"))


def trimmed_image(container: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that the image has no surrounding spaces, a rule for pods but not for templates."""
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
        _env(container["env"], pod, f"{path}.env", errors)
    if container.get("envFrom"):
        _env_from(container["envFrom"], pod, f"{path}.envFrom", errors)
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
        item_path = f"{path}[{index}]"
        name = port.get("name")
        if name and check(name, f"{item_path}.name", validate_port_name, errors):
            if name in names:
                errors.append(duplicate(f"{item_path}.name", name))
            names.add(name)
        if not port.get("containerPort"):
            errors.append(required(f"{item_path}.containerPort"))
        else:
            port_number(port["containerPort"], f"{item_path}.containerPort", errors)
        if port.get("hostPort"):
            port_number(port["hostPort"], f"{item_path}.hostPort", errors)
        one_of(port.get("protocol"), _PROTOCOLS, f"{item_path}.protocol", errors)


def _host_ports(containers: list[JSONObject], path: str, errors: ErrorList) -> None:
    host_ports: set[str] = set()
    for index, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort")
            if not number:
                continue
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            if text in host_ports:
                errors.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", text))
            host_ports.add(text)


def _env(variables: list[JSONObject], pod: PodContext, path: str, errors: ErrorList) -> None:
    for index, variable in enumerate(variables):
        name = variable.get("name")
        if not name:
            errors.append(required(f"{path}[{index}].name"))
        else:
            check(name, f"{path}[{index}].name", pod.env_name, errors)
        source = variable.get("valueFrom")
        if source is not None:
            _env_source(variable, source, pod.options, f"{path}[{index}].valueFrom", errors)


def _env_source(
    variable: JSONObject, source: JSONObject, options: PodValidationOptions, path: str, errors: ErrorList
) -> None:
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
        item_path = f"{path}.{kind}"
        check(reference.get("name") or "", f"{item_path}.name", dns_subdomain, errors)
        if not reference.get("key"):
            errors.append(required(f"{item_path}.key"))
        else:
            check(reference["key"], f"{item_path}.key", validate_config_map_key, errors)
    if source.get("fileKeyRef") is not None:
        count += 1
        _file_key(source["fileKeyRef"], f"{path}.fileKeyRef", errors)
    if not count:
        choice = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        if options.allows("EnvFiles"):
            choice = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        text = f"must specify one of: {choice}"
        errors.append(invalid(path, "", text))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))


def _file_key(reference: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate a reference to a variable in a file that another container writes."""
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
    Validate that files with variables are in volumes of type emptyDir.

    @param containers: All containers of a pod, with their field paths.
    @param volumes: The volumes of the pod.
    @param errors: Receives the errors.
    """
    volumes_by_name: dict[str, JSONObject] | None = None
    for container, path in containers:
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            if volumes_by_name is None:
                volumes_by_name = {volume.get("name") or "": volume for volume in volumes or ()}
            target_path, name = (
                f"{path}.env[{index}].valueFrom.fileKeyRef.volumeName",
                reference.get("volumeName") or "",
            )
            if name not in volumes_by_name:
                errors.append(not_found(target_path, name))
            elif volumes_by_name[name].get("emptyDir") is None:
                errors.append(invalid(target_path, name, "referenced volume must be of type emptyDir"))


def _env_from(sources: list[JSONObject], pod: PodContext, path: str, errors: ErrorList) -> None:
    for index, source in enumerate(sources):
        item_path = f"{path}[{index}]"
        if source.get("prefix"):
            check(source["prefix"], f"{item_path}.prefix", pod.env_name, errors)
        count = 0
        for kind in ("configMapRef", "secretRef"):
            reference = source.get(kind)
            if reference is None:
                continue
            count += 1
            if not reference.get("name"):
                errors.append(required(f"{item_path}.{kind}.name"))
            else:
                # Validated as a prefix, which a hyphen may end.
                for text in validate_dns1123_subdomain(reference["name"], True):
                    errors.append(invalid(f"{item_path}.{kind}.name", reference["name"], text))
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
        item_path = f"{path}[{index}]"
        name, target_path = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            errors.append(required(f"{item_path}.name"))
        if name not in volumes:
            errors.append(not_found(f"{item_path}.name", name))
        if not target_path:
            errors.append(required(f"{item_path}.mountPath"))
        if target_path in points:
            errors.append(invalid(f"{item_path}.mountPath", target_path, "must be unique"))
        points.add(target_path)
        if name in device_names:
            errors.append(invalid(f"{item_path}.name", name, "must not already exist in volumeDevices"))
        if target_path in device_paths:
            errors.append(
                invalid(f"{item_path}.mountPath", target_path, "must not already exist as a path in volumeDevices")
            )
        sub, expression = mount.get("subPath") or "", mount.get("subPathExpr") or ""
        # The following field paths of the reference have no index.
        if sub:
            local_path(sub, f"{path}.subPath", errors)
        if expression:
            if sub:
                text = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid(f"{item_path}.subPathExpr", expression, text))
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
        item_path = f"{path}[{index}]"
        name, target_path = device.get("name") or "", device.get("devicePath") or ""
        if not name:
            errors.append(required(f"{item_path}.name"))
        if name in names:
            errors.append(invalid(f"{item_path}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(not_found(f"{item_path}.name", name))
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{item_path}.name", name, text))
        if not target_path:
            errors.append(required(f"{item_path}.devicePath"))
        if target_path in paths:
            errors.append(invalid(f"{item_path}.devicePath", target_path, "must be unique"))
        climbing: ErrorList = []
        no_backsteps(target_path, "", climbing)
        if target_path and climbing:
            errors.append(invalid(f"{item_path}.devicePath", target_path, "can not contain backsteps ('..')"))
        else:
            paths.add(target_path)
        if name in mount_names:
            errors.append(invalid(f"{item_path}.name", name, "must not already exist in volumeMounts"))
        if target_path in mount_paths:
            errors.append(
                invalid(f"{item_path}.devicePath", target_path, "must not already exist as a path in volumeMounts")
            )
        if name:
            names.add(name)


_RESIZABLE: Final = ("cpu", "memory")


def _resize_policy(policies: list[JSONObject], pod: PodContext, path: str, errors: ErrorList) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name, "core.ResourceName"))
        seen.add(name)
        if not name:
            errors.append(required(path))
        elif name not in _RESIZABLE:
            errors.append(unsupported(path, name, _RESIZABLE, name, "core.ResourceName"))
        one_of(restart, ("NotRequired", "RestartContainer"), path, errors)
        if pod.restart_policy == "Never" and restart != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            earlier = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(invalid(path, restart, text).reworded(1, 36, earlier))


def _lifecycle_and_probes(container: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for name in ("postStart", "preStop"):
            if lifecycle.get(name) is not None:
                _handler(lifecycle[name], pod, f"{path}.lifecycle.{name}", errors)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            _probe(probe, pod, name, f"{path}.{name}", errors)


def _probe(probe: JSONObject, pod: PodContext, name: str, path: str, errors: ErrorList) -> None:
    _handler(probe, pod, path, errors)
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


def _handler(handler: JSONObject, pod: PodContext, path: str, errors: ErrorList) -> None:
    count = 0
    for kind in _HANDLERS:
        action = handler.get(kind)
        if action is None:
            continue
        count += 1
        item_path = f"{path}.{kind}"
        if count > 1:
            errors.append(forbidden(item_path, "may not specify more than 1 handler type"))
        elif kind == "exec":
            if not action.get("command"):
                errors.append(required(f"{item_path}.command"))
        elif kind == "httpGet":
            if not action.get("path"):
                errors.append(required(f"{item_path}.path"))
            port_number_or_name(action.get("port", 0), f"{item_path}.port", errors)
            if action.get("scheme") not in _SCHEMES:
                errors.append(unsupported(f"{item_path}.scheme", action.get("scheme") or "", _SCHEMES))
            for header in action.get("httpHeaders") or ():
                check(header.get("name") or "", f"{item_path}.httpHeaders", validate_http_header_name, errors)
        elif kind in ("tcpSocket", "grpc"):
            port_number_or_name(action.get("port", 0), f"{item_path}.port", errors)
        else:
            _sleep(action.get("seconds") or 0, pod, item_path, errors)
    if not count:
        errors.append(required(path, "must specify a handler type"))


def _sleep(seconds: int, pod: PodContext, path: str, errors: ErrorList) -> None:
    """Validate the duration of a sleep, which must end within the grace period."""
    grace = pod.grace
    if grace is None or 0 < seconds <= grace:
        return
    if pod.options.allows("PodLifecycleSleepActionAllowZero"):
        if seconds != 0:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errors.append(invalid(path, seconds, text))
        return
    text = f"must be greater than 0 and less than terminationGracePeriodSeconds ({grace})"
    if pod.options.features.since(1, 32):
        text += ". Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
    errors.append(invalid(path, seconds, text))

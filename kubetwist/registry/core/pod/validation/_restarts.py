"""Validation of the restart policies of containers, and of restarts in statuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .....api.errors import forbidden, required, too_many
from .....api.featuregates import FeatureGates
from .....api.podspecs import declared_containers
from .....api.resource import JSONObject
from ....generic.validation.fields import ErrorList, unsupported
from .options import PodValidationOptions

_RESTART: Final = ("Always", "Never", "OnFailure")
_RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
_POLICY_REQUIRED: Final = "must specify restartPolicy when restart rules are used"
_MAX_RESTART_RULES: Final = 20
_MAX_EXIT_CODES: Final = 255
_RESUMED: Final = "may not be transitioned to non-terminated state"


def validate_restart(container: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """
    Validate the restart policy of a regular container, and its rules.

    @param container: The container.
    @param path: The field path of the container.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    if options.allows("ContainerRestartRules"):
        _restart_rules(container, path, errors, options)
    elif container.get("restartPolicy") is not None:
        errors.append(forbidden(f"{path}.restartPolicy", "may not be set for non-init containers"))


def validate_restart_of_init_container(
    container: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate the restart policy of an init container or sidecar, and its rules.

    @param container: The container.
    @param path: The field path of the container.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules")
    if policy is None:
        if options.features.since(1, 35):
            errors.append(required(f"{path}.restartPolicy", _POLICY_REQUIRED))
    elif not options.allows("ContainerRestartRules"):
        if policy != "Always":
            errors.append(unsupported(f"{path}.restartPolicy", policy, ("Always",)))
    elif policy != "Always" or options.allows(_RESTART_ALL):
        _restart_rules(container, path, errors, options)
    elif rules:
        text = "restartPolicyRules are not allowed for init containers with restart policy Always"
        errors.append(forbidden(f"{path}.restartPolicyRules", text))


def _restart_rules(container: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """Validate a restart policy and its rules."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None and policy not in _RESTART:
        errors.append(unsupported(f"{path}.restartPolicy", policy, _RESTART))
    elif policy is None and rules:
        errors.append(required(f"{path}.restartPolicy", _POLICY_REQUIRED))
    if len(rules) > _MAX_RESTART_RULES:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), _MAX_RESTART_RULES))
    actions = ("Restart", "RestartAllContainers") if rules and options.allows(_RESTART_ALL) else ("Restart",)
    for index, rule in enumerate(rules):
        item_path, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action") not in actions:
            errors.append(unsupported(f"{item_path}.action", rule.get("action") or "", actions))
        if codes is None:
            errors.append(required(f"{item_path}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(unsupported(f"{item_path}.exitCodes.operator", codes.get("operator") or "", ("In", "NotIn")))
        values = codes.get("values") or ()
        if len(values) > _MAX_EXIT_CODES:
            errors.append(too_many(f"{item_path}.exitCodes.values", len(values), _MAX_EXIT_CODES))


# --- statuses ----------------------------------------------------------------------------------------------------


def validate_transitions(
    status: JSONObject, before: JSONObject, spec: JSONObject, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate that terminated containers stay terminated unless they are restarted.

    @param status: The new status of a pod.
    @param before: The stored status.
    @param spec: The spec of the pod.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    has_rules = options.allows("ContainerRestartRules")
    if not (has_rules and _all_can_restart(spec) and options.allows(_RESTART_ALL)):
        for containers, kind in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
            if has_rules:
                _transitions_by_rules(status, before, spec, containers, kind, errors, options)
            else:
                _transitions(status, before, spec, kind, errors)
    # Ephemeral containers are not restarted.
    _transitions(status, before, {"restartPolicy": "Never"}, "ephemeralContainerStatuses", errors)


def _all_can_restart(spec: JSONObject) -> bool:
    """Return whether a rule of a container can restart all containers."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for container, _, _ in declared_containers(spec)
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: JSONObject, whole: str | None, code: int, features: FeatureGates) -> bool:
    """
    Return whether a container that exited with C{code} is restarted.

    @param whole: The restart policy of the pod.
    """
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            inside = code in (codes.get("values") or ())
            if codes.get("operator") == ("In" if inside else "NotIn"):
                action = rule.get("action")
                if action == "Restart" or (action == "RestartAllContainers" and features.enabled(_RESTART_ALL)):
                    return True
                break
    policy = whole if policy is None else policy
    return policy != "Never" and (policy != "OnFailure" or code != 0)


def _resumed(status: JSONObject, before: JSONObject, kind: str) -> Iterator[tuple[int, str | None, int]]:
    """Yield the index, name and exit code of containers that were terminated, and no longer are."""
    new: dict[str | None, JSONObject] = {}
    for container_status in status.get(kind) or ():
        new.setdefault(container_status.get("name"), container_status)
    for index, old in enumerate(before.get(kind) or ()):
        ended, now = (old.get("state") or {}).get("terminated"), new.get(old.get("name"))
        if ended is not None and now is not None and (now.get("state") or {}).get("terminated") is None:
            yield index, old.get("name"), ended.get("exitCode") or 0


def _transitions_by_rules(
    status: JSONObject,
    before: JSONObject,
    spec: JSONObject,
    containers: str,
    kind: str,
    errors: ErrorList,
    options: PodValidationOptions,
) -> None:
    """Validate transitions by the restart policies and rules of containers."""
    existing = {one.get("name"): one for one in reversed(spec.get(containers) or ())}
    for index, name, code in _resumed(status, before, kind):
        container = existing.get(name)
        if container is None or not _restarts(container, spec.get("restartPolicy"), code, options.features):
            errors.append(forbidden(f"status.{kind}[{index}].state", _RESUMED))


def _transitions(status: JSONObject, before: JSONObject, spec: JSONObject, kind: str, errors: ErrorList) -> None:
    """Validate transitions by the restart policy of the pod."""
    policy = spec.get("restartPolicy")
    if policy == "Always":
        return
    sidecars: set[str | None] = set()
    if kind == "initContainerStatuses":
        containers = {one.get("name"): one for one in reversed(spec.get("initContainers") or ())}
        sidecars = {name for name, container in containers.items() if container.get("restartPolicy") == "Always"}
    for index, name, code in _resumed(status, before, kind):
        if not (code and policy == "OnFailure") and name not in sidecars:
            errors.append(forbidden(f"status.{kind}[{index}].state", _RESUMED))

"""What the validation of pods permits, by feature gates and by what the stored object has already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from .....api.featuregates import FeatureGates
from .....api.names import validate_env_var_name, validate_strict_env_var_name
from .....api.podspecs import containers
from .....api.resource import JSONObject
from ....generic.validation.fields import STRICT_ADDRESSES, Problems
from ..gates import has_env_files, has_restart_rules, has_zero_sleep

#: The annotation for the cost of the deletion of a pod.
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


class PodValidationOptions:
    """
    What a server permits in pods and pod templates.

    A strategy creates one when it is configured. Rules that depend on a gate ask it when they validate a value that not
    all servers permit, so that usual pods cost nothing. Values that the stored object uses remain valid.

    See C{GetValidationOptionsFromPodSpecAndMeta} in kubernetes, C{pkg/api/pod/util.go}.

    @ivar features: The feature gates and the release of the server.
    @ivar old: The spec of the stored pod or template; L{None} when it is created.
    """

    __slots__ = ("_annotations", "features", "old")

    def __init__(
        self, features: FeatureGates, old: JSONObject | None = None, annotations: JSONObject | None = None
    ) -> None:
        """
        @param features: The feature gates and the release of the server.
        @param old: The spec of the stored pod or template; L{None} when it is created.
        @param annotations: The annotations of the stored pod or template.
        """
        self.features = features
        self.old = old
        self._annotations = annotations

    def for_update(self, template: JSONObject | None) -> PodValidationOptions:
        """Return the options for an update of a pod or template."""
        stored = template or {}
        return PodValidationOptions(
            self.features, stored.get("spec") or {}, (stored.get("metadata") or {}).get("annotations")
        )

    def allows(self, gate: str) -> bool:
        """Return whether a gate is enabled, or the stored object uses its feature."""
        return self.features.enabled(gate) or (self.old is not None and _IN_USE[gate](self.old))

    @property
    def strict_addresses(self) -> bool:
        """Whether ambiguous notations of addresses are errors."""
        return self.features.enabled(STRICT_ADDRESSES)

    @property
    def allows_sidecar_resize_policy(self) -> bool:
        """Whether init containers may have resize policies."""
        if self.features.since(1, 33) and self.features.enabled("InPlacePodVerticalScaling"):
            return True
        if self.old is None or not self.features.since(1, 32):
            return False
        return any(
            container.get("restartPolicy") == "Always" and container.get("resizePolicy")
            for container in self.old.get("initContainers") or ()
        )

    def env_name_validator(self, spec: JSONObject) -> Problems:
        """
        Return the function that validates the names of environment variables.

        The relaxed rule also applies to specs that use a name of the stored object that it permits.
        """
        if self.features.enabled("RelaxedEnvironmentVariableValidation"):
            return validate_env_var_name
        if self.old is not None:
            existing = set(_env_names(self.old))
            if any(name in existing and _only_relaxed(name) for name in _env_names(spec)):
                return validate_env_var_name
        return validate_strict_env_var_name

    def validates_deletion_cost(self) -> bool:
        """Return whether the annotation for the deletion cost is validated: not if the stored one is invalid."""
        if not self.features.enabled("PodDeletionCost"):
            return False
        cost = (self._annotations or {}).get(DELETION_COST)
        return cost is None or is_deletion_cost(cost)


def is_deletion_cost(cost: str) -> bool:
    """Return whether the text of an annotation is a deletion cost: a 32 bit integer in canonical form."""
    digits = cost.removeprefix("-")
    canonical = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and cost != "-0"
    return canonical and -(2**31) <= int(cost) < 2**31


def _only_relaxed(name: str) -> bool:
    return bool(validate_strict_env_var_name(name)) and not validate_env_var_name(name)


def _env_names(spec: JSONObject) -> Iterator[str]:
    """Yield the names of environment variables, and their prefixes."""
    for container, _, _ in containers(spec):
        for variable in container.get("env") or ():
            yield variable.get("name") or ""
        for source in container.get("envFrom") or ():
            yield source.get("prefix") or ""


def _has_relaxed_search(spec: JSONObject) -> bool:
    searches = (spec.get("dnsConfig") or {}).get("searches") or ()
    return any(search == "." or "_" in search for search in searches)


def _has_user_namespace_of_host_network(spec: JSONObject) -> bool:
    return bool(spec.get("hostNetwork")) and spec.get("hostUsers") is False


def _has_comparisons(spec: JSONObject) -> bool:
    return any(toleration.get("operator") in ("Lt", "Gt") for toleration in spec.get("tolerations") or ())


def _has_selinux_policy(spec: JSONObject) -> bool:
    return (spec.get("securityContext") or {}).get("seLinuxChangePolicy") is not None


def _restarts_all(spec: JSONObject) -> bool:
    """Return whether a container can restart all containers, or a sidecar has restart rules."""
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            rules = container.get("restartPolicyRules") or ()
            if any(rule.get("action") == "RestartAllContainers" for rule in rules):
                return True
            if rules and name == "initContainers" and container.get("restartPolicy") == "Always":
                return True
    return False


#: Functions that return whether a stored spec uses the feature of a gate.
_IN_USE: Final[Mapping[str, Callable[[JSONObject], bool]]] = {
    "ContainerRestartRules": has_restart_rules,
    "EnvFiles": has_env_files,
    "PodLifecycleSleepActionAllowZero": has_zero_sleep,
    "RelaxedDNSSearchValidation": _has_relaxed_search,
    "RestartAllContainersOnContainerExits": _restarts_all,
    "SELinuxMount": _has_selinux_policy,
    "TaintTolerationComparisonOperators": _has_comparisons,
    "UserNamespacesHostNetworkSupport": _has_user_namespace_of_host_network,
}

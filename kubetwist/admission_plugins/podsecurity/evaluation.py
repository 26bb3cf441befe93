"""Evaluates pods, pod templates and namespaces against the Pod Security Standards. Pure functions of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import Factory, define

from ...api.errors import (
    FieldError,
    aggregate,
)
from ...api.podspecs import (
    CONTAINER_LISTS,
    DEBUGGING,
    PodTemplate,
)
from ...api.resource import JSONObject
from .checkresult import CheckResult
from .configuration import Configuration
from .levels import (
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    Policy,
    policy_to_evaluate,
    stricter,
)
from .standards import (
    CheckRegistry,
    forbidden_details,
)

#: Subresources of pods that do not change what runs; all other subresources are evaluated.
IGNORED_POD_SUBRESOURCES: Final = frozenset(
    ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
)
_PRIVILEGED: Final = {"enforce-policy": str(LevelVersion())}
_ALLOWED: Final = [("enforce", LevelVersion(), True)]


@define
class Evaluation:
    """
    The result of an evaluation.

    @ivar denial_message: Why a pod is denied; C{""} if it is allowed.
    @ivar causes: Field errors of the labels of a namespace.
    @ivar warnings: Warnings for the client.
    @ivar audit_annotations: Audit annotations; keys without their prefix.
    @ivar evaluations: Mode, policy and result of each evaluation, for metrics.
    @ivar recheck_existing_pods_at: The new enforce level that existing pods must be checked against; L{None} for none.
    """

    denial_message: str = ""
    causes: list[FieldError] = Factory(list)
    warnings: list[str] = Factory(list)
    audit_annotations: dict[str, str] = Factory(dict)
    recheck_existing_pods_at: LevelVersion | None = None
    evaluations: list[tuple[str, LevelVersion, bool]] = Factory(list)


class PodSecurityEvaluator:
    """Evaluates objects that the plugin passes to it (C{pod-security-admission/admission/admission.go})."""

    def __init__(self, configuration: Configuration, standards: CheckRegistry) -> None:
        self.configuration = configuration
        self.standards = standards

    def exempt(self, namespace: str, username: str) -> Evaluation | None:
        """Return the result for an exempt namespace or user; L{None} if neither is exempt."""
        if namespace and namespace in self.configuration.namespaces:
            return Evaluation(audit_annotations={"exempt": "namespace"})
        if username and username in self.configuration.usernames:
            return Evaluation(audit_annotations={"exempt": "user"})
        return None

    def pod(self, labels: Mapping[str, str], pod: JSONObject, old: JSONObject | None) -> Evaluation:
        """
        Evaluate a pod (C{ValidatePod}).

        @param labels: The labels of its namespace.
        @param pod: The pod.
        @param old: The old pod of an update; L{None} for a new pod.
        """
        if old is not None and not is_significant_pod_update(pod, old):
            return Evaluation()
        policy, causes = policy_to_evaluate(labels, self.configuration.defaults)
        return self._evaluate(policy, causes, pod["metadata"], pod["spec"], enforce=True)

    def fully_privileged_result(self, labels: Mapping[str, str]) -> Evaluation | None:
        """Return the result for all pods of a fully privileged namespace; L{None} where pods must be evaluated."""
        policy, causes = policy_to_evaluate(labels, self.configuration.defaults)
        return (
            Evaluation(audit_annotations=_PRIVILEGED, evaluations=_ALLOWED)
            if not causes and policy.fully_privileged
            else None
        )

    def template(self, labels: Mapping[str, str], template: PodTemplate | None) -> Evaluation:
        """
        Evaluate a pod template (C{ValidatePodController}): only warnings and audit annotations, no denial.

        @param labels: The labels of the namespace.
        """
        policy, causes = policy_to_evaluate(labels, self.configuration.defaults)
        if template is None or (not causes and policy.warn.level == policy.audit.level == PRIVILEGED):
            return Evaluation()
        return self._evaluate(policy, causes, template.metadata, template.spec, enforce=False)

    def _evaluate(
        self, policy: Policy, causes: list[FieldError], metadata: JSONObject, spec: JSONObject, *, enforce: bool
    ) -> Evaluation:
        if spec.get("runtimeClassName") in self.configuration.runtime_classes:
            return Evaluation(audit_annotations={"exempt": "runtimeClass"})
        annotations = metadata.get("annotations") or {}
        cached: dict[LevelVersion, list[CheckResult]] = {}

        def evaluate_pod(level_version: LevelVersion) -> list[CheckResult]:
            if level_version not in cached:
                cached[level_version] = self.standards.evaluate_pod(level_version, annotations, spec)
            return cached[level_version]

        evaluation = Evaluation()
        if causes:
            evaluation.audit_annotations["error"] = f"Failed to parse policy{aggregate(causes)}"
        if enforce:
            evaluation.audit_annotations["enforce-policy"] = str(policy.enforce)
            results = evaluate_pod(policy.enforce)
            evaluation.evaluations.append(("enforce", policy.enforce, not results))
            if results:
                evaluation.denial_message = f'violates PodSecurity "{policy.enforce}": {forbidden_details(results)}'
        results = evaluate_pod(policy.audit)
        if results:
            evaluation.evaluations.append(("audit", policy.audit, False))
            evaluation.audit_annotations["audit-violations"] = (
                f'would violate PodSecurity "{policy.audit}": {forbidden_details(results)}'
            )
        if not evaluation.denial_message:
            results = evaluate_pod(policy.warn)
            if results:
                evaluation.evaluations.append(("warn", policy.warn, False))
                evaluation.warnings.append(f'would violate PodSecurity "{policy.warn}": {forbidden_details(results)}')
        return evaluation

    def namespace(self, name: str, labels: Mapping[str, str], before: Mapping[str, str] | None) -> Evaluation:
        """
        Evaluate the labels of a namespace (C{ValidateNamespace}).

        @param name: The name of the namespace.
        @param labels: The new labels.
        @param before: The old labels; L{None} for a new namespace.
        """
        defaults = self.configuration.defaults
        policy, causes = policy_to_evaluate(labels, defaults)
        exempt = name in self.configuration.namespaces
        if before is None:
            if causes:
                return Evaluation(causes=causes)
            return Evaluation(warnings=self._exempt_namespace_warning(name, policy, labels) if exempt else [])
        old_policy, old_causes = policy_to_evaluate(before, defaults)
        if causes and causes != old_causes:
            return Evaluation(causes=causes)
        new, old = policy.enforce, old_policy.enforce
        if new == old or new.level == PRIVILEGED or (new.minor == old.minor and not stricter(new.level, old.level)):
            return Evaluation()
        if exempt:
            return Evaluation(warnings=self._exempt_namespace_warning(name, policy, labels))
        return Evaluation(recheck_existing_pods_at=new)

    def _exempt_namespace_warning(self, name: str, policy: Policy, labels: Mapping[str, str]) -> list[str]:
        """Return the warning that the labels of an exempt namespace have no effect."""
        if policy.fully_privileged or policy.equivalent(self.configuration.defaults):
            return []
        modes = []
        for mode, level_version in (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)):
            label = f"{PREFIX}{mode}"
            if level_version.level != PRIVILEGED and (label in labels or f"{label}-version" in labels):
                modes.append(f"{mode}={level_version}")
        listed = ", ".join(modes)
        return [f'namespace "{name}" is exempt from Pod Security, and the policy ({listed}) will be ignored']


def is_significant_pod_update(pod: JSONObject, old: JSONObject) -> bool:
    """Return whether an update changes the images or containers of a pod."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for field, kind in CONTAINER_LISTS:
        new, before = new_spec.get(field) or (), old_spec.get(field) or ()
        if kind == DEBUGGING:
            images = {one.get("name"): one.get("image") for one in before}
            if any(one.get("name") not in images or images[one.get("name")] != one.get("image") for one in new):
                return True
        elif [one.get("image") for one in new] != [one.get("image") for one in before]:
            return True
    return False

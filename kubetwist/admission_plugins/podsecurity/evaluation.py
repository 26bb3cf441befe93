"""What the standards, the labels of a namespace and the configuration together say of one request."""

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

#: Subresources of pods that do not change what runs; all others are looked at.
IGNORED_POD_SUBRESOURCES: Final = frozenset(
    ("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status")
)
_PRIVILEGED: Final = {"enforce-policy": str(LevelVersion())}
_ALLOWED: Final = [("enforce", LevelVersion(), True)]


@define
class Evaluation:
    """
    What comes of it.

    @ivar denial_message: Why a pod may not be; C{""} if it may.
    @ivar causes: What is wrong with the labels of a namespace.
    @ivar warnings: What the client is told.
    @ivar audit_annotations: What the audit log is told: keys without their prefix.
    @ivar evaluations: What was decided: by mode, policy, and whether it allows.
    @ivar recheck_existing_pods_at: If pods that are there already have to be looked at: by what.
    """

    denial_message: str = ""
    causes: list[FieldError] = Factory(list)
    warnings: list[str] = Factory(list)
    audit_annotations: dict[str, str] = Factory(dict)
    recheck_existing_pods_at: LevelVersion | None = None
    evaluations: list[tuple[str, LevelVersion, bool]] = Factory(list)


class PodSecurityEvaluator:
    """Pure; the plugin brings it the objects."""

    def __init__(self, configuration: Configuration, standards: CheckRegistry) -> None:
        self.configuration = configuration
        self.standards = standards

    def exempt(self, namespace: str, username: str) -> Evaluation | None:
        """The judgement if anything goes in this namespace, or for this user; else L{None}."""
        if namespace and namespace in self.configuration.namespaces:
            return Evaluation(audit_annotations={"exempt": "namespace"})
        if username and username in self.configuration.usernames:
            return Evaluation(audit_annotations={"exempt": "user"})
        return None

    def pod(self, labels: Mapping[str, str], pod: JSONObject, old: JSONObject | None) -> Evaluation:
        """
        Judge a pod.

        @param labels: Of its namespace.
        @param old: What it was before; L{None} for a new one.
        """
        if old is not None and not is_significant_pod_update(pod, old):
            return Evaluation()
        policy, causes = policy_to_evaluate(labels, self.configuration.defaults)
        return self._evaluate(policy, causes, pod["metadata"], pod["spec"], enforce=True)

    def fully_privileged_result(self, labels: Mapping[str, str]) -> Evaluation | None:
        """The judgement on any pod where all is allowed; L{None} where a pod has to be looked at."""
        policy, causes = policy_to_evaluate(labels, self.configuration.defaults)
        return (
            Evaluation(audit_annotations=_PRIVILEGED, evaluations=_ALLOWED)
            if not causes and policy.fully_privileged
            else None
        )

    def template(self, labels: Mapping[str, str], template: PodTemplate | None) -> Evaluation:
        """
        Judge the template of pods; they will be refused, it is only warned of.

        @param labels: Of the namespace.
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
        known: dict[LevelVersion, list[CheckResult]] = {}

        def evaluate_pod(level_version: LevelVersion) -> list[CheckResult]:
            if level_version not in known:
                known[level_version] = self.standards.evaluate_pod(level_version, annotations, spec)
            return known[level_version]

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
        Judge the labels of a namespace.

        @param before: The labels that it had; L{None} for a new one.
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
        """The warning that the labels of an exempt namespace do nothing."""
        if policy.fully_privileged or policy.equivalent(self.configuration.defaults):
            return []
        level_version = []
        for mode, level in (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)):
            label = f"{PREFIX}{mode}"
            if level.level != PRIVILEGED and (label in labels or f"{label}-version" in labels):
                level_version.append(f"{mode}={level}")
        listed = ", ".join(level_version)
        return [f'namespace "{name}" is exempt from Pod Security, and the policy ({listed}) will be ignored']


def is_significant_pod_update(pod: JSONObject, old: JSONObject) -> bool:
    """Whether an update changes what runs: images, or containers."""
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

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
from .checkresult import Finding
from .configuration import Configuration
from .levels import (
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    Policy,
    policy_of,
    stricter,
)
from .standards import (
    Standards,
    details,
)

#: Subresources of pods that do not change what runs; all others are looked at.
IGNORED: Final = frozenset(("exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"))
_PRIVILEGED: Final = {"enforce-policy": str(LevelVersion())}
_ALLOWED: Final = [("enforce", LevelVersion(), True)]


@define
class Judgement:
    """
    What comes of it.

    @ivar refusal: Why a pod may not be; C{""} if it may.
    @ivar causes: What is wrong with the labels of a namespace.
    @ivar warnings: What the client is told.
    @ivar notes: What the audit log is told: keys without their prefix.
    @ivar decided: What was decided: by mode, policy, and whether it allows.
    @ivar enforced: If pods that are there already have to be looked at: by what.
    """

    refusal: str = ""
    causes: list[FieldError] = Factory(list)
    warnings: list[str] = Factory(list)
    notes: dict[str, str] = Factory(dict)
    enforced: LevelVersion | None = None
    decided: list[tuple[str, LevelVersion, bool]] = Factory(list)


class Judge:
    """Pure; the plugin brings it the objects."""

    def __init__(self, configuration: Configuration, standards: Standards) -> None:
        self.configuration = configuration
        self.standards = standards

    def exempt(self, namespace: str, username: str) -> Judgement | None:
        """The judgement if anything goes in this namespace, or for this user; else L{None}."""
        if namespace and namespace in self.configuration.namespaces:
            return Judgement(notes={"exempt": "namespace"})
        if username and username in self.configuration.usernames:
            return Judgement(notes={"exempt": "user"})
        return None

    def pod(self, labels: Mapping[str, str], pod: JSONObject, old: JSONObject | None) -> Judgement:
        """
        Judge a pod.

        @param labels: Of its namespace.
        @param old: What it was before; L{None} for a new one.
        """
        if old is not None and not is_significant(pod, old):
            return Judgement()
        policy, causes = policy_of(labels, self.configuration.defaults)
        return self._judge(policy, causes, pod["metadata"], pod["spec"], enforce=True)

    def settled(self, labels: Mapping[str, str]) -> Judgement | None:
        """The judgement on any pod where all is allowed; L{None} where a pod has to be looked at."""
        policy, causes = policy_of(labels, self.configuration.defaults)
        return Judgement(notes=_PRIVILEGED, decided=_ALLOWED) if not causes and policy.fully_privileged else None

    def template(self, labels: Mapping[str, str], template: PodTemplate | None) -> Judgement:
        """
        Judge the template of pods; they will be refused, it is only warned of.

        @param labels: Of the namespace.
        """
        policy, causes = policy_of(labels, self.configuration.defaults)
        if template is None or (not causes and policy.warn.level == policy.audit.level == PRIVILEGED):
            return Judgement()
        return self._judge(policy, causes, template.metadata, template.spec, enforce=False)

    def _judge(
        self, policy: Policy, causes: list[FieldError], metadata: JSONObject, spec: JSONObject, *, enforce: bool
    ) -> Judgement:
        if spec.get("runtimeClassName") in self.configuration.runtime_classes:
            return Judgement(notes={"exempt": "runtimeClass"})
        annotations = metadata.get("annotations") or {}
        known: dict[LevelVersion, list[Finding]] = {}

        def findings(wanted: LevelVersion) -> list[Finding]:
            if wanted not in known:
                known[wanted] = self.standards.findings(wanted, annotations, spec)
            return known[wanted]

        judgement = Judgement()
        if causes:
            judgement.notes["error"] = f"Failed to parse policy{aggregate(causes)}"
        if enforce:
            judgement.notes["enforce-policy"] = str(policy.enforce)
            found = findings(policy.enforce)
            judgement.decided.append(("enforce", policy.enforce, not found))
            if found:
                judgement.refusal = f'violates PodSecurity "{policy.enforce}": {details(found)}'
        found = findings(policy.audit)
        if found:
            judgement.decided.append(("audit", policy.audit, False))
            judgement.notes["audit-violations"] = f'would violate PodSecurity "{policy.audit}": {details(found)}'
        if not judgement.refusal:
            found = findings(policy.warn)
            if found:
                judgement.decided.append(("warn", policy.warn, False))
                judgement.warnings.append(f'would violate PodSecurity "{policy.warn}": {details(found)}')
        return judgement

    def namespace(self, name: str, labels: Mapping[str, str], before: Mapping[str, str] | None) -> Judgement:
        """
        Judge the labels of a namespace.

        @param before: The labels that it had; L{None} for a new one.
        """
        defaults = self.configuration.defaults
        policy, causes = policy_of(labels, defaults)
        exempt = name in self.configuration.namespaces
        if before is None:
            if causes:
                return Judgement(causes=causes)
            return Judgement(warnings=self._pointless(name, policy, labels) if exempt else [])
        old_policy, old_causes = policy_of(before, defaults)
        if causes and causes != old_causes:
            return Judgement(causes=causes)
        new, old = policy.enforce, old_policy.enforce
        if new == old or new.level == PRIVILEGED or (new.minor == old.minor and not stricter(new.level, old.level)):
            return Judgement()
        if exempt:
            return Judgement(warnings=self._pointless(name, policy, labels))
        return Judgement(enforced=new)

    def _pointless(self, name: str, policy: Policy, labels: Mapping[str, str]) -> list[str]:
        """The warning that the labels of an exempt namespace do nothing."""
        if policy.fully_privileged or policy.equivalent(self.configuration.defaults):
            return []
        said = []
        for mode, level in (("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)):
            label = f"{PREFIX}{mode}"
            if level.level != PRIVILEGED and (label in labels or f"{label}-version" in labels):
                said.append(f"{mode}={level}")
        listed = ", ".join(said)
        return [f'namespace "{name}" is exempt from Pod Security, and the policy ({listed}) will be ignored']


def is_significant(pod: JSONObject, old: JSONObject) -> bool:
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

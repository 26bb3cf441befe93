"""Strategies of Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.featuregates import FeatureGates
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..core.pod.defaults import default_pod_template
from ..core.pod.gates import disabled_pod_fields, drop_of_template
from ..core.pod.validation.options import PodValidationOptions
from ..core.pod.warnings import name_warnings, unchanged
from ..generic.gates import DisabledFields, GatedField, field_at
from ..generic.strategy import Strategy
from .validation import cronjob, job, jobstatus
from .warnings import job_warnings

_PREFIX: Final = "batch.kubernetes.io/"
_LEGACY_LABELS: Final = ("job-name", "controller-uid")


def _drop_index_rules(obj: JSONObject) -> None:
    """Drop the rules of the pod failure policy that fail an index."""
    policy = obj["spec"].get("podFailurePolicy") or {}
    if policy.get("rules"):
        policy["rules"] = [rule for rule in policy["rules"] if rule.get("action") != "FailIndex"]


def _is_stored(_: JSONObject) -> bool:
    """Return C{True}: the field is only dropped from new objects, since it is immutable."""
    return True


#: See C{pkg/registry/batch/job/strategy.go}.
_GATED: Final = (
    GatedField(gate="JobManagedBy", find=field_at("spec", "managedBy"), in_use=_is_stored),
    GatedField(gate="JobSuccessPolicy", find=field_at("spec", "successPolicy")),
    GatedField(gate="JobBackoffLimitPerIndex", find=field_at("spec", "backoffLimitPerIndex")),
    GatedField(gate="JobBackoffLimitPerIndex", find=field_at("spec", "maxFailedIndexes")),
    GatedField(
        gate="JobBackoffLimitPerIndex",
        find=field_at("spec", "podFailurePolicy", "rules"),
        in_use=_is_stored,
        drop=_drop_index_rules,
    ),
    GatedField(gate="WorkloadWithJob", find=field_at("spec", "scheduling"), since=(1, 37)),
    GatedField(gate="JobPodReplacementPolicy", find=field_at("spec", "podReplacementPolicy")),
)


class JobStrategy(Strategy):
    """batch/v1 Job."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")

    has_generation = True
    has_status = True
    status_protects = ()
    default_garbage_collection = "orphan"

    def configure(self) -> None:
        """Select the fields to drop, and the rules that apply."""
        features = self.features
        self._disabled = disabled_pod_fields(features)
        self._disabled_own = DisabledFields(_GATED, features)
        self._options = PodValidationOptions(features)
        self._update_rules = job.JobUpdateRules.from_features(features)
        self._status_rules = jobstatus.JobStatusRules.from_features(features)
        self._replaces_pods = features.enabled("JobPodReplacementPolicy")

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/batch/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        if spec.get("parallelism") is None:
            if spec.get("completions") is None:
                spec["completions"] = 1
            spec["parallelism"] = 1
        if spec.get("backoffLimit") is None:
            spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
        if not spec.get("completionMode"):
            spec["completionMode"] = "NonIndexed"
        if spec.get("suspend") is None:
            spec["suspend"] = False
        if spec.get("manualSelector") is None:
            spec["manualSelector"] = False
        policy = spec.get("podFailurePolicy")
        if self._replaces_pods and spec.get("podReplacementPolicy") is None:
            spec["podReplacementPolicy"] = "TerminatingOrFailed" if policy is None else "Failed"
        default_job_template_spec(spec, self.features)
        metadata = obj.get("metadata") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels and not metadata.get("labels"):
            # The same dict, so that generated labels are added to both.
            metadata["labels"] = labels

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Generate the pod selector from the job's uid, unless C{manualSelector} is set."""
        super().prepare_for_create(obj)
        spec, metadata = obj["spec"], obj["metadata"]
        self._disabled_own.drop(obj)
        drop_of_template(spec.get("template"), None, self._disabled)
        if spec.get("manualSelector"):
            return
        # As in the reference, labels copied from the template remain the same map. A template without labels
        # shares them when the object is completed, after validation.
        template = spec["template"]["metadata"]
        follow = "labels" in template and metadata.get("labels") is template["labels"]
        _generate_selector(obj, spec)
        if follow:
            metadata["labels"] = dict(template["labels"])

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_update(obj, old)
        self._disabled_own.drop(obj, old)
        drop_of_template(obj["spec"].get("template"), old["spec"].get("template"), self._disabled)

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: no pod has run."""
        obj["status"] = {}

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the name, which is part of the names of pods, and about the spec."""
        texts = [] if old else name_warnings(obj["metadata"]["name"])
        return texts if unchanged(obj, old) else texts + job_warnings(obj["spec"], "spec", self.features)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return job.validate_job(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate which fields may change, depending on whether the job is suspended."""
        options = self._options.for_update(old["spec"].get("template"))
        return job.validate_job_update(obj, old, options, self._update_rules)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the counts and the conditions."""
        return jobstatus.validate_job_status_update(obj, old, self._status_rules)

    def delete_warnings(self, propagation_policy: str | None, orphan_dependents: bool | None) -> Sequence[str]:
        """Return a warning for a DELETE without a propagation policy, which orphans the pods."""
        if propagation_policy is None and orphan_dependents is None:
            return (
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
                "remove them or set propagationPolicy=Orphan to suppress this warning",
            )
        return ()


def _generate_selector(obj: JSONObject, spec: JSONObject) -> None:
    metadata = obj["metadata"]
    uid, name = metadata.get("uid") or "", metadata.get("name") or ""
    template = spec["template"].setdefault("metadata", {})
    labels = template.get("labels")
    if labels is None:
        labels = template["labels"] = {}
    generated = {
        "controller-uid": uid,
        _PREFIX + "controller-uid": uid,
        "job-name": name,
        _PREFIX + "job-name": name,
    }
    for label, value in generated.items():
        # A value from the client remains, so that validation rejects it.
        labels.setdefault(label, value)
    selector = spec.setdefault("selector", {})
    matched = selector.setdefault("matchLabels", {})
    matched.setdefault(_PREFIX + "controller-uid", uid)


def default_job_template_spec(spec: JSONObject, features: FeatureGates) -> None:
    """
    Add the defaults that job templates of CronJobs have as well: the pod template and the pod failure policy.

    @param spec: The spec; modified.
    @param features: The feature gates and the release of the server.
    """
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    template = spec.get("template")
    if template is None:
        template = spec["template"] = {}
    default_pod_template(template, features)


def _job_spec(obj: JSONObject) -> JSONObject:
    spec: JSONObject = obj["spec"]["jobTemplate"].get("spec") or {}
    return spec


class CronJobStrategy(Strategy):
    """batch/v1 CronJob."""

    status_metadata_update_rules: Sequence[Rule] = ()
    has_generation = True
    has_status = True
    status_protects = ()

    def configure(self) -> None:
        """Decide which fields of templates are dropped, and what their validation permits."""
        self._disabled = disabled_pod_fields(self.features)
        self._options = PodValidationOptions(self.features)

    def default(self, obj: JSONObject) -> None:
        """Add defaults, see C{pkg/apis/batch/v1/defaults.go}; defaults of jobs are not added to the job template."""
        spec = obj.setdefault("spec", {})
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        if spec.get("suspend") is None:
            spec["suspend"] = False
        if spec.get("successfulJobsHistoryLimit") is None:
            spec["successfulJobsHistoryLimit"] = 3
        if spec.get("failedJobsHistoryLimit") is None:
            spec["failedJobsHistoryLimit"] = 1
        template = spec.setdefault("jobTemplate", {})
        template.setdefault("metadata", {})
        default_job_template_spec(template.setdefault("spec", {}), self.features)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        drop_of_template(_job_spec(obj).get("template"), None, self._disabled)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_update(obj, old)
        drop_of_template(_job_spec(obj).get("template"), _job_spec(old).get("template"), self._disabled)

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: no job has run."""
        obj["status"] = {}

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the name, which is part of the names of pods, and about the job template."""
        texts = [] if old else name_warnings(obj["metadata"]["name"])
        if unchanged(obj, old):
            return texts
        job = obj["spec"]["jobTemplate"].get("spec") or {}
        return texts + job_warnings(job, "spec.jobTemplate.spec", self.features)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec and the length of the name, which is the prefix of the names of jobs."""
        return cronjob.validate_cron_job(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return cronjob.validate_cron_job_update(obj, old, self._options.for_update(_job_spec(old).get("template")))


STRATEGIES: Final[Mapping[str, Strategy]] = {"Job": JobStrategy(), "CronJob": CronJobStrategy()}

"""Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..core.pod.defaults import default_pod_template
from ..core.pod.gates import drop_of_template
from ..core.pod.warnings import name_warnings, unchanged
from ..generic.strategy import Strategy
from .validation import cronjob, job, jobstatus
from .warnings import job_warnings

_PREFIX: Final = "batch.kubernetes.io/"
_LEGACY_LABELS: Final = ("job-name", "controller-uid")


class JobStrategy(Strategy):
    """batch/v1 Job."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")

    has_generation = True
    has_status = True
    status_protects = ()
    default_garbage_collection = "orphan"

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
        if spec.get("podReplacementPolicy") is None:
            spec["podReplacementPolicy"] = "TerminatingOrFailed" if policy is None else "Failed"
        default_job_template_spec(spec)
        metadata = obj.get("metadata") or {}
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels and not metadata.get("labels"):
            # The same, so that it can be seen when labels are generated: they go on following the template.
            metadata["labels"] = labels

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Choose pods by the job's uid, unless the client chooses."""
        super().prepare_for_create(obj)
        spec, metadata = obj["spec"], obj["metadata"]
        drop_of_template(spec.get("template"), None, self.open_gates)
        if spec.get("manualSelector"):
            return
        # Labels from the template remain shared with it: in the reference, too, both are the same map. A
        # template without labels shares them when the object is completed, after validation.
        template = spec["template"]["metadata"]
        follow = "labels" in template and metadata.get("labels") is template["labels"]
        _generate_selector(obj, spec)
        if follow:
            metadata["labels"] = dict(template["labels"])

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop what is behind gates that are closed, but for what is there already."""
        super().prepare_for_update(obj, old)
        drop_of_template(obj["spec"].get("template"), old["spec"].get("template"), self.open_gates)

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing has run."""
        obj["status"] = {}

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """The name, which is part of the names of pods, and the spec."""
        texts = [] if old else name_warnings(obj["metadata"]["name"])
        return texts if unchanged(obj, old) else texts + job_warnings(obj["spec"], "spec")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """The spec of a new one."""
        return job.validate_job(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """What may change while a job runs, and what while it does not."""
        return job.validate_job_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The counts and the conditions."""
        return jobstatus.validate_job_status_update(obj, old)

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
    wanted = {
        "controller-uid": uid,
        _PREFIX + "controller-uid": uid,
        "job-name": name,
        _PREFIX + "job-name": name,
    }
    for label, value in wanted.items():
        # A value of the client's stays, so that validation can refuse it.
        labels.setdefault(label, value)
    selector = spec.setdefault("selector", {})
    matched = selector.setdefault("matchLabels", {})
    matched.setdefault(_PREFIX + "controller-uid", uid)


def default_job_template_spec(spec: JSONObject) -> None:
    """What is filled in of a job also below a cron job: its template of pods, and what conditions it fails on."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    template = spec.get("template")
    if template is None:
        template = spec["template"] = {}
    default_pod_template(template)


def _job_spec(obj: JSONObject) -> JSONObject:
    found: JSONObject = obj["spec"]["jobTemplate"].get("spec") or {}
    return found


class CronJobStrategy(Strategy):
    """batch/v1 CronJob."""

    status_metadata_update_rules: Sequence[Rule] = ()
    has_generation = True
    has_status = True
    status_protects = ()

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/batch/v1/defaults.go}; what jobs default to is not applied to their templates."""
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
        default_job_template_spec(template.setdefault("spec", {}))

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop what is behind gates that are closed."""
        super().prepare_for_create(obj)
        drop_of_template(_job_spec(obj).get("template"), None, self.open_gates)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Likewise, but for what is there already."""
        super().prepare_for_update(obj, old)
        drop_of_template(_job_spec(obj).get("template"), _job_spec(old).get("template"), self.open_gates)

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing has run."""
        obj["status"] = {}

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """The name, which is part of the names of pods, and the spec of the jobs."""
        texts = [] if old else name_warnings(obj["metadata"]["name"])
        if unchanged(obj, old):
            return texts
        return texts + job_warnings(obj["spec"]["jobTemplate"].get("spec") or {}, "spec.jobTemplate.spec")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """The spec of a new one, and that its name leaves room for those of its jobs."""
        return cronjob.validate_cron_job(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The spec."""
        return cronjob.validate_cron_job_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Job": JobStrategy(), "CronJob": CronJobStrategy()}

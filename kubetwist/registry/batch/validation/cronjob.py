"""Validation of CronJobs; see kubernetes, C{pkg/apis/batch/validation/validation.go}."""

from __future__ import annotations

import re
import zoneinfo
from typing import Final

from ....api.errors import FieldError, invalid, required
from ....api.resource import JSONObject
from ...core.pod.validation.options import PodValidationOptions
from ...generic.validation.fields import ErrorList, invalid_selector, not_negative, unsupported
from ..schedule import CronError, check_schedule
from .job import validate_job_spec


def validate_cron_job(obj: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate a new CronJob; its name is the prefix of the names of jobs."""
    errors = _validate_cron_job_spec(obj, None, options)
    name = obj["metadata"].get("name") or ""
    if len(name) > 52:
        errors.append(invalid("metadata.name", name, "must be no more than 52 characters"))
    return errors


def validate_cron_job_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Validate the spec; a stored time zone remains valid."""
    return _validate_cron_job_spec(obj, old, options)


def _validate_cron_job_spec(obj: JSONObject, old: JSONObject | None, options: PodValidationOptions) -> list[FieldError]:
    errors: ErrorList = []
    spec = obj["spec"]
    schedule = spec.get("schedule") or ""
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        try:
            check_schedule(schedule)
        except CronError as error:
            errors.append(invalid("spec.schedule", schedule, str(error)))
        if "TZ" in schedule:
            if old is None or "TZ" not in (old["spec"].get("schedule") or ""):
                text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
                errors.append(invalid("spec.schedule", schedule, text))
            elif spec.get("timeZone") is not None:
                text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
                errors.append(invalid("spec.schedule", schedule, text))
    not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds", errors)
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old["spec"].get("timeZone") != zone):
        _validate_time_zone(zone, errors)
    policy = spec.get("concurrencyPolicy") or ""
    choice = ("Allow", "Forbid", "Replace")
    if not policy:
        errors.append(required("spec.concurrencyPolicy"))
    elif policy not in choice:
        errors.append(unsupported("spec.concurrencyPolicy", policy, choice))
    _validate_job_template(spec.get("jobTemplate") or {}, "spec.jobTemplate", errors, options)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        not_negative(spec.get(name), f"spec.{name}", errors)
    return errors


_ZONE_PART: Final = re.compile(r"[A-Za-z._0-9+-]{1,14}")


def _validate_time_zone(zone: str, errors: ErrorList) -> None:
    if not zone:
        errors.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
        return
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in zone.split("/")):
        errors.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
        return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid("spec.timeZone", zone, text))
    if zone == "Local":
        return
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        errors.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))


def _validate_job_template(template: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions) -> None:
    """Validate a job template; as in the reference, its metadata is not validated."""
    spec = template.get("spec") or {}
    validate_job_spec(spec, f"{path}.spec", errors, options, has_selector=False)
    if spec.get("selector") is not None:
        text = "`selector` will be auto-generated"
        errors.append(invalid_selector(f"{path}.spec.selector", spec["selector"], text))
    if spec.get("manualSelector"):
        errors.append(unsupported(f"{path}.spec.manualSelector", True, ("nil", "false")))

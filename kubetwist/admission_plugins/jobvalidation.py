"""JobValidation: rejects changes of the parallelism of gang-scheduled Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.go.quote import quoted
from ..api.resource import JSONObject
from ..interfaces import IValidatingAdmission

_GROUP: Final = "scheduling.k8s.io"


@implementer(IValidatingAdmission)
@frozen
class JobValidation:
    """
    See kubernetes, C{plugin/pkg/admission/job/admission.go}.

    The reference checks feature gates. This plugin depends on whether PodGroups are served.
    """

    name: ClassVar[str] = "JobValidation"
    resources: ClassVar[tuple[str, ...]] = ("jobs.batch",)

    def handles(self, operation: str) -> bool:
        """Return true for UPDATE."""
        return operation == "UPDATE"

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}."""
        job, old = attributes.object, attributes.old_object
        assert job is not None and old is not None
        if job["spec"].get("parallelism") == old["spec"].get("parallelism"):
            return
        for group in _groups(attributes, old):
            if ((group.get("spec") or {}).get("schedulingPolicy") or {}).get("gang") is not None:
                name = quoted(group["metadata"]["name"])
                message = f"cannot change parallelism for a Job referencing gang-scheduled PodGroup {name}"
                raise attributes.forbidden(message)


def _groups(attributes: AdmissionAttributes, job: JSONObject) -> Iterator[JSONObject]:
    """Return the scheduling group of the job's pods, or the groups created for the job."""
    template = (job["spec"].get("template") or {}).get("spec") or {}
    name = (template.get("schedulingGroup") or {}).get("podGroupName")
    if name is not None:
        group = attributes.context.get_decoded(_GROUP, "podgroups", attributes.namespace, name)
        if group is not None:
            yield group
        return
    uid = job["metadata"].get("uid")
    for group in attributes.context.list_decoded(_GROUP, "podgroups", attributes.namespace):
        owners = group["metadata"].get("ownerReferences") or ()
        if any(owner.get("controller") and owner.get("uid") == uid for owner in owners):
            yield group

"""Turns the name of a pod's priority class into the priority and preemption policy that schedulers read."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..admission.attributes import AdmissionAttributes
from ..api.errors import APIStatusError
from ..api.resource import GroupResource, JSONObject
from ..interfaces import IMutatingAdmission

#: Classes that are there even while their objects are not.
SYSTEM: Final = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


@implementer(IMutatingAdmission)
@frozen
class Priority:
    """See kubernetes, C{plugin/pkg/admission/priority/admission.go}."""

    name: ClassVar[str] = "Priority"

    def handles(self, operation: str) -> bool:
        """Creating and updating."""
        return operation in ("CREATE", "UPDATE")

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        pod = attributes.object
        if attributes.resource != "pods" or attributes.group or attributes.subresource or pod is None:
            return
        spec = pod["spec"]
        if attributes.operation == "UPDATE":
            before = (attributes.old_object or {}).get("spec") or {}
            for field in ("priority", "preemptionPolicy"):
                if spec.get(field) is None and before.get(field) is not None:
                    spec[field] = before[field]
            return
        value, policy = self._class(spec, attributes)
        given = spec.get("priority")
        if given is not None and given != value:
            why = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise _forbidden(attributes, why)
        spec["priority"] = value
        chosen = spec.get("preemptionPolicy")
        if chosen is not None and chosen != policy:
            why = (
                f"the string value of PreemptionPolicy ({chosen}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise _forbidden(attributes, why)
        spec["preemptionPolicy"] = policy

    def _class(self, spec: JSONObject, attributes: AdmissionAttributes) -> tuple[int, str]:
        """The value and the policy of the pod's class."""
        name = spec.get("priorityClassName")
        if not name:
            return 0, "PreemptLowerPriority"
        found = attributes.context.lookup("scheduling.k8s.io", "priorityclasses", "", name)
        if found is not None:
            return found.get("value") or 0, found.get("preemptionPolicy") or "PreemptLowerPriority"
        if name in SYSTEM:
            return SYSTEM[name], "PreemptLowerPriority"
        raise _forbidden(attributes, f"no PriorityClass with name {name} was found")


def _forbidden(attributes: AdmissionAttributes, why: str) -> APIStatusError:
    return APIStatusError.forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, why)

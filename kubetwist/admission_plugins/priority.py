"""Turns the name of a pod's priority class into the priority and preemption policy that schedulers read."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission

_GROUP: Final = "scheduling.k8s.io"
_PREEMPT: Final = "PreemptLowerPriority"

#: Classes that are there even while their objects are not.
SYSTEM: Final = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class Priority:
    """See kubernetes, C{plugin/pkg/admission/priority/admission.go}."""

    name: ClassVar[str] = "Priority"
    resources: ClassVar[tuple[str, ...]] = ("pods", f"priorityclasses.{_GROUP}")

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        if attributes.resource != "pods":
            return
        assert attributes.object is not None
        spec = attributes.object["spec"]
        if attributes.operation == "UPDATE":
            _keep(spec, attributes)
            return
        value, policy = _class_of(spec, attributes)
        given = spec.get("priority")
        if given is not None and given != value:
            why = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise attributes.forbidden(why)
        spec["priority"] = value
        chosen = spec.get("preemptionPolicy")
        if chosen is not None and chosen != policy:
            why = (
                f"the string value of PreemptionPolicy ({chosen}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise attributes.forbidden(why)
        spec["preemptionPolicy"] = policy

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: there is one default class."""
        obj = attributes.object
        assert obj is not None
        if attributes.resource == "pods" or not obj.get("globalDefault"):
            return
        default = _default_class(attributes)
        if default is None:
            return
        name = default["metadata"]["name"]
        if attributes.operation == "CREATE" or name != obj["metadata"].get("name"):
            why = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise attributes.forbidden(why)


def _keep(spec: JSONObject, attributes: AdmissionAttributes) -> None:
    """Carry over fields that an old client does not know."""
    before = (attributes.old_object or {}).get("spec") or {}
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and before.get(field) is not None:
            spec[field] = before[field]


def _class_of(spec: JSONObject, attributes: AdmissionAttributes) -> tuple[int, str]:
    """
    Return the value and the policy of the pod's class, or of the default one, which the pod then has.

    @raise APIStatusError: The class is not there (403).
    """
    name = spec.get("priorityClassName")
    if name:
        found = attributes.context.get_decoded(_GROUP, "priorityclasses", "", name)
        if found is None:
            if name in SYSTEM:
                return SYSTEM[name], _PREEMPT
            raise attributes.forbidden(f"no PriorityClass with name {name} was found")
    else:
        found = _default_class(attributes)
        if found is None:
            return 0, _PREEMPT
        spec["priorityClassName"] = found["metadata"]["name"]
    return found.get("value") or 0, found.get("preemptionPolicy") or _PREEMPT


def _default_class(attributes: AdmissionAttributes) -> JSONObject | None:
    """Return the class of pods that name none; of several, which a race can leave behind, the lowest."""
    classes = attributes.context.list_decoded(_GROUP, "priorityclasses")
    return min((one for one in classes if one.get("globalDefault")), key=lambda one: one["value"], default=None)

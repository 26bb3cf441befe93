"""Priority: sets the priority and preemption policy of a pod from its PriorityClass."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

_GROUP: Final = "scheduling.k8s.io"
_PREEMPT: Final = "PreemptLowerPriority"

#: The built-in classes, which pods can use before their objects exist.
SYSTEM: Final = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class Priority:
    """
    See kubernetes, C{plugin/pkg/admission/priority/admission.go}.

    @ivar groups: Whether pod groups have priorities: the feature gate WorkloadAwarePreemption.
    """

    name: ClassVar[str] = "Priority"
    resources: ClassVar[tuple[str, ...]] = ("pods", f"podgroups.{_GROUP}", f"priorityclasses.{_GROUP}")

    groups: bool = False

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> Priority:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        return cls(server.features.enabled("WorkloadAwarePreemption"))

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> None:
        """See L{IMutatingAdmission.admit}."""
        if attributes.resource == "podgroups" and self.groups and attributes.operation == "CREATE":
            _admit_group(attributes)
        if attributes.resource != "pods":
            return
        assert attributes.object is not None
        spec = attributes.object["spec"]
        if attributes.operation == "UPDATE":
            _keep_old_values(spec, attributes)
            return
        value, policy = _class_of(spec, attributes)
        requested_priority = spec.get("priority")
        if requested_priority is not None and requested_priority != value:
            message = (
                f"the integer value of priority ({requested_priority}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise attributes.forbidden(message)
        spec["priority"] = value
        requested_policy = spec.get("preemptionPolicy")
        if requested_policy is not None and requested_policy != policy:
            message = (
                f"the string value of PreemptionPolicy ({requested_policy}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise attributes.forbidden(message)
        spec["preemptionPolicy"] = policy

    def validate(self, attributes: AdmissionAttributes) -> None:
        """See L{IValidatingAdmission.validate}: only one PriorityClass can be the default."""
        obj = attributes.object
        assert obj is not None
        if attributes.resource != "priorityclasses" or not obj.get("globalDefault"):
            return
        default = _default_class(attributes)
        if default is None:
            return
        name = default["metadata"]["name"]
        if attributes.operation == "CREATE" or name != obj["metadata"].get("name"):
            message = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise attributes.forbidden(message)


def _admit_group(attributes: AdmissionAttributes) -> None:
    """Set the priority of a pod group from its class."""
    assert attributes.object is not None
    spec = attributes.object.setdefault("spec", {})
    value, _ = _class_of(spec, attributes)
    requested = spec.get("priority")
    if requested is not None and requested != value:
        message = (
            f"priority set in the pod group ({requested}) must match the priority computed ({value}) based on the"
            " priority class set in the spec"
        )
        raise attributes.forbidden(message)
    spec["priority"] = value


def _keep_old_values(spec: JSONObject, attributes: AdmissionAttributes) -> None:
    """Copy fields from the old pod that an old client does not know and omits."""
    before = (attributes.old_object or {}).get("spec") or {}
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and before.get(field) is not None:
            spec[field] = before[field]


def _class_of(spec: JSONObject, attributes: AdmissionAttributes) -> tuple[int, str]:
    """
    Return the value and the preemption policy of the class; set the default class in a spec without one.

    @raise APIStatusError: The class does not exist (403).
    """
    name = spec.get("priorityClassName")
    if name:
        priority_class = attributes.context.get_decoded(_GROUP, "priorityclasses", "", name)
        if priority_class is None:
            if name in SYSTEM:
                return SYSTEM[name], _PREEMPT
            raise attributes.forbidden(f"no PriorityClass with name {name} was found")
    else:
        priority_class = _default_class(attributes)
        if priority_class is None:
            return 0, _PREEMPT
        spec["priorityClassName"] = priority_class["metadata"]["name"]
    return priority_class.get("value") or 0, priority_class.get("preemptionPolicy") or _PREEMPT


def _default_class(attributes: AdmissionAttributes) -> JSONObject | None:
    """Return the default class; of several, which concurrent creates can leave, the one with the lowest value."""
    classes = attributes.context.list_decoded(_GROUP, "priorityclasses")
    return min((one for one in classes if one.get("globalDefault")), key=lambda one: one["value"], default=None)

"""C{pods/binding} and C{bindings}: bind a pod to a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zope.interface import implementer

from ....api import times
from ....api.admission import AdmissionAttributes
from ....api.errors import APIStatusError, aggregate
from ....api.options import CreateOptions, UpdateOptions
from ....api.requestscope import RequestScope
from ....api.resource import GroupResource, GroupVersionKind, JSONObject
from ....interfaces import ICreator, INamedCreator
from ...generic.admitting import virtual_attributes
from ...generic.capabilities import NamedResource
from ...generic.resourceinfo import ResourceInfo
from ...generic.updates import UpdateRules, failed_precondition
from .eviction import success

if TYPE_CHECKING:
    from ...generic.store import Store


@implementer(INamedCreator)
class PodBinding:
    """Storage of C{pods/binding}."""

    kind = GroupVersionKind("", "v1", "Binding")

    def __init__(self, pods: Store) -> None:
        self._pods = pods
        self.info = pods.info
        features = pods.context.features
        self._clears_nomination = features.enabled("ClearingNominatedNodeNameAfterBinding")
        self._copies_labels = features.enabled("PodTopologyLabelsAdmission")

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """
        Bind a pod; see L{INamedCreator.create_named}.

        @param name: The name of the pod.
        @param obj: The C{Binding}.
        @param options: The options of the request.
        @return: The Status.
        """
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = self._pods.attributes("CREATE", scope, name, obj, None, options, "binding", self.kind)
        await self._pods.admit(attributes)
        if obj["metadata"].get("name") != name:
            raise APIStatusError.bad_request("name in URL does not match name in Binding object")
        return await self.bind(scope, name, obj, options, attributes)

    async def bind(
        self,
        scope: RequestScope,
        name: str,
        obj: JSONObject,
        options: CreateOptions,
        attributes: AdmissionAttributes,
    ) -> JSONObject:
        """
        Bind a pod, after mutating admission.

        @param name: The name of the pod.
        @param obj: The C{Binding}.
        @param options: The options of the request.
        @param attributes: The attributes for validating admission.
        @return: The Status.
        @raise APIStatusError: Validating admission rejects the request, the pod does not exist (404), or it cannot be
            bound (409).
        """
        target = obj.get("target") or {}
        # Few clients create bindings, and the validation of pods is large.
        from .validation.pod import validate_binding

        errors = validate_binding(obj)
        if errors:
            raise APIStatusError.unknown(aggregate(errors).removeprefix(": "))

        def bound(pod: JSONObject | None) -> JSONObject:
            assert pod is not None, "bindings do not create pods"
            key = self._pods.cache_key(scope.namespace, name)
            for precondition, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
                required, actual = obj["metadata"].get(field), pod["metadata"][field]
                if required and required != actual:
                    raise failed_precondition(
                        self._pods, key, name, precondition, required, actual, dry_run=options.dry_run
                    )
            self._assign(pod, target["name"], obj["metadata"])
            return pod

        await self._pods.admission.validate(attributes)
        rules = UpdateRules("binding", lambda obj, old: None, lambda obj, old: ())
        inner = scope.without_admission()
        await self._pods.update(inner, name, bound, UpdateOptions(dry_run=options.dry_run), rules, patching=True)
        return success(201)

    def _assign(self, pod: JSONObject, node: str, meta: JSONObject) -> None:
        name = pod["metadata"]["name"]
        conflict = APIStatusError.conflict
        resource = GroupResource("", "pods/binding")
        if "deletionTimestamp" in pod["metadata"]:
            raise conflict(resource, name, f"pod {name} is being deleted, cannot be assigned to a host")
        spec = pod.setdefault("spec", {})
        if spec.get("nodeName"):
            raise conflict(resource, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise conflict(resource, name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        if meta.get("annotations"):
            pod["metadata"].setdefault("annotations", {}).update(meta["annotations"])
        if self._copies_labels and meta.get("labels"):
            pod["metadata"].setdefault("labels", {}).update(meta["labels"])
        status = pod.setdefault("status", {})
        if self._clears_nomination:
            status.pop("nominatedNodeName", None)
        _set_condition(status.setdefault("conditions", []), "PodScheduled")


def _set_condition(conditions: list[JSONObject], kind: str) -> None:
    """
    Set a condition of a pod to true, at its position in the list (C{UpdatePodCondition} in C{pkg/api/v1/pod/util.go}).
    """
    new = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": times.now()}
    for index, condition in enumerate(conditions):
        if condition.get("type") == kind:
            if condition.get("status") == "True":
                new["lastTransitionTime"] = condition.get("lastTransitionTime")
            conditions[index] = new
            return
    conditions.append(new)


@implementer(ICreator)
class Bindings(NamedResource):
    """Storage of C{bindings}, the older path, in which only the body contains the name of the pod."""

    def __init__(self, info: ResourceInfo, pods: Store) -> None:
        self.info = info
        self._pods = pods
        self._binding = PodBinding(pods)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{ICreator.create}."""
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = virtual_attributes(self.info, self._pods.context, scope, obj, options)
        await self._pods.admit(attributes)
        name = obj["metadata"].get("name")
        if not name:
            raise APIStatusError.bad_request("Name parameter required.")
        return await self._binding.bind(scope, name, obj, options, attributes)

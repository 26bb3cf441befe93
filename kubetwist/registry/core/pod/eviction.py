"""C{pods/eviction}: deletion of pods that respects PodDisruptionBudgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from zope.interface import implementer

from ....api import times
from ....api.decoding import BodyError
from ....api.errors import APIStatusError, invalid
from ....api.listoptions import parse_delete_options_from_body
from ....api.options import CreateOptions, DeleteOptions, UpdateOptions
from ....api.requestscope import RequestScope
from ....api.resource import GroupKind, GroupResource, GroupVersionKind, JSONObject
from ....api.selectors import label_selector_from_object
from ....interfaces import INamedCreator
from ...generic import deletion
from ...generic.bootstrap import SERVER
from ...generic.updates import UpdateRules

if TYPE_CHECKING:
    from ...generic.store import Store

EVICTION = GroupVersionKind("policy", "v1", "Eviction")
_UNREADABLE: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
#: Seconds after which a client should retry an eviction that was rejected because its budget is not up to date.
BUDGET_RETRY = 10
#: Maximum number of pods in C{disruptedPods} of a budget.
MAX_DISRUPTED_PODS = 2000


def success(code: int) -> JSONObject:
    """Return the Status of a successful action."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


@implementer(INamedCreator)
class PodEviction:
    """Storage of C{pods/eviction}."""

    def __init__(self, pods: Store, budgets: Store | None) -> None:
        self._pods = pods
        self._budgets = budgets
        self.info = pods.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """
        Evict a pod; see L{INamedCreator.create_named}.

        @param name: The name of the pod.
        @param obj: The C{Eviction}.
        @param options: The options of the request.
        @return: The Status.
        """
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = self._pods.attributes("CREATE", scope, name, obj, None, options, "eviction", EVICTION)
        await self._pods.admit(attributes)
        if obj["metadata"].get("name") != name:
            raise APIStatusError.bad_request("name in URL does not match name in Eviction object")
        delete_options = self._delete_options(name, obj, options)
        await self._pods.admission.validate(attributes)
        record = self._pods.existing(scope, name)
        # Admission ran for the eviction.
        scope = scope.without_admission()
        pod = orjson.loads(record.item)
        if self._budgets is not None and not can_ignore_pdb(pod):
            await self._decrement_pdb(self._budgets, scope, pod, delete_options.dry_run)
        # As in the reference, the budget stays decremented if the preconditions fail.
        deletion.check_preconditions(delete_options, pod["metadata"], self._pods.group_kind, name)
        if not delete_options.dry_run:
            await self._add_disruption_target_condition(scope, name)
            # The condition that was just set changed the resourceVersion.
            delete_options.precondition_resource_version = None
        await self._pods.delete(scope, name, delete_options)
        return success(201)

    async def _add_disruption_target_condition(self, scope: RequestScope, name: str) -> None:
        """Set the condition C{DisruptionTarget} of a pod (Go: C{addConditionAndDeletePod})."""

        def with_condition(pod: JSONObject | None) -> JSONObject:
            assert pod is not None, "evictions do not create pods"
            conditions = pod.setdefault("status", {}).setdefault("conditions", [])
            if not any(condition.get("type") == "DisruptionTarget" for condition in conditions):
                conditions.append(
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "EvictionByEvictionAPI",
                        "message": "Eviction API: evicting",
                        "lastProbeTime": None,
                        "lastTransitionTime": times.now(),
                    }
                )
            return pod

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        await self._pods.update(scope, name, with_condition, UpdateOptions(), rules, patching=True)

    def _delete_options(self, name: str, obj: JSONObject, options: CreateOptions) -> DeleteOptions:
        delete_options = obj.get("deleteOptions") or {}
        if delete_options.get(_UNREADABLE):
            text = "can not be set for pod eviction, try after removing the option"
            field_error = invalid(f"deleteOptions.{_UNREADABLE}", True, text)
            raise APIStatusError.invalid(GroupKind(EVICTION.group, EVICTION.kind), name, [field_error])
        dry_run = delete_options.get("dryRun") or []
        if options.dry_run and dry_run and dry_run != ["All"]:
            text = f"Non-matching dry-run options in request and content: [All] and [{' '.join(map(str, dry_run))}]"
            raise APIStatusError.unknown(text)
        try:
            parsed = parse_delete_options_from_body(delete_options)
        except BodyError as error:
            raise APIStatusError.bad_request(str(error)) from None
        parsed.dry_run = parsed.dry_run or options.dry_run
        return parsed

    async def _decrement_pdb(self, budgets: Store, scope: RequestScope, pod: JSONObject, dry_run: bool) -> None:
        labels = pod["metadata"].get("labels") or {}
        matching = []
        for record in budgets.cache.list(f"{scope.namespace}/").records:
            budget = orjson.loads(record.item)
            selector = (budget.get("spec") or {}).get("selector")
            if selector is not None and label_selector_from_object(selector).matches(labels):
                matching.append(record.name)
        if not matching:
            return
        if len(matching) > 1:
            raise APIStatusError(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        pod_name = pod["metadata"]["name"]
        conditions = (pod.get("status") or {}).get("conditions") or ()
        ready = any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)

        def with_decrement(budget: JSONObject | None) -> JSONObject:
            assert budget is not None, "evictions do not create budgets"
            if ready or not can_evict_unhealthy(budget):
                before = orjson.loads(orjson.dumps(budget))
                check_and_decrement(budget, pod_name)
                budgets.update_managed_fields(before, budget, "status", SERVER)
            return budget

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        server = RequestScope(scope.namespace)
        await budgets.update(server, matching[0], with_decrement, UpdateOptions(dry_run=dry_run), rules, patching=True)


def can_ignore_pdb(pod: JSONObject) -> bool:
    """Return whether a pod is terminated, pending or being deleted, so that its eviction disrupts nothing."""
    phase = (pod.get("status") or {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def can_evict_unhealthy(budget: JSONObject) -> bool:
    """Return whether pods that are not ready can be evicted without a decrement of the budget."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(0 < desired <= status.get("currentHealthy", 0))


def check_and_decrement(budget: JSONObject, pod: str) -> None:
    """
    Decrement the allowed disruptions of a budget, in place (Go: C{checkAndDecrement}).

    @raise APIStatusError: No disruption is allowed, or the budget is not up to date (429).
    """
    meta, status = budget["metadata"], budget.setdefault("status", {})
    name = meta["name"]
    refused = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        reason = f"The disruption budget {name} is still being processed by the server."
        raise budget_error(refused, reason, BUDGET_RETRY)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise APIStatusError.forbidden(
            GroupResource("policy", "poddisruptionbudget"), name, "pdb disruptions allowed is negative"
        )
    disrupted = status.setdefault("disruptedPods", {})
    if len(disrupted) > MAX_DISRUPTED_PODS:
        reason = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise APIStatusError.forbidden(GroupResource("policy", "poddisruptionbudget"), name, reason)
    if allowed == 0:
        raise budget_error(refused, _denial_reason(name, status), 0)
    now = times.now()
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _update_disruption_allowed_condition(status, now)
    disrupted[pod] = now


def _denial_reason(name: str, status: JSONObject) -> str:
    """Return the reason why a budget allows no disruption."""
    conditions = status.get("conditions") or ()
    condition: JSONObject = next((item for item in conditions if item.get("type") == "DisruptionAllowed"), {})
    text = condition.get("message", "") if condition.get("status") == "False" else ""
    reason = condition.get("reason", "")
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    if text and reason == "SyncFailed":
        # The counts in the status are not reliable.
        return f"{refused} because it failed sync: {text}"
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"{refused} ({reason}): {text}" if text else refused


def _update_disruption_allowed_condition(status: JSONObject, now: str) -> None:
    """Update the condition C{DisruptionAllowed} of a budget, with the time of the change."""
    conditions = status.setdefault("conditions", [])
    condition = next((item for item in conditions if item.get("type") == "DisruptionAllowed"), None)
    if condition is None:
        condition = {"type": "DisruptionAllowed"}
        conditions.append(condition)
    if condition.get("status") != "False":
        condition["lastTransitionTime"] = now
    observed = status.get("observedGeneration", 0)
    condition.update(status="False", reason="InsufficientPods", message="", observedGeneration=observed)


def budget_error(message: str, reason: str, retry: int) -> APIStatusError:
    """
    Return the 429 TooManyRequests for an eviction that the budget does not allow.

    @param message: The message of the Status.
    @param reason: The message of the cause.
    @param retry: Seconds after which the client should retry; 0 for none.
    """
    error = APIStatusError.too_many_requests(message, retry)
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": reason}]}
    if retry:
        error.details["retryAfterSeconds"] = retry
    return error

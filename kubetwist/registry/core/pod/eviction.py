"""C{pods/eviction}: a deletion that respects disruption budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from zope.interface import implementer

from ....api import times
from ....api.decoding import BodyError
from ....api.errors import APIStatusError, invalid
from ....api.listoptions import delete_options_from_body
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
#: Seconds after which a refused eviction may be tried again, when its budget is not up to date yet.
BUDGET_RETRY = 10
#: So many pods may be on their way out of one budget.
MOST_DISRUPTED = 2000


def success(code: int) -> JSONObject:
    """The Status of an action that worked."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}


@implementer(INamedCreator)
class PodEviction:
    """C{pods/eviction}: a deletion that respects disruption budgets."""

    def __init__(self, pods: Store, budgets: Store | None) -> None:
        self._pods = pods
        self._budgets = budgets
        self.info = pods.info

    async def create_named(self, scope: RequestScope, name: str, obj: JSONObject, options: CreateOptions) -> JSONObject:
        """See L{INamedCreator.create_named}."""
        self._pods.check_namespace(scope, obj["metadata"])
        attributes = self._pods.attributes("CREATE", scope, name, obj, None, options, "eviction", EVICTION)
        await self._pods.admit(attributes)
        if obj["metadata"].get("name") != name:
            raise APIStatusError.bad_request("name in URL does not match name in Eviction object")
        delete_options = self._delete_options(name, obj, options)
        await self._pods.admission.validate(attributes)
        record = self._pods.existing(scope, name)
        # The eviction has been admitted as a whole.
        scope = scope.without_admission()
        pod = orjson.loads(record.item)
        if self._budgets is not None and not can_ignore_pdb(pod):
            await self._decrement_pdb(self._budgets, scope, pod, delete_options.dry_run)
        # What was spent is not given back when the pod turns out to be another one; neither is it in the reference.
        deletion.check_preconditions(delete_options, pod["metadata"], self._pods.group_kind, name)
        if not delete_options.dry_run:
            await self._tell(scope, name)
            # The version that the client knew is not the newest any more, by our own doing.
            delete_options.precondition_resource_version = None
        await self._pods.delete(scope, name, delete_options)
        return success(201)

    async def _tell(self, scope: RequestScope, name: str) -> None:
        """Have the pod's status say why the pod ends."""

        def with_condition(pod: JSONObject | None) -> JSONObject:
            assert pod is not None, "evictions make no pods"
            conditions = pod.setdefault("status", {}).setdefault("conditions", [])
            if not any(one.get("type") == "DisruptionTarget" for one in conditions):
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
        said = obj.get("deleteOptions") or {}
        if said.get(_UNREADABLE):
            text = "can not be set for pod eviction, try after removing the option"
            field_error = invalid(f"deleteOptions.{_UNREADABLE}", True, text)
            raise APIStatusError.invalid(GroupKind(EVICTION.group, EVICTION.kind), name, [field_error])
        runs = said.get("dryRun") or []
        if options.dry_run and runs and runs != ["All"]:
            text = f"Non-matching dry-run options in request and content: [All] and [{' '.join(map(str, runs))}]"
            raise APIStatusError.unknown(text)
        try:
            found = delete_options_from_body(said)
        except BodyError as error:
            raise APIStatusError.bad_request(str(error)) from None
        found.dry_run = found.dry_run or options.dry_run
        return found

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
        ready = any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)

        def spent(budget: JSONObject | None) -> JSONObject:
            assert budget is not None, "evictions make no budgets"
            if ready or not spares(budget):
                before = orjson.loads(orjson.dumps(budget))
                spend(budget, pod_name)
                budgets.update_managed_fields(before, budget, "status", SERVER)
            return budget

        rules = UpdateRules("status", lambda obj, old: None, lambda obj, old: ())
        server = RequestScope(scope.namespace)
        await budgets.update(server, matching[0], spent, UpdateOptions(dry_run=dry_run), rules, patching=True)


def can_ignore_pdb(pod: JSONObject) -> bool:
    """Whether the end of a pod disrupts nothing: it has ended, not begun, or is ending."""
    phase = (pod.get("status") or {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def spares(budget: JSONObject) -> bool:
    """Whether a pod that is not ready may go without counting: it adds nothing to what the budget protects."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy", 0)
    return bool(0 < wanted <= status.get("currentHealthy", 0))


def spend(budget: JSONObject, pod: str) -> None:
    """
    Take one disruption from a budget, in place.

    @raise APIStatusError: None is left (429).
    """
    meta, status = budget["metadata"], budget.setdefault("status", {})
    name = meta["name"]
    refused = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        why = f"The disruption budget {name} is still being processed by the server."
        raise budget_error(refused, why, BUDGET_RETRY)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise APIStatusError.forbidden(
            GroupResource("policy", "poddisruptionbudget"), name, "pdb disruptions allowed is negative"
        )
    disrupted = status.setdefault("disruptedPods", {})
    if len(disrupted) > MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise APIStatusError.forbidden(GroupResource("policy", "poddisruptionbudget"), name, why)
    if allowed == 0:
        raise budget_error(refused, _why_not(name, status), 0)
    now = times.now()
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _update_disruption_allowed_condition(status, now)
    disrupted[pod] = now


def _why_not(name: str, status: JSONObject) -> str:
    """Why a budget allows no disruption."""
    conditions = status.get("conditions") or ()
    condition: JSONObject = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), {})
    text = condition.get("message", "") if condition.get("status") == "False" else ""
    reason = condition.get("reason", "")
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    if text and reason == "SyncFailed":
        # Its counts are not reliable then.
        return f"{refused} because it failed sync: {text}"
    wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= wanted:
        return f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    return f"{refused} ({reason}): {text}" if text else refused


def _update_disruption_allowed_condition(status: JSONObject, now: str) -> None:
    """Have the budget's condition say so; its time is that of the change."""
    conditions = status.setdefault("conditions", [])
    condition = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), None)
    if condition is None:
        condition = {"type": "DisruptionAllowed"}
        conditions.append(condition)
    if condition.get("status") != "False":
        condition["lastTransitionTime"] = now
    observed = status.get("observedGeneration", 0)
    condition.update(status="False", reason="InsufficientPods", message="", observedGeneration=observed)


def budget_error(message: str, why: str, retry: int) -> APIStatusError:
    """The 429 of an eviction that has to wait."""
    error = APIStatusError.too_many_requests(message, retry)
    error.details = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry:
        error.details["retryAfterSeconds"] = retry
    return error

"""
Computes the status of PodDisruptionBudgets from the selected pods and the scales of their owners.

@see: kubernetes, C{pkg/controller/disruption/disruption.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from ..api.jsontypes import JSONValue
from ..api.record import Record
from ..api.resource import GroupVersionKind, JSONObject
from ..api.selectors import label_selector_from_object
from ..api.times import format_time, seconds_since_epoch
from ..registry.customresources.store import CustomStore
from ..registry.generic.resourceinfo import ResourceInfo
from ..registry.generic.store import Store
from ..registry.stores import decoded_object
from ..storage.cache.window import DELETED
from .machinery.controller import Controller
from .machinery.events import NORMAL, WARNING
from .machinery.metadata import controller_of
from .workloads.pods import condition_of, is_ready, phase_of
from .workloads.rollout import scaled_value

#: Seconds in which a pod whose eviction was allowed is expected to be deleted.
DELETION_TIMEOUT: Final = 120.0
#: Seconds until the condition DisruptionTarget of a pod that was not deleted is reset.
STALE_POD_DISRUPTION_TIMEOUT: Final = 120.0
_GROUP: Final = "policy"
_BUDGETS: Final = "poddisruptionbudgets"
_KIND: Final = GroupVersionKind(_GROUP, "v1", "PodDisruptionBudget")
_POD: Final = GroupVersionKind("", "v1", "Pod")
_TARGET: Final = "DisruptionTarget"
_YIELD_EVERY: Final = 200


class Key(NamedTuple):
    """
    The key of a pod or a budget.

    @ivar resource: C{pods} or C{poddisruptionbudgets}.
    """

    resource: str
    namespace: str
    name: str


class ExpectedCountError(Exception):
    """The expected number of pods cannot be computed. The message is kube-controller-manager's."""


class DisruptionController(Controller[Key]):
    """Updates the status of budgets. Keys are budgets, and pods with the condition DisruptionTarget."""

    name: ClassVar[str] = "disruption-controller"

    def register_handlers(self) -> None:
        """Register handlers for budgets and pods. The scales of owners are read in each sync."""
        self._recorder = self.context.recorder("controllermanager")
        self._budgets = self.watch(_GROUP, _BUDGETS, self._budget_changed)
        self._by_namespace = self._budgets.index("namespace", _namespace)
        self._pods = self.watch("", "pods", self._pod_changed)

    def _budget_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        self.queue.add(Key(_BUDGETS, record.namespace, record.name))

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED and b'"DisruptionTarget"' in record.item:
            self.queue.add(Key("pods", record.namespace, record.name))
        budgets = self._by_namespace.get(record.namespace)
        if not budgets:
            return
        labels = [record.labels]
        if old is not None and old.labels != record.labels:
            labels.append(old.labels)
        elif (
            old is not None
            and event_type != DELETED
            and _status_inputs(decoded_object(old)) == _status_inputs(decoded_object(record))
        ):
            return
        matching = [one for one in budgets if any(_selects(decoded_object(one), each) for each in labels)]
        for budget in matching:
            self.queue.add(Key(_BUDGETS, budget.namespace, budget.name))
        if len(matching) > 1 and event_type != DELETED:
            pod, first = f'"{record.namespace}"/"{record.name}"', min(one.name for one in matching)
            message = f'Pod {pod} matches multiple PodDisruptionBudgets.  Chose "{first}" arbitrarily.'
            self._recorder.event(_POD, decoded_object(record), WARNING, "MultiplePodDisruptionBudgets", message)

    async def sync(self, key: Key) -> None:
        """See L{Controller.sync}."""
        if key.resource == "pods":
            await self._sync_stale_pod_disruption(key)
            return
        record = self._budgets.get(key.namespace, key.name)
        if record is None:
            return
        budget = decoded_object(record)
        pods = await self._pods_of(key.namespace, budget)
        if not pods:
            self._recorder.event(_KIND, budget, NORMAL, "NoPods", "No matching pods found")
        try:
            expected, desired, unmanaged = await self._expected_pod_count(budget, pods)
        except ExpectedCountError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(_KIND, budget, WARNING, "CalculateExpectedPodCountFailed", message)
            await self._write(record, {"disruptionsAllowed": 0}, "SyncFailed", str(error))
            return
        if unmanaged:
            self._recorder.event(_KIND, budget, WARNING, "UnmanagedPods", _unmanaged_message(budget))
        now = self.clock.seconds()
        disrupted, next_check = self._build_disrupted_pods(budget, pods, now)
        healthy = sum(
            "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted and is_ready(pod)
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "disruptedPods": disrupted,
            "observedGeneration": budget["metadata"].get("generation") or 0,
        }
        await self._write(record, status, "SufficientPods" if allowed else "InsufficientPods", "")
        if next_check is not None:
            self.queue.add_after(key, next_check)

    async def _pods_of(self, namespace: str, budget: JSONObject) -> list[JSONObject]:
        selector = budget["spec"].get("selector")
        if selector is None:
            return []
        matcher = label_selector_from_object(selector)
        pods = []
        for number, record in enumerate(self._pods.list(namespace), 1):
            if matcher.matches(record.labels):
                pods.append(decoded_object(record))
            if number % _YIELD_EVERY == 0:
                await self.yield_to_reactor()
        return pods

    # --- expected number of pods

    async def _expected_pod_count(self, budget: JSONObject, pods: Sequence[JSONObject]) -> tuple[int, int, bool]:
        """
        Return the expected number of pods, the desired number of healthy pods, and whether some pods have no
        controller.

        @raise ExpectedCountError: The scale of an owner is unknown.
        """
        spec = budget["spec"]
        max_unavailable, min_available = spec.get("maxUnavailable"), spec.get("minAvailable")
        if max_unavailable is not None:
            expected, unmanaged = await self._scale_of_owners(pods)
            return expected, max(0, expected - scaled_value(max_unavailable, expected, True)), unmanaged
        if isinstance(min_available, str):
            expected, unmanaged = await self._scale_of_owners(pods)
            return expected, scaled_value(min_available, expected, True), unmanaged
        if min_available is not None:
            return len(pods), min_available, False
        return 0, 0, False

    async def _scale_of_owners(self, pods: Sequence[JSONObject]) -> tuple[int, bool]:
        scales: dict[str, int] = {}
        seen_uids: set[str] = set()
        unmanaged = False
        for pod in pods:
            meta = pod["metadata"]
            owner = next((one for one in meta.get("ownerReferences") or () if one.get("controller")), None)
            if owner is None:
                unmanaged = True
                continue
            if owner["uid"] in seen_uids:
                continue
            seen_uids.add(owner["uid"])
            scale = await self._scale(owner, meta["namespace"])
            if scale is None:
                raise ExpectedCountError(f'found no controllers for pod "{meta["name"]}"')
            scales[scale[0]] = scale[1]
            await self.yield_to_reactor()
        return sum(scales.values()), unmanaged

    async def _scale(self, reference: JSONObject, namespace: str) -> tuple[str, int] | None:
        """
        Return the uid and the replicas of the top-level controller of a pod, or L{None} if it does not exist.

        @raise ExpectedCountError: Its kind is unknown or has no scale subresource.
        """
        group = reference["apiVersion"].rpartition("/")[0]
        info = self._info(group, reference["kind"])
        if info is None:
            raise ExpectedCountError(
                f'no matches for kind "{reference["kind"]}" in version "{reference["apiVersion"]}"'
            )
        store = await self.context.store(*info.group_resource)
        path = _replicas_path(store)
        record = store.cache.get(f"{namespace}/{reference['name']}" if info.namespaced else reference["name"])
        if record is None or decoded_object(record)["metadata"]["uid"] != reference["uid"]:
            if path is None:
                raise ExpectedCountError(f"{info.group_resource} does not implement the scale subresource")
            return None
        if path is None:
            raise ExpectedCountError(f"{info.group_resource} does not implement the scale subresource")
        controller = controller_of(record)
        if (
            (group, info.kind) == ("apps", "ReplicaSet")
            and controller is not None
            and controller["kind"] == "Deployment"
        ):
            # During a rollout a deployment has several replica sets.
            scale = await self._scale(controller, namespace)
            if scale is not None:
                return scale
        value: Any = decoded_object(record)
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        default = 0 if isinstance(store, CustomStore) else 1
        return reference["uid"], default if value is None else int(value)

    def _info(self, group: str, kind: str) -> ResourceInfo | None:
        for info in self.context.resources():
            if info.kind == kind and info.group == group:
                return info
        return None

    # --- disrupted pods

    def _build_disrupted_pods(
        self, budget: JSONObject, pods: Sequence[JSONObject], now: float
    ) -> tuple[dict[str, str], float | None]:
        """
        Return the pods whose eviction was allowed and that are not deleted yet, and the seconds until the next check.
        """
        disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
        meta = budget["metadata"]
        remaining: dict[str, str] = {}
        next_check = None
        for pod in pods if disrupted else ():
            name = pod["metadata"]["name"]
            since = disrupted.get(name)
            if since is None or "deletionTimestamp" in pod["metadata"]:
                continue
            wait = seconds_since_epoch(since) + DELETION_TIMEOUT - now
            if wait <= 0:
                message = f"Pod was expected by PDB {meta['namespace']}/{meta['name']} to be deleted but it wasn't"
                self._recorder.event(_POD, pod, WARNING, "NotDeleted", message)
                continue
            remaining[name] = since
            next_check = wait if next_check is None else min(wait, next_check)
        return remaining, next_check

    async def _write(self, record: Record, values: JSONObject, reason: str, message: str) -> None:
        """Update the status of a budget if it has not changed since, because evictions write it too."""

        def change(budget: JSONObject) -> None:
            status = budget.setdefault("status", {})
            status.update(values)
            if not status.get("disruptedPods"):
                status.pop("disruptedPods", None)
            conditions = status.setdefault("conditions", [])
            condition = next((one for one in conditions if one.get("type") == "DisruptionAllowed"), None)
            if condition is None:
                condition = {"type": "DisruptionAllowed"}
                conditions.append(condition)
            condition_status = "True" if reason == "SufficientPods" else "False"
            if condition.get("status") != condition_status:
                condition["lastTransitionTime"] = format_time(self.clock.seconds())
            observed = status.get("observedGeneration") or 0
            condition.update(status=condition_status, reason=reason, message=message, observedGeneration=observed)

        await self.client.update_status(
            _GROUP, _BUDGETS, record.namespace, record.name, change, revision=record.revision
        )

    # --- stale DisruptionTarget conditions

    async def _sync_stale_pod_disruption(self, key: Key) -> None:
        """Reset the condition DisruptionTarget of a pod that was not deleted within the timeout."""
        pod = self._pods.get_decoded(key.namespace, key.name)
        if pod is None or "deletionTimestamp" in pod["metadata"] or phase_of(pod) in ("Succeeded", "Failed"):
            return
        condition = condition_of(pod, _TARGET)
        if condition is None or condition.get("status") != "True":
            return
        if condition.get("reason") == "TerminationByKubelet":
            return
        since = condition.get("lastTransitionTime")
        wait = 0.0 if not since else seconds_since_epoch(since) + STALE_POD_DISRUPTION_TIMEOUT - self.clock.seconds()
        if wait > 0:
            self.queue.add_after(key, wait)
            return

        def change(new: JSONObject) -> None:
            for one in new["status"]["conditions"]:
                if one.get("type") == _TARGET and one.get("status") == "True":
                    one.clear()
                    now = format_time(self.clock.seconds())
                    one.update(type=_TARGET, status="False", lastTransitionTime=now)

        await self.client.update_status("", "pods", key.namespace, key.name, change, uid=pod["metadata"]["uid"])


def _namespace(record: Record) -> tuple[str]:
    return (record.namespace,)


def _selects(budget: JSONObject, labels: Mapping[str, str]) -> bool:
    selector = budget["spec"].get("selector")
    return selector is not None and label_selector_from_object(selector).matches(labels)


def _status_inputs(pod: JSONObject) -> tuple[bool, bool, JSONValue]:
    """Return the fields of a pod that the status of a budget depends on."""
    meta = pod["metadata"]
    return is_ready(pod), "deletionTimestamp" in meta, meta.get("ownerReferences")


def _replicas_path(store: Store) -> Sequence[str] | None:
    """Return the path of the replicas in objects of a store, or L{None} if there is no scale subresource."""
    if isinstance(store, CustomStore):
        definition = store.served.definition
        scale = definition.version(definition.storage_version).scale
        return None if scale is None else scale["specReplicasPath"].lstrip(".").split(".")
    return None if store.info.subresource("scale") is None else ("spec", "replicas")


def _unmanaged_message(budget: JSONObject) -> str:
    """Return the message of the event UnmanagedPods. The selector is formatted as Go prints it."""
    selector = budget["spec"].get("selector") or {}
    labels = "".join(f"{name}: {value}," for name, value in sorted((selector.get("matchLabels") or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key')},Operator:{one.get('operator')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    selector_text = (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {selector_text}) were found to be unmanaged. As a "
        "result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To "
        'account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )

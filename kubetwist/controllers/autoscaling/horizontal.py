"""
The HorizontalPodAutoscaler controller: scales a workload by the metrics of its pods and of other objects.

@see: kubernetes, C{pkg/controller/podautoscaler/horizontal.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from attrs import frozen

from ...api.errors import APIStatusError
from ...api.frozen import mutable_copy
from ...api.quantity import Quantity
from ...api.record import Record
from ...api.resource import GroupVersionKind, JSONObject
from ...api.selectors import LabelSelector, SelectorError, parse_label_selector
from ...api.times import format_time
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..fakekubelet.setmetrics import SetMetrics
from ..fakekubelet.usage import simulated_usage
from ..machinery.context import ControllerContext
from ..machinery.controller import Controller
from ..machinery.events import NORMAL, WARNING
from .limits import ScalingHistory
from .metricproposals import MetricError, MetricEvaluator
from .metricsclient import IMetrics, MetricsClient
from .replicas import Target
from .samples import DEFAULT_TOLERANCE, MetricsError, Tolerances
from .scaletargets import NoScale, ScaleTarget, ScaleTargets

#: Seconds between two syncs of an autoscaler.
SYNC_PERIOD: Final = 15.0
_KIND: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
_GROUP: Final = "autoscaling"
_RESOURCE: Final = "horizontalpodautoscalers"

_ABLE: Final = "AbleToScale"
_ACTIVE: Final = "ScalingActive"
_LIMITED: Final = "ScalingLimited"


class HorizontalController(Controller[str]):
    """Scales workloads. The queue contains keys of autoscalers, each of which is synced every 15 seconds."""

    name: ClassVar[str] = "horizontal-pod-autoscaler-controller"
    service_account: ClassVar[str] = "horizontal-pod-autoscaler"
    workers: ClassVar[int] = 5

    def __init__(self, context: ControllerContext, metrics: IMetrics | None = None) -> None:
        """@param metrics: Reads the metrics; L{None} for the APIs of metrics."""
        super().__init__(context)
        usage = simulated_usage(context)
        local = None if usage is None else usage.pods
        set_metrics = None if usage is None else SetMetrics(context.stores, context.clock)
        self.metrics = metrics or MetricsClient(self.client.user, context.aggregation, local, set_metrics)
        self.targets = ScaleTargets(context, self.client.user)
        features = context.registry.environment.features
        self.configurable_tolerance = features.enabled("HPAConfigurableTolerance")
        self._histories: dict[str, ScalingHistory] = {}
        #: The selectors of the targets, by key of the autoscaler.
        self._selectors: dict[str, tuple[str, LabelSelector]] = {}

    def register_handlers(self) -> None:
        """Register handlers for autoscalers and pods."""
        self._autoscalers = self.watch(_GROUP, _RESOURCE, self._changed)
        self._pods = self.watch("", "pods", _ignore)
        self.recorder = self.context.recorder("horizontal-pod-autoscaler")

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            self._forget(record.key)
        else:
            self.queue.add_after(record.key, SYNC_PERIOD)

    def _forget(self, key: str) -> None:
        self._histories.pop(key, None)
        self._selectors.pop(key, None)

    async def _work(self, key: str) -> None:
        # Failures are retried at the next period, not with backoff: most of them last longer than that.
        try:
            await self.sync(key)
        except (APIStatusError, MetricsError) as error:
            # The object has an event and a condition.
            self._log.debug("autoscaling failed: key={key} error={error}", key=key, error=error)
        except Exception as error:
            self.report_failure(key, error)
        if self._autoscalers.by_key(key) is not None:
            self.queue.add_after(key, SYNC_PERIOD)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self._autoscalers.by_key(key)
        if record is None:
            self._forget(key)
            return
        history = self._histories.setdefault(key, ScalingHistory())
        await _Reconciliation(self, key, decoded_object(record), history).run()

    # --- for the reconciliation of one autoscaler

    def event(self, obj: JSONObject, kind: str, reason: str, message: str) -> None:
        """
        Record an event about an autoscaler.

        @param obj: The autoscaler.
        @param kind: The type: C{NORMAL} or C{WARNING}.
        @param reason: The reason in CamelCase.
        @param message: The message.
        """
        self.recorder.event(_KIND, obj, kind, reason, message)

    def pods(self, namespace: str, selector: LabelSelector) -> list[JSONObject]:
        """Return the pods that a selector matches. They are frozen."""
        return [decoded_object(record) for record in self._pods.list(namespace) if selector.matches(record.labels)]

    def other_autoscalers(self, key: str, namespace: str, selector: LabelSelector) -> list[str]:
        """
        Note the selector of an autoscaler's target; return the keys of all autoscalers of the same pods.

        @param key: The key of the autoscaler.
        @param namespace: Its namespace.
        @param selector: The selector of its target.
        @return: The keys, with C{key}; only this key if there are no further ones.
        """
        self._selectors[key] = namespace, selector
        rivals = {other: one for other, (space, one) in self._selectors.items() if space == namespace and other != key}
        if not rivals:
            return [key]
        labels = [record.labels for record in self._pods.list(namespace) if selector.matches(record.labels)]
        return sorted((key, *(other for other, one in rivals.items() if any(map(one.matches, labels)))))

    async def write_status(self, obj: JSONObject, status: JSONObject) -> None:
        """
        Write the status of an autoscaler.

        @raise APIStatusError: The write is refused, or the autoscaler was replaced.
        """
        meta = obj["metadata"]

        def change(stored: JSONObject) -> None:
            stored["status"] = mutable_copy(status)

        await self.client.update_status(_GROUP, _RESOURCE, meta["namespace"], meta["name"], change, uid=meta["uid"])


def _ignore(event_type: str, record: Record, old: Record | None) -> None:
    """Only the informer's objects are needed."""


@frozen
class _Decision:
    """
    The replicas to which a target is scaled.

    @ivar replicas: The number.
    @ivar reason: Why it changes, for the event.
    """

    replicas: int
    reason: str = ""


class _Reconciliation:
    """One sync of an autoscaler."""

    def __init__(self, controller: HorizontalController, key: str, obj: JSONObject, history: ScalingHistory) -> None:
        self._controller = controller
        self._key = key
        self._obj = obj
        self._spec: JSONObject = obj["spec"]
        self._namespace: str = obj["metadata"]["namespace"]
        self._old_status: JSONObject = obj.get("status") or {}
        self._conditions: list[JSONObject] = [
            dict(mutable_copy(one)) for one in self._old_status.get("conditions") or ()
        ]
        self._history = history
        self._now = controller.clock.seconds()
        self._statuses: list[JSONObject] | None = None
        #: The first error of a metric, if further metrics are usable.
        self._error: MetricsError | None = None

    async def run(self) -> None:
        target = await self._find_target()
        current = target.replicas
        self._set(_ABLE, True, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
        self._history.begin(current, self._now)
        try:
            decision = await self._decide(target)
        except MetricsError as error:
            await self._write(current, self._old_status.get("desiredReplicas") or 0)
            self._event(WARNING, "FailedComputeMetricsReplicas", str(error))
            raise
        if decision.replicas != current:
            await self._rescale(target, decision)
        await self._write(current, decision.replicas, rescaled=decision.replicas != current)
        if self._error is not None:
            raise self._error

    async def _find_target(self) -> ScaleTarget:
        reference = self._spec["scaleTargetRef"]
        try:
            return await self._controller.targets.get(self._namespace, reference)
        except (NoScale, APIStatusError) as error:
            message = str(error)
            self._event(WARNING, "FailedGetScale", message)
            text = f"the HPA controller was unable to get the target's current scale: {message}"
            self._set(_ABLE, False, "FailedGetScale", text)
            await self._write_status(self._old_status)
            described = f"{reference['kind']}/{self._namespace}/{reference['name']}"
            raise MetricsError(f"failed to query scale subresource for {described}: {message}") from error

    async def _decide(self, target: ScaleTarget) -> _Decision:
        """
        Return the replicas to which the target is scaled.

        @raise MetricsError: The metrics do not determine a number.
        """
        current, spec = target.replicas, self._spec
        minimum = spec.get("minReplicas")
        bounds = 1 if minimum is None else minimum, spec["maxReplicas"]
        if not current and bounds[0]:
            text = "scaling is disabled since the replica count of the target is zero"
            self._set(_ACTIVE, False, "ScalingDisabled", text)
            return _Decision(0)
        if current > bounds[1]:
            return _Decision(bounds[1], "Current number of replicas above Spec.MaxReplicas")
        if current < bounds[0]:
            return _Decision(bounds[0], "Current number of replicas below Spec.MinReplicas")
        desired, metric = await self._desired_by_metrics(target)
        reason = ""
        if desired > current:
            reason = f"{metric} above target"
        elif desired < current:
            reason = "All metrics below target"
        limited = self._history.limit(spec.get("behavior"), current, desired, bounds, self._now)
        self._set(_ABLE, True, *limited.able)
        self._set(_LIMITED, limited.limited, *limited.limit)
        return _Decision(limited.replicas, reason)

    async def _desired_by_metrics(self, target: ScaleTarget) -> tuple[int, str]:
        """
        Return the highest number of replicas that a metric demands, and the name of the metric.

        @raise MetricsError: No metric is usable, or the usable ones demand fewer replicas than there are.
        """
        selector = self._selector(target)
        pods = self._controller.pods(self._namespace, selector)
        evaluator = MetricEvaluator(
            self._controller.metrics,
            Target(target.replicas, pods, self._tolerances(), self._now),
            target.current,
            self._namespace,
            selector,
            self._controller.targets,
        )
        metrics: Sequence[JSONObject] = self._spec.get("metrics") or ()
        self._statuses = statuses = []
        replicas, name = 0, ""
        errors: list[MetricError] = []
        for metric in metrics:
            try:
                proposed = await evaluator.evaluate(metric)
            except MetricError as error:
                self._event(WARNING, error.reason, error.message)
                errors.append(error)
                statuses.append({"type": ""})
                continue
            statuses.append(proposed.status)
            if not replicas or proposed.replicas > replicas:
                replicas, name = proposed.replicas, proposed.name
        failure = None
        if errors:
            text = f"invalid metrics ({len(errors)} invalid out of {len(metrics)}), first error is: {errors[0]}"
            failure = MetricsError(text)
        if failure is not None and (len(errors) >= len(metrics) or replicas < target.replicas):
            first = errors[0]
            self._set(_ACTIVE, False, first.reason, f"the HPA was unable to compute the replica count: {first.message}")
            raise failure
        text = f"the HPA was able to successfully calculate a replica count from {name}"
        self._set(_ACTIVE, True, "ValidMetricFound", text)
        self._error = failure
        return replicas, name

    def _selector(self, target: ScaleTarget) -> LabelSelector:
        """
        Return the selector of the target's pods.

        @raise MetricsError: There is none, or other autoscalers scale the same pods.
        """
        if not target.selector:
            self._event(WARNING, "SelectorRequired", "selector is required")
            self._set(_ACTIVE, False, "InvalidSelector", "the HPA target's scale is missing a selector")
            raise MetricsError("selector is required")
        try:
            selector = parse_label_selector(target.selector)
        except SelectorError as error:
            text = f"couldn't convert selector into a corresponding internal selector object: {error}"
            raise self._bad_selector("InvalidSelector", text) from error
        rivals = self._controller.other_autoscalers(self._key, self._namespace, selector)
        if len(rivals) > 1:
            names = " ".join(f"{{{key.partition('/')[2]} {key.partition('/')[0]}}}" for key in rivals)
            text = f"pods by selector {target.selector} are controlled by multiple HPAs: [{names}]"
            raise self._bad_selector("AmbiguousSelector", text)
        return selector

    def _bad_selector(self, reason: str, text: str) -> MetricsError:
        self._event(WARNING, reason, text)
        self._set(_ACTIVE, False, reason, text)
        return MetricsError(text)

    def _tolerances(self) -> Tolerances:
        behavior = self._spec.get("behavior") or {}
        if not self._controller.configurable_tolerance:
            return Tolerances()

        def tolerance(name: str) -> float:
            value = (behavior.get(name) or {}).get("tolerance")
            return DEFAULT_TOLERANCE if value is None else float(Quantity.parse(value).value)

        return Tolerances(tolerance("scaleDown"), tolerance("scaleUp"))

    # --- writes

    async def _rescale(self, target: ScaleTarget, decision: _Decision) -> None:
        replicas = decision.replicas
        try:
            await self._controller.targets.update(target, replicas)
        except APIStatusError as error:
            message = f"New size: {replicas}; reason: {decision.reason}; error: {error}"
            self._event(WARNING, "FailedRescale", message)
            text = f"the HPA controller was unable to update the target scale: {error}"
            self._set(_ABLE, False, "FailedUpdateScale", text)
            await self._write(target.replicas, self._old_status.get("desiredReplicas") or 0)
            raise
        text = f"the HPA controller was able to update the target scale to {replicas}"
        self._set(_ABLE, True, "SucceededRescale", text)
        self._event(NORMAL, "SuccessfulRescale", f"New size: {replicas}; reason: {decision.reason}")
        self._history.record_change(self._spec.get("behavior"), target.replicas, replicas, self._now)

    def _event(self, kind: str, reason: str, message: str) -> None:
        self._controller.event(self._obj, kind, reason, message)

    def _set(self, kind: str, holds: bool, reason: str, message: str) -> None:
        """Set a condition."""
        status = "True" if holds else "False"
        condition = next((one for one in self._conditions if one["type"] == kind), None)
        if condition is None:
            condition = {"type": kind}
            self._conditions.append(condition)
        if condition.get("status") != status:
            condition.update(status=status, lastTransitionTime=format_time(self._now))
        condition.update(reason=reason, message=message)

    async def _write(self, current: int, desired: int, *, rescaled: bool = False) -> None:
        status: JSONObject = {"currentReplicas": current, "desiredReplicas": desired}
        if self._statuses is not None:
            status["currentMetrics"] = self._statuses
        if rescaled:
            status["lastScaleTime"] = format_time(self._now)
        elif self._old_status.get("lastScaleTime"):
            status["lastScaleTime"] = self._old_status["lastScaleTime"]
        if self._obj["metadata"].get("generation"):
            status["observedGeneration"] = self._obj["metadata"]["generation"]
        await self._write_status(status)

    async def _write_status(self, status: JSONObject) -> None:
        status = {"currentMetrics": None, **status, "conditions": self._conditions}
        if status == self._old_status:
            return
        try:
            await self._controller.write_status(self._obj, status)
        except APIStatusError as error:
            self._event(WARNING, "FailedUpdateStatus", str(error))
            raise

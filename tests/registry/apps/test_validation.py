"""Tests for the validation of workloads, autoscalers and disruption budgets."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.warnings import APP_ARMOR
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, change_problems, copy, made, problems

LABELS = {"app": "a"}
SELECTOR = {"matchLabels": LABELS}
UNMATCHED = 'Invalid value: {"app":"a"}: `selector` does not match template `labels`'
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def workload(**spec: Any) -> dict[str, Any]:
    """Return the spec of a workload."""
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    return {"selector": SELECTOR, "template": template, **spec}


def status_problems(group: str, kind: str, old: Any, new: Any, **parts: Any) -> list[str]:
    """Return the errors of a status update."""
    before = {**made(group, kind, **parts), "status": old}
    after = {**copy(before), "status": new}
    strategy = strategy_for(group, kind)
    strategy.prepare_for_status_update(after, before)
    return [str(cause) for cause in strategy.validate_status_update(after, before)]


class WorkloadTests(SynchronousTestCase):
    """Tests for the validation of workloads."""

    def test_strategies_shown(self) -> None:
        """An unknown strategy is shown as its Go struct."""
        odd = {"type": "Odd", "rollingUpdate": {"maxSurge": "5%"}}
        shown = '{"Type":"Odd","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":"5%"}}'
        self.assertEqual(
            problems("apps", "Deployment", spec=workload(strategy=odd)),
            [f'spec.strategy: Unsupported value: {shown}: supported values: "Recreate", "RollingUpdate"'],
        )
        self.assertEqual(
            problems("apps", "DaemonSet", spec=workload(updateStrategy=odd)),
            [f'spec.updateStrategy: Unsupported value: {shown}: supported values: "RollingUpdate", "OnDelete"'],
        )
        self.assertEqual(
            problems("apps", "StatefulSet", spec=workload(updateStrategy={"type": "Odd", "rollingUpdate": {}})),
            [
                'spec.updateStrategy: Invalid value: {"Type":"Odd","RollingUpdate":{"Partition":0,"MaxUnavailable":'
                "null}}: must be 'RollingUpdate' or 'OnDelete'"
            ],
        )

    def test_errors_of_updates(self) -> None:
        """Each error of an update is reported once."""
        old, new = {"spec": workload()}, {"spec": workload(minReadySeconds=-1)}
        text = "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"
        for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"):
            self.assertEqual(change_problems("apps", kind, old, new), [text], kind)
        spec = {"selector": LABELS, "template": workload()["template"]}
        bad = {**spec, "minReadySeconds": -1, "selector": {"app": "b"}}
        self.assertEqual(
            change_problems("", "ReplicationController", {"spec": spec}, {"spec": bad}),
            [text, f"spec.template.metadata.labels: {UNMATCHED}"],
        )

    def test_selectors_that_change(self) -> None:
        """The immutable selector is reported last, but first for DaemonSets."""
        old, new = {"spec": workload()}, {"spec": workload(selector={"matchLabels": {"app": "x y"}})}
        shown = 'spec.selector: Invalid value: {"matchLabels":{"app":"x y"}}: '
        for kind in ("Deployment", "ReplicaSet", "DaemonSet"):
            errors = change_problems("apps", kind, old, new)
            place = 0 if kind == "DaemonSet" else -1
            self.assertEqual(errors[place], f"{shown}field is immutable", kind)
            self.assertEqual(sum("a valid label must be" in text for text in errors), 1, kind)

    def test_counts_in_texts(self) -> None:
        """A count in a string is invalid, but counts as set."""
        rolling = {"maxSurge": "1", "maxUnavailable": 1}
        errors = problems("apps", "DaemonSet", spec=workload(updateStrategy={"rollingUpdate": rolling}))
        self.assertEqual(
            errors[1:],
            [
                'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "1": '
                "may not be set when maxUnavailable is non-zero"
            ],
        )

    def test_profiles_of_templates(self) -> None:
        """Profile annotations of a template are validated, and must equal its fields."""
        annotations = {f"{APP_ARMOR}c": "unconfined", f"{APP_ARMOR}other": "odd"}
        container = {**CONTAINER, "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}
        template = {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": {"containers": [container]}}
        path = f"spec.template.annotations[{APP_ARMOR}other]: Invalid value"
        self.assertEqual(
            problems("apps", "Deployment", spec=workload(template=template)),
            [
                f'{path}: "other": container not found',
                f'{path}: "odd": invalid AppArmor profile name: "odd"',
                "spec.template.spec.containers[0].securityContext.appArmorProfile.type: "
                "Forbidden: apparmor type in annotation and field must match",
            ],
        )

    def test_revisions(self) -> None:
        """The data of a revision is immutable, and is not validated again."""
        old = {"data": {"a": 1}, "revision": 1}
        self.assertEqual(
            change_problems("apps", "ControllerRevision", old, {"revision": -1}),
            [
                "revision: Invalid value: -1: must be greater than or equal to 0",
                "data: Invalid value: null: field is immutable",
            ],
        )

    def test_retyped_revisions(self) -> None:
        """The data of a revision is untyped: true in place of 1 is a change."""
        old = {"data": {"a": 1, "b": [0]}, "revision": 1}
        for data in ({"a": True, "b": [0]}, {"a": 1, "b": [False]}, {"a": 1.0, "b": [0]}):
            (problem,) = change_problems("apps", "ControllerRevision", old, {"data": data, "revision": 1})
            self.assertTrue(problem.endswith("field is immutable"), problem)
        self.assertEqual(change_problems("apps", "ControllerRevision", old, {**old, "revision": 2}), [])

    def test_unused_rolling_update(self) -> None:
        """The rolling update of a DaemonSet is validated even if its strategy does not use it."""
        strategy = {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": "10%"}}
        spec = made("apps", "DaemonSet", spec=workload(updateStrategy=strategy))["spec"]
        self.assertEqual(spec["updateStrategy"]["rollingUpdate"], {"maxUnavailable": "10%", "maxSurge": 0})

    def test_daemon_set_without_selector(self) -> None:
        """The missing selector of a DaemonSet matches nothing; an invalid one is not evaluated."""
        text = f"spec.template.metadata.labels: {UNMATCHED}"
        self.assertEqual(problems("apps", "DaemonSet", spec=workload(selector=None)), [text])
        odd = {"matchExpressions": [{"key": "x", "operator": "Near"}]}
        self.assertEqual(
            problems("apps", "DaemonSet", spec=workload(selector=odd)),
            ['spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
        )

    def test_collisions(self) -> None:
        """The collision count does not decrease."""
        for kind in ("Deployment", "DaemonSet", "StatefulSet"):
            for new, shown in (({}, 0), ({"collisionCount": 1}, 1)):
                errors = status_problems("apps", kind, {"collisionCount": 2}, new, spec=workload())
                text = f"status.collisionCount: Invalid value: {shown}: cannot be decremented"
                self.assertEqual(errors, [text], kind)

    def test_unavailable(self) -> None:
        """An absent count is zero."""
        for kind in ("Deployment", "ReplicaSet"):
            errors = status_problems("apps", kind, {}, {"replicas": 0, "readyReplicas": -1}, spec=workload())
            self.assertEqual(
                errors[1:], ["status.availableReplicas: Invalid value: 0: cannot be greater than readyReplicas"], kind
            )

    def test_order_of_controllers(self) -> None:
        """Errors of a ReplicationController's replicas come between errors of selector and template."""
        errors = problems("", "ReplicationController", spec={"replicas": -1, "minReadySeconds": -1})
        self.assertEqual(
            [text.partition(": ")[0] for text in errors],
            ["spec.minReadySeconds", "spec.selector", "spec.replicas", "spec.template"],
        )

    def test_terminating_replicas(self) -> None:
        """Terminating replicas are validated."""
        self.assertEqual(
            status_problems("apps", "ReplicaSet", {}, {"replicas": 0, "terminatingReplicas": -1}, spec=workload()),
            ["status.terminatingReplicas: Invalid value: -1: must be greater than or equal to 0"],
        )

    def test_annotations_of_templates(self) -> None:
        """The total size of template annotations is limited."""
        template = {**workload()["template"], "metadata": {"labels": LABELS, "annotations": {"a": "x" * 256 * 1024}}}
        self.assertEqual(
            problems("apps", "Deployment", spec=workload(template=template)),
            ["spec.template.annotations: Too long: may not be more than 262144 bytes"],
        )

    def stateful(self, template: dict[str, Any], **spec: Any) -> dict[str, Any]:
        """Return a StatefulSet with this pod template."""
        pod = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **template}}
        return {"spec": workload(template=pod, **spec)}

    def test_pods_of_stateful_sets(self) -> None:
        """The pods are validated with volumes for the claims before the volumes of the template."""
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("data", "own", "missing")]
        pod = {
            "containers": [{**CONTAINER, "volumeMounts": mounts}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "own", "emptyDir": {}}, {"name": "Bad"}],
        }
        self.assertEqual(
            problems("apps", "StatefulSet", **self.stateful(pod, volumeClaimTemplates=[claim])),
            [
                f'spec.template.spec.volumes[2].name: Invalid value: "Bad": {LABEL_RULE}',
                'spec.template.spec.containers[0].volumeMounts[2].name: Not found: "missing"',
            ],
        )

    def test_defaults_of_templates(self) -> None:
        """Pods, not templates, get host ports for the host network; a claim in a template has no second source."""
        pod = {"hostNetwork": True, "containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]}
        source = {"kind": "PersistentVolumeClaim", "name": "c"}
        claim = {"metadata": {"name": "data"}, "spec": {"dataSource": source}}
        spec = made("apps", "StatefulSet", **self.stateful(pod, volumeClaimTemplates=[copy(claim)]))["spec"]
        self.assertEqual(spec["template"]["spec"]["containers"][0]["ports"], [{"containerPort": 80, "protocol": "TCP"}])
        self.assertNotIn("dataSourceRef", spec["volumeClaimTemplates"][0]["spec"])
        volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"dataSource": source}}}}
        spec = made("", "Pod", spec={**copy(pod), "volumes": [volume]})["spec"]
        self.assertEqual(spec["containers"][0]["ports"][0]["hostPort"], 80)
        self.assertNotIn("dataSourceRef", spec["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"])

    def test_metadata_of_pods_of_stateful_sets(self) -> None:
        """Labels of pods are validated twice; generated hostnames are not."""
        new = self.stateful({"hostname": "Bad", "subdomain": "Bad"})
        new["spec"]["template"]["metadata"]["labels"] = {**LABELS, "x": "-"}
        errors = problems("apps", "StatefulSet", **new)
        self.assertEqual([text.partition(": ")[0] for text in errors], ["spec.template.labels"] * 2)

    def test_claims_of_stateful_sets(self) -> None:
        """Claims are validated on create, but not on update."""
        claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
        new = self.stateful({}, volumeClaimTemplates=claims, serviceName="Bad")
        self.assertEqual(
            problems("apps", "StatefulSet", **new),
            [
                "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
                f'spec.serviceName: Invalid value: "Bad": {LABEL_RULE}',
            ],
        )
        self.assertEqual(change_problems("apps", "StatefulSet", new, new), [])

    def test_stored_pods_of_stateful_sets(self) -> None:
        """An invalid template may stay invalid; a valid one may not become invalid."""
        good, bad = self.stateful({}), self.stateful({"containers": [{"name": "c"}]})
        text = "spec.template.spec.containers[0].image: Required value"
        self.assertEqual(change_problems("apps", "StatefulSet", good, bad), [text])
        self.assertEqual(change_problems("apps", "StatefulSet", bad, bad), [])

    def test_invalid_selector(self) -> None:
        """An invalid selector has an error without details, and the restart policy is validated nevertheless."""
        odd = {"matchExpressions": [{"key": "x", "operator": "Near"}]}
        self.assertEqual(
            problems("apps", "StatefulSet", **self.stateful({"restartPolicy": "Never"}, selector=odd)),
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
                'spec.selector: Invalid value: {"matchExpressions":[{"key":"x","operator":"Near"}]}',
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            ],
        )


class AutoscalerTests(SynchronousTestCase):
    """Tests for the validation of autoscalers."""

    TARGET: ClassVar = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}

    def scaler(self, **spec: Any) -> dict[str, Any]:
        """Return an autoscaler."""
        return {"apiVersion": "autoscaling/v2", "spec": {"maxReplicas": 3, "scaleTargetRef": self.TARGET, **spec}}

    def autoscaler_errors(self, **spec: Any) -> list[str]:
        """Return the errors of an autoscaler."""
        return problems("autoscaling", "HorizontalPodAutoscaler", **self.scaler(**spec))

    def update_errors(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """Return the errors of an update."""
        return change_problems("autoscaling", "HorizontalPodAutoscaler", self.scaler(**old), self.scaler(**new))

    def test_scale_to_zero(self) -> None:
        """An autoscaler that scaled to zero may continue to do so."""
        metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}
        zero = {"minReplicas": 0, "metrics": [metric]}
        self.assertEqual(
            self.autoscaler_errors(**zero), ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]
        )
        self.assertEqual(self.update_errors(zero, zero), [])

    def test_max_replicas(self) -> None:
        """maxReplicas is at least one, and not less than minReplicas."""
        text = "must be greater than or equal to"
        more = f"spec.maxReplicas: Invalid value: {{}}: {text} `minReplicas`"
        self.assertEqual(
            self.autoscaler_errors(maxReplicas=-1), [f"spec.maxReplicas: Invalid value: -1: {text} 1", more.format(-1)]
        )
        needed = "spec.maxReplicas: Required value: must be set and greater than 0"
        self.assertEqual(self.autoscaler_errors(maxReplicas=0), [needed, more.format(0)])

    def test_target(self) -> None:
        """The apiVersion is validated if it or the kind changed."""
        text = 'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group'
        odd = {**self.TARGET, "apiVersion": "v1"}
        controller = {**odd, "kind": "ReplicationController"}
        self.assertEqual(self.autoscaler_errors(scaleTargetRef=odd), [text])
        self.assertEqual(self.autoscaler_errors(scaleTargetRef=controller), [])
        self.assertEqual(
            self.autoscaler_errors(scaleTargetRef={**odd, "apiVersion": "/v1"}), [text.replace('"v1"', '"/v1"')]
        )
        self.assertEqual(self.update_errors({"scaleTargetRef": odd}, {"scaleTargetRef": odd}), [])
        self.assertEqual(self.update_errors({"scaleTargetRef": controller}, {"scaleTargetRef": odd}), [text])

    def test_types(self) -> None:
        """An absent type is reported as missing and as unsupported."""
        known = 'supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'
        self.assertEqual(
            self.autoscaler_errors(metrics=[{"resource": {"name": "cpu", "target": {"averageUtilization": 1}}}]),
            [
                "spec.metrics[0].type: Required value: must specify a metric source type",
                f'spec.metrics[0].type: Unsupported value: "": {known}',
                "spec.metrics[0].resource.target.type: Required value: must specify a metric target type",
                'spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or '
                "AverageValue",
                f'spec.metrics[0].type: Unsupported value: "": {known}',
            ],
        )

    def test_objects(self) -> None:
        """Metrics of an object have a valid apiVersion."""
        described = {"apiVersion": "a/b/c", "kind": "Service", "name": "s"}
        source = {"describedObject": described, "metric": {"name": "m"}, "target": {"type": "Value"}}
        metrics = [{"type": "Object", "object": source}]
        target = "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or "
        result = self.autoscaler_errors(metrics=metrics)
        path = "spec.metrics[0].object.describedObject.apiVersion"
        self.assertEqual(
            result,
            [f'{path}: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c', f"{target}averageValue"],
        )
        self.assertEqual(self.update_errors({"metrics": metrics}, {"metrics": metrics}), [f"{target}averageValue"])
        source["describedObject"] = {**described, "apiVersion": "v1"}
        self.assertEqual(self.autoscaler_errors(metrics=metrics), [f"{target}averageValue"])

    def test_externals(self) -> None:
        """External metrics have one target; their selector is not validated."""
        target = {"type": "Value", "value": "1", "averageValue": "1"}
        external = {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b c"}}}, "target": target}
        self.assertEqual(
            self.autoscaler_errors(metrics=[{"type": "External", "external": external}]),
            [
                "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a "
                "per-pod target"
            ],
        )

    def test_containers(self) -> None:
        """Container metrics have a resource and a container."""
        source = {"name": "gpu", "container": "C", "target": {"type": "Utilization", "averageUtilization": 5}}
        path = "spec.metrics[0].containerResource"
        self.assertEqual(
            self.autoscaler_errors(metrics=[{"type": "ContainerResource", "containerResource": source}]),
            [
                f'{path}.name: Invalid value: "gpu": must be a standard resource type or fully qualified',
                f'{path}.name: Invalid value: "gpu": must be a standard resource for containers',
                f'{path}.container: Invalid value: "C": {LABEL_RULE}',
            ],
        )

    def test_window(self) -> None:
        """The stabilization window has a separate error message."""
        self.assertEqual(
            self.autoscaler_errors(behavior={"scaleUp": {"stabilizationWindowSeconds": -1}}),
            [
                "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to "
                "zero"
            ],
        )


class BudgetTests(SynchronousTestCase):
    """Tests for the validation of disruption budgets."""

    def test_conditions(self) -> None:
        """Conditions are complete, and their types unique."""
        good = {"type": "A", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "R"}
        long = {**good, "type": "C", "reason": "r" * 1025, "message": "m" * 32769}
        conditions = [good, good, {"type": "B", "observedGeneration": -1, "reason": "no!"}, long, {}]
        path = "status.conditions"
        self.assertEqual(
            status_problems("policy", "PodDisruptionBudget", {}, {"conditions": conditions}),
            [
                f'{path}[1].type: Duplicate value: "A"',
                f'{path}[2].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
                f"{path}[2].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
                f"{path}[2].lastTransitionTime: Required value",
                f'{path}[2].reason: Invalid value: "no!": a condition reason must start with alphabetic character, '
                "optionally followed by a string of alphanumeric characters or '_,:', and must end with an "
                "alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  "
                "or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
                f"{path}[3].reason: Too long: may not be more than 1024 bytes",
                f"{path}[3].message: Too long: may not be more than 32768 bytes",
                f'{path}[4].type: Invalid value: "": name part must be non-empty',
                f'{path}[4].type: Invalid value: "": {QUALIFIED_RULE}',
                f'{path}[4].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
                f"{path}[4].lastTransitionTime: Required value",
                f"{path}[4].reason: Required value",
            ],
        )


class WorkloadRuleTests(SynchronousTestCase):
    """Tests for Deployments and StatefulSets."""

    TEMPLATE: ClassVar[dict[str, Any]] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    SPEC: ClassVar[dict[str, Any]] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}

    def test_valid(self) -> None:
        """Minimal objects are valid."""
        for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"):
            self.assertEqual(problems("apps", kind, spec=self.SPEC), [], kind)

    def test_disabled_feature_gate(self) -> None:
        """A field of a disabled feature gate is dropped when the object is created, but its manager owns it."""
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        strategy = strategy_for("apps", "StatefulSet")
        obj: dict[str, Any] = copy({"metadata": {}, "spec": {**self.SPEC, "updateStrategy": rolling}})
        strategy.default(obj)
        self.assertEqual(obj["spec"]["updateStrategy"]["rollingUpdate"], {"maxUnavailable": 1, "partition": 0})
        strategy.prepare_for_create(obj)
        self.assertEqual(obj["spec"]["updateStrategy"]["rollingUpdate"], {"partition": 0})

    def test_missing_spec(self) -> None:
        """A Deployment without a spec lacks a selector, labels and containers."""
        self.assertEqual(
            problems("apps", "Deployment"),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                "spec.template.spec.containers: Required value",
            ],
        )

    def test_mismatch(self) -> None:
        """The selector must match the pod labels, and the restart policy must be Always."""
        template = {"metadata": {"labels": {"a": "c"}}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        self.assertEqual(
            problems("apps", "Deployment", spec={**self.SPEC, "replicas": -2, "template": template}),
            [
                "spec.replicas: Invalid value: -2: must be greater than or equal to 0",
                'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`',
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            ],
        )

    def test_immutable_selector(self) -> None:
        """The selector is immutable."""
        labels = {"a": "b", "c": "d"}
        template = {**self.TEMPLATE, "metadata": {"labels": labels}}
        new = {"spec": {"selector": {"matchLabels": labels}, "template": template}}
        self.assertEqual(
            change_problems("apps", "Deployment", {"spec": self.SPEC}, new),
            ['spec.selector: Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable'],
        )

    def test_status_counts(self) -> None:
        """No count exceeds the number of replicas."""
        obj = {"status": {"replicas": 1, "readyReplicas": 2}, "metadata": {}}
        errors = strategy_for("apps", "Deployment").validate_status_update(obj, {"metadata": {}})
        self.assertEqual(
            [str(cause) for cause in errors],
            ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        )

    def test_stateful_set_changes(self) -> None:
        """The names and storage of a StatefulSet's pods are immutable."""
        new = {"spec": {**self.SPEC, "serviceName": "other"}}
        errors = change_problems("apps", "StatefulSet", {"spec": self.SPEC}, new)
        self.assertEqual(len(errors), 1)
        self.assertIn("spec: Forbidden: updates to statefulset spec for fields other than", errors[0])

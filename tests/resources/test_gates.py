"""Tests of feature gates over HTTP: a request in both positions of a gate."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import Release
from tests.registry.gatetools import features
from tests.resources.customapply import MERGE
from tests.resources.server import Server, definitions, pod

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
SCALING = "/apis/autoscaling/v2/namespaces/default"
CONTAINER = {"name": "c", "image": "i"}


def workload(kind: str, group: str, **spec: Any) -> dict[str, Any]:
    """Return an object with a pod template."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], **spec.pop("pod", {})}}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"a": "b"}}}
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": {**selector, "template": template, **spec},
    }


@frozen
class Case:
    """
    An object with a field, or one that is valid if the gate is enabled.

    @ivar gate: The gate.
    @ivar release: A release in which the gate can have both values.
    @ivar path: The path of the resource.
    @ivar body: The object.
    @ivar field: The path of the field, which is dropped if the gate is disabled; empty for objects that are rejected.
    """

    gate: str
    release: Release
    path: str
    body: dict[str, Any]
    field: tuple[str, ...] = ()


def a_pod(**spec: Any) -> dict[str, Any]:
    """Return a pod."""
    return {**pod("w"), "spec": {"containers": [CONTAINER], **spec}}


AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "w"},
    "spec": {
        "maxReplicas": 2,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "behavior": {"scaleUp": {"tolerance": "100m"}},
    },
}
METRIC = {
    "type": "External",
    "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}
TOLERATION = {"key": "k", "operator": "Gt", "value": "5"}
CASES = (
    Case("HostnameOverride", (1, 36), f"{CORE}/pods", a_pod(hostnameOverride="h"), ("spec", "hostnameOverride")),
    Case(
        "PodLevelResources",
        (1, 36),
        f"{CORE}/pods",
        a_pod(resources={"limits": {"cpu": "1"}}),
        ("spec", "resources"),
    ),
    Case(
        "HostnameOverride",
        (1, 36),
        f"{APPS}/deployments",
        workload("Deployment", "apps", pod={"hostnameOverride": "h"}),
        ("spec", "template", "spec", "hostnameOverride"),
    ),
    Case(
        "MaxUnavailableStatefulSet",
        (1, 36),
        f"{APPS}/statefulsets",
        workload("StatefulSet", "apps"),
        ("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),
    ),
    Case(
        "JobManagedBy",
        (1, 34),
        f"{BATCH}/jobs",
        workload("Job", "batch", managedBy="example.com/x", pod={"restartPolicy": "Never"}),
        ("spec", "managedBy"),
    ),
    Case(
        "HPAConfigurableTolerance",
        (1, 36),
        f"{SCALING}/horizontalpodautoscalers",
        AUTOSCALER,
        ("spec", "behavior", "scaleUp", "tolerance"),
    ),
    Case(
        "HPAScaleToZero",
        (1, 36),
        f"{SCALING}/horizontalpodautoscalers",
        {**AUTOSCALER, "spec": {**AUTOSCALER["spec"], "minReplicas": 0, "metrics": [METRIC]}},  # type: ignore[dict-item] # a spec
    ),
    Case(
        "CrossNamespaceVolumeDataSource",
        (1, 36),
        f"{CORE}/persistentvolumeclaims",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "w"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "d", "namespace": "other"},
            },
        },
        ("spec", "dataSourceRef"),
    ),
    Case("TaintTolerationComparisonOperators", (1, 36), f"{CORE}/pods", a_pod(tolerations=[TOLERATION])),
    Case("UserNamespacesHostNetworkSupport", (1, 36), f"{CORE}/pods", a_pod(hostUsers=False, hostNetwork=True)),
    Case(
        "RelaxedEnvironmentVariableValidation",
        (1, 33),
        f"{CORE}/pods",
        a_pod(containers=[{**CONTAINER, "env": [{"name": "1"}]}]),
    ),
)
RESOURCES = {case.path.rpartition("/")[2] for case in CASES}


class GateTests(SynchronousTestCase):
    """Tests of requests to servers with and without a gate."""

    def test_create(self) -> None:
        """An object with the field is created with it or without it; other objects are created or rejected."""
        for case in CASES:
            for enabled in (True, False):
                server = Server(*RESOURCES, features=features(case.release, **{case.gate: enabled}))
                code, answer = server.client().ask("POST", case.path, case.body)
                if not case.field:
                    self.assertEqual(code, 201 if enabled else 422, (case.gate, answer))
                    continue
                self.assertEqual(code, 201, (case.gate, answer))
                for name in case.field:
                    answer = (answer or {}).get(name)
                self.assertEqual(answer is not None, enabled, case.gate)

    def test_status(self) -> None:
        """A field of the status is stored or dropped by an update of the status."""
        gate = "DeploymentReplicaSetTerminatingReplicas"
        for enabled in (True, False):
            client = Server(*RESOURCES, features=features((1, 36), **{gate: enabled})).client()
            client.ask("POST", f"{APPS}/deployments", workload("Deployment", "apps"))
            change = {"status": {"terminatingReplicas": 1}}
            code, answer = client.ask("PATCH", f"{APPS}/deployments/w/status", change, Content_Type=MERGE)
            self.assertEqual((code, "terminatingReplicas" in answer["status"]), (200, enabled))

    def test_resize(self) -> None:
        """Pod-level resources are resized if the gate is enabled."""
        for enabled in (True, False):
            gates = features((1, 36), InPlacePodLevelResourcesVerticalScaling=enabled)
            client = Server(*RESOURCES, features=gates).client()
            resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
            client.ask("POST", f"{CORE}/pods", a_pod(resources=resources))
            change = {"spec": {"resources": {"limits": {"cpu": "3"}}}}
            code, answer = client.ask("PATCH", f"{CORE}/pods/w/resize", change, Content_Type=MERGE)
            self.assertEqual(code, 200 if enabled else 422, answer)

    def test_generation(self) -> None:
        """Autoscalers have generations since 1.37."""
        path = f"{SCALING}/horizontalpodautoscalers"
        for minor in (36, 37):
            client = Server(*RESOURCES, features=features((1, minor))).client()
            client.ask("POST", path, AUTOSCALER)
            answer = client.ask("PATCH", f"{path}/w", {"spec": {"maxReplicas": 3}}, Content_Type=MERGE)[1]
            self.assertEqual(answer["metadata"].get("generation"), 2 if minor == 37 else None)

    def test_managed_fields(self) -> None:
        """A manager does not own the default of a field whose gate is disabled."""
        volumes = [{"name": "v", "image": {"reference": "r"}}]
        for enabled in (True, False):
            gates = features((1, 35), ImageVolume=enabled)
            client = Server(*RESOURCES, features=gates, types=definitions()).client()
            answer = client.ask("POST", f"{CORE}/pods", a_pod(volumes=volumes))[1]
            [entry] = answer["metadata"]["managedFields"]
            image = entry["fieldsV1"]["f:spec"]["f:volumes"]['k:{"name":"v"}']["f:image"]
            self.assertEqual("f:pullPolicy" in image, enabled)

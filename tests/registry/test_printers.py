"""Tests for L{kubetwist.registry.printers}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.printers.texts import first_few, selector_cell
from kubetwist.registry.kindtable import KINDS
from kubetwist.registry.printers import AgeCell, cells, columns, human_duration, row, row_conditions, row_order

#: 2026-01-01T00:00:00Z.
BORN = 1767225600.0
NOW = BORN + 3 * 60

#: Of pods with two containers.
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}}


def made(obj: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """An object called x, three minutes old."""
    return {"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}, **(obj or {})}


class AgeTests(SynchronousTestCase):
    """Times in words."""

    def test_units(self) -> None:
        """The longer it is, the larger the units; at most two are named."""
        minute, hour, day = 60, 3600, 86400
        for seconds, words in {
            -5: "<invalid>",
            -1.5: "0s",
            -0.5: "0s",
            0: "0s",
            119.9: "119s",
            2 * minute: "2m",
            3 * minute + 20: "3m20s",
            10 * minute + 20: "10m",
            179 * minute: "179m",
            3 * hour: "3h",
            7 * hour + 5 * minute: "7h5m",
            47 * hour: "47h",
            2 * day: "2d",
            7 * day + 3 * hour: "7d3h",
            8 * day + 3 * hour: "8d",
            729 * day: "729d",
            730 * day: "2y",
            740 * day: "2y10d",
            8 * 365 * day + 9 * day: "8y",
        }.items():
            self.assertEqual(human_duration(seconds), words, str(seconds))

    @settings(max_examples=100)
    @given(seconds=st.floats(min_value=0, max_value=1e10))
    def test_whole_seconds(self, seconds: float) -> None:
        """Parts of a second never show."""
        self.assertEqual(human_duration(seconds), human_duration(float(int(seconds))))

    def test_row_is_kept(self) -> None:
        """A row is the same at any time; what grows old in it is filled in when it is shown."""
        obj = made({"data": {"a": "1"}})
        self.assertEqual(row("", "ConfigMap", obj), ("x", 1, AgeCell(BORN)))
        self.assertEqual(cells("", "ConfigMap", obj, NOW), ["x", 1, "3m"])
        self.assertEqual(cells("", "ConfigMap", obj, NOW + 86400), ["x", 1, "24h"])

    def test_unknown_age(self) -> None:
        """What has no time has an unknown age."""
        for stamp in (None, "", "yesterday"):
            self.assertEqual(cells("", "ConfigMap", made(creationTimestamp=stamp), NOW), ["x", 0, "<unknown>"])


class EveryKindTests(SynchronousTestCase):
    """What holds for all kinds."""

    def test_zero_objects(self) -> None:
        """The zero object of every kind has a row, with a cell for each column and one too many for IPAddress."""
        for kind in KINDS:
            for empty in ({}, {"spec": {}, "status": {}}):
                obj = {"apiVersion": f"{kind.group}/v1" if kind.group else "v1", "metadata": {}, **empty}
                more = 1 if kind.kind == "IPAddress" else 0
                self.assertEqual(
                    len(row(kind.group, kind.kind, obj)), len(columns(kind.group, kind.kind)) + more, kind.kind
                )

    def test_order(self) -> None:
        """Flow schemas are shown as they are tried, and all else as it comes."""
        order = row_order("flowcontrol.apiserver.k8s.io", "FlowSchema")
        assert order is not None, "flow schemas have one"
        self.assertEqual(order(made({"spec": {"matchingPrecedence": 3}})), (3, "x"))
        self.assertIsNone(row_order("", "Pod"))

    def test_default(self) -> None:
        """Kinds without a row of their own show their name and when they were made."""
        self.assertEqual(cells("", "LimitRange", made(), NOW), ["x", "2026-01-01T00:00:00Z"])
        capacity = cells("storage.k8s.io", "CSIStorageCapacity", made({"storageClassName": "s"}), NOW)
        self.assertEqual(capacity, ["x", "2026-01-01T00:00:00Z"])
        names = [(column["name"], column["type"], column["format"]) for column in columns("", "LimitRange")]
        self.assertEqual(names, [("Name", "string", "name"), ("Created At", "date", "")])

    def test_descriptions(self) -> None:
        """Columns that show a field have its description."""
        found = columns("", "Pod", "v1", lambda kind, field: f"{kind} {field}")
        self.assertEqual(
            found[5],
            {"name": "IP", "type": "string", "format": "", "description": "api.core.v1.PodStatus podIP", "priority": 1},
        )

    def test_descriptions_of_other_releases(self) -> None:
        """Where a release lacks the usual version of a type, the description is that of the requested version."""
        texts = {("api.networking.v1beta1.ServiceCIDRSpec", "cidrs"): "ranges"}
        found = columns("networking.k8s.io", "ServiceCIDR", "v1beta1", lambda *field: texts.get(field, ""))
        self.assertEqual(found[1]["description"], "ranges")

    def test_scale_of_any_group(self) -> None:
        """A Scale has its own row, whatever it scales."""
        obj = made({"spec": {"replicas": 2}, "status": {"replicas": 1}})
        self.assertEqual(cells("apps", "Scale", obj, NOW), ["x", 2, 1, "3m"])
        self.assertEqual([column["name"] for column in columns("apps", "Scale")][1:3], ["Desired", "Available"])


class PodTests(SynchronousTestCase):
    """The row of a Pod."""

    def cells(self, status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> list[Any]:
        """Ready, status and restarts."""
        spec = {"containers": [{"name": "a"}, {"name": "b"}], **(spec or {})}
        return cells("", "Pod", made({"spec": spec, "status": status}, **metadata), NOW)[1:4]

    def container(self, name: str = "a", **state: Any) -> dict[str, Any]:
        """A container's status; C{running={}} makes it ready."""
        return {"name": name, "ready": "running" in state, "restartCount": 0, "state": state}

    def test_phase(self) -> None:
        """Without anything else to tell the phase is the status, or its reason."""
        self.assertEqual(self.cells({"phase": "Pending"}), ["0/2", "Pending", "0"])
        self.assertEqual(self.cells({"phase": "Failed", "reason": "Evicted"}), ["0/2", "Evicted", "0"])

    def test_wide(self) -> None:
        """Wide output shows addresses, nodes and gates, or that there are none."""
        spec = {
            "containers": [{"name": "a"}],
            "nodeName": "n1",
            "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}],
        }
        status = {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}
        shown = cells("", "Pod", made({"spec": spec, "status": status}), NOW)
        self.assertEqual(shown[4:], ["3m", "10.0.0.1", "n1", "<none>", "1/2"])
        self.assertEqual(cells("", "Pod", made(), NOW)[5:], ["<none>"] * 4)

    def test_containers(self) -> None:
        """The first container with something to tell gives the status."""
        for first, words in (
            ({"waiting": {"reason": "CrashLoopBackOff"}}, "CrashLoopBackOff"),
            ({"terminated": {"reason": "OOMKilled"}}, "OOMKilled"),
            ({"terminated": {"exitCode": 3}}, "ExitCode:3"),
            ({"terminated": {"signal": 9}}, "Signal:9"),
        ):
            status = {
                "phase": "Running",
                "containerStatuses": [self.container(**first), self.container("b", running={})],
            }
            self.assertEqual(self.cells(status), ["1/2", words, "0"])

    def test_completed_beside_running(self) -> None:
        """A pod of which one container has ended and one runs is Running when it is ready, else NotReady."""
        statuses = [self.container(terminated={"reason": "Completed"}), self.container("b", running={})]
        status: dict[str, Any] = {"phase": "Running", "containerStatuses": statuses}
        self.assertEqual(self.cells(status)[1], "NotReady")
        status["conditions"] = [{"type": "Ready", "status": "True"}]
        self.assertEqual(self.cells(status)[1], "Running")

    def test_restarts(self) -> None:
        """Restarts add up, with the time of the last one."""
        first, second = self.container(running={}), self.container("b", running={})
        first["restartCount"], second["restartCount"] = 1, 2
        status = {"phase": "Running", "containerStatuses": [first, second]}
        self.assertEqual(self.cells(status), ["2/2", "Running", "3"])
        second["lastState"] = {"terminated": {"finishedAt": "2026-01-01T00:02:30Z"}}
        self.assertEqual(self.cells(status), ["2/2", "Running", "3 (30s ago)"])

    def test_init_containers(self) -> None:
        """While it begins, a pod tells which of its init containers it is at, or what is wrong with that."""
        spec = {"initContainers": [{"name": "i"}, {"name": "j"}]}
        done = self.container("i", terminated={"exitCode": 0})
        for second, words in (
            ({}, "Init:1/2"),
            ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
            ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
            ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
            ({"terminated": {"exitCode": 2, "signal": 9}}, "Init:Signal:9"),
            ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
        ):
            status = {"phase": "Pending", "initContainerStatuses": [done, self.container("j", **second)]}
            self.assertEqual(self.cells(status, spec), ["0/2", words, "0"])

    def test_sidecars(self) -> None:
        """Init containers that go on count among the ready ones, and their restarts do."""
        spec = {"initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]}
        sidecar = {**self.container("s", running={}), "started": True, "restartCount": 2}
        done = {**self.container("i", terminated={"exitCode": 0}), "restartCount": 5}
        status = {
            "phase": "Running",
            "initContainerStatuses": [sidecar, done],
            "containerStatuses": [self.container(running={}), self.container("b", running={})],
        }
        self.assertEqual(self.cells(status, spec), ["3/3", "Running", "2"])

    def test_scheduling_gates(self) -> None:
        """A gated pod says so."""
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
        self.assertEqual(self.cells({"phase": "Pending", "conditions": conditions})[1], "SchedulingGated")

    def test_deletion(self) -> None:
        """A pod that is deleted is Terminating, unless it has ended, or unknown when its node is lost."""
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        self.assertEqual(self.cells({"phase": "Running"}, **deleted)[1], "Terminating")
        self.assertEqual(self.cells({"phase": "Succeeded"}, **deleted)[1], "Succeeded")
        self.assertEqual(self.cells({"phase": "Running", "reason": "NodeLost"}, **deleted)[1], "Unknown")

    def test_row_conditions(self) -> None:
        """Clients that hide what has ended are told which pods have."""
        self.assertEqual(row_conditions("", "Pod", made({"status": {"phase": "Running"}})), [])
        (condition,) = row_conditions("", "Pod", made({"status": {"phase": "Failed"}}))
        self.assertEqual((condition["type"], condition["status"], condition["reason"]), ("Completed", "True", "Failed"))
        self.assertEqual(row_conditions("", "Namespace", made({"status": {"phase": "Failed"}})), [])


class WorkloadTests(SynchronousTestCase):
    """Rows of controllers."""

    def test_deployment(self) -> None:
        """A Deployment shows ready of desired replicas."""
        selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
        obj = made(
            {
                "spec": {"replicas": 3, "selector": selector, "template": TEMPLATE},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            }
        )
        self.assertEqual(
            cells("apps", "Deployment", obj, NOW), ["x", "1/3", 2, 1, "3m", "a,b", "a:1,b:2", "app=web,tier"]
        )

    def test_controller_revision(self) -> None:
        """A ControllerRevision names its controller with its kind and group."""
        owners = [
            {"apiVersion": "v1", "kind": "Pod", "name": "p"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True},
        ]
        shown = cells("apps", "ControllerRevision", made({"revision": 7}, ownerReferences=owners), NOW)
        self.assertEqual(shown, ["x", "statefulset.apps/db", 7, "3m"])
        self.assertEqual(cells("apps", "ControllerRevision", made(), NOW)[1], "<none>")

    def test_job(self) -> None:
        """A Job shows how many of its completions it has, and how long it took or has been taking."""
        status: dict[str, Any] = {"startTime": "2026-01-01T00:01:00Z", "succeeded": 1}
        obj = made({"spec": {"completions": 2}, "status": status})
        self.assertEqual(cells("batch", "Job", obj, NOW)[1:5], ["Running", "1/2", "2m", "3m"])
        status["completionTime"] = "2026-01-01T00:01:30Z"
        status["conditions"] = [{"type": "Complete", "status": "True"}]
        self.assertEqual(cells("batch", "Job", obj, NOW)[1:5], ["Complete", "1/2", "30s", "3m"])
        queue = made({"spec": {"parallelism": 4}})
        self.assertEqual(cells("batch", "Job", queue, NOW)[1:4], ["Running", "0/1 of 4", ""])

    def test_job_states(self) -> None:
        """Being deleted counts for less than having ended, and for more than being suspended."""
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        for kind, state in (("Failed", "Failed"), ("Suspended", "Terminating")):
            obj = made({"status": {"conditions": [{"type": kind, "status": "True"}]}}, **deleted)
            self.assertEqual(cells("batch", "Job", obj, NOW)[1], state)

    def test_cron_job(self) -> None:
        """A CronJob shows when it last ran."""
        obj = made(
            {
                "spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
                "status": {"active": [{}], "lastScheduleTime": "2026-01-01T00:02:00Z"},
            }
        )
        self.assertEqual(
            cells("batch", "CronJob", obj, NOW)[1:],
            ["@daily", "<none>", "False", 1, "60s", "3m", "a,b", "a:1,b:2", "<none>"],
        )

    def test_disruption_budget(self) -> None:
        """Bounds may be numbers or shares."""
        obj = made({"spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 1}})
        self.assertEqual(cells("policy", "PodDisruptionBudget", obj, NOW), ["x", "N/A", "25%", 1, "3m"])

    def test_autoscaler(self) -> None:
        """Two metrics are shown, each as what is over what shall be, and how many there are beyond."""
        spec = {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}},
                {"type": "External", "external": {"target": {"averageValue": "5"}}},
                {"type": "Pods", "pods": {"target": {"averageValue": "5"}}},
            ],
        }
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}]
        obj = made({"spec": spec, "status": {"currentMetrics": current, "currentReplicas": 2}})
        self.assertEqual(
            cells("autoscaling", "HorizontalPodAutoscaler", obj, NOW),
            ["x", "Deployment/web", "cpu: 40%/70%, <unknown>/5 (avg) + 1 more...", "<unset>", 9, 2, "3m"],
        )


class NetworkTests(SynchronousTestCase):
    """Rows of services and what leads to them."""

    def service(self, spec: dict[str, Any], *points: dict[str, str]) -> list[Any]:
        """Type, addresses and ports."""
        obj = made({"spec": spec, "status": {"loadBalancer": {"ingress": list(points)}}})
        return cells("", "Service", obj, NOW)[1:5]

    def test_service(self) -> None:
        """A Service shows ports with their protocol, and node ports where there are any."""
        ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]
        self.assertEqual(
            self.service({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": ports}),
            ["NodePort", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP"],
        )

    def test_external_address(self) -> None:
        """What leads to a Service from outside depends on its type."""
        self.assertEqual(
            self.service({"type": "ExternalName", "externalName": "a.example"})[1:3], ["<none>", "a.example"]
        )
        self.assertEqual(self.service({"type": "LoadBalancer"})[2], "<pending>")
        balanced = self.service(
            {"type": "LoadBalancer", "externalIPs": ["192.0.2.9"]}, {"hostname": "lb.example"}, {"ip": "192.0.2.1"}
        )
        self.assertEqual(balanced[2], "192.0.2.1,lb.example,192.0.2.9")
        self.assertEqual(self.service({"type": "ClusterIP", "externalIPs": ["192.0.2.9"]})[2], "192.0.2.9")

    def test_endpoints(self) -> None:
        """The first three addresses are shown, IPv6 ones in brackets."""
        subset = {
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "ports": [{"port": 80}, {"port": 443}],
        }
        self.assertEqual(
            cells("", "Endpoints", made({"subsets": [subset]}), NOW)[1],
            "10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 1 more...",
        )
        self.assertEqual(cells("", "Endpoints", made(), NOW)[1], "<none>")

    def test_endpoint_slice(self) -> None:
        """A port without a number shows its name, or a star."""
        obj = made(
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "dns"}, {}],
                "endpoints": [{"addresses": ["10.0.0.1"]}],
            }
        )
        self.assertEqual(
            cells("discovery.k8s.io", "EndpointSlice", obj, NOW), ["x", "IPv4", "80,dns,*", "10.0.0.1", "3m"]
        )
        self.assertEqual(cells("discovery.k8s.io", "EndpointSlice", made(), NOW)[2:4], ["<unset>", "<unset>"])

    def test_ingress(self) -> None:
        """An Ingress shows three hosts at most, and both ports when it has certificates."""
        rules = [{"host": name} for name in "abcd"]
        obj = made({"spec": {"rules": rules, "tls": [{}], "ingressClassName": "c"}})
        self.assertEqual(
            cells("networking.k8s.io", "Ingress", obj, NOW), ["x", "c", "a,b,c + 1 more...", "", "80, 443", "3m"]
        )
        self.assertEqual(cells("networking.k8s.io", "Ingress", made(), NOW), ["x", "<none>", "*", "", "80", "3m"])

    def test_ip_address(self) -> None:
        """An IPAddress names what it belongs to, from its group down."""
        parent = {"group": "", "resource": "services", "namespace": "default", "name": "kubernetes"}
        shown = cells("networking.k8s.io", "IPAddress", made({"spec": {"parentRef": parent}}), NOW)
        self.assertEqual(shown, ["x", "services/default/kubernetes", "3m"])


class ClusterTests(SynchronousTestCase):
    """Rows of nodes, events, quotas and volumes."""

    def test_node(self) -> None:
        """A Node shows its roles, and its kernel with the architecture."""
        labels = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge", "node-role.kubernetes.io/": ""}
        status = {
            "conditions": [{"type": "Ready", "status": "False"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.8", "architecture": "arm64"},
        }
        obj = made({"spec": {"unschedulable": True}, "status": status}, labels=labels)
        self.assertEqual(
            cells("", "Node", obj, NOW)[1:],
            [
                "NotReady,SchedulingDisabled",
                "edge,worker",
                "3m",
                "v1",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "6.8 (arm64)",
                "<unknown>",
            ],
        )

    def test_event(self) -> None:
        """An event shows when it was last seen and first seen; its series, if it has one, counts."""
        obj = made(
            {
                "type": "Normal",
                "reason": "Started",
                "message": " up\n",
                "count": 4,
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "source": {"component": "kubelet", "host": "n1"},
                "firstTimestamp": "2026-01-01T00:00:00Z",
                "lastTimestamp": "2026-01-01T00:02:00Z",
            }
        )
        expected = ["60s", "Normal", "Started", "pod/p", "spec", "kubelet, n1", "up", "3m", 4, "x"]
        self.assertEqual(cells("", "Event", obj, NOW), expected)
        obj["series"] = {"count": 9, "lastObservedTime": "2026-01-01T00:02:30.5Z"}
        self.assertEqual([cells("", "Event", obj, NOW)[place] for place in (0, 8)], ["29s", 9])

    def test_event_of_both_groups(self) -> None:
        """An event has the same row in both of its groups."""
        obj = made(
            {
                "apiVersion": "events.k8s.io/v1",
                "regarding": {"kind": "Node"},
                "note": "hot",
                "reportingController": "thermo",
                "eventTime": "2026-01-01T00:02:00.000001Z",
            }
        )
        self.assertEqual(
            cells("events.k8s.io", "Event", obj, NOW),
            ["59s", "", "", "node", "", "thermo", "hot", "59s", 1, "x"],
        )

    def test_quota(self) -> None:
        """A quota shows limits apart from all else."""
        status = {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}
        shown = cells("", "ResourceQuota", made({"status": status}), NOW)
        self.assertEqual(shown, ["x", "cpu: 0/1, pods: 1/4", "limits.cpu: 0/2", "3m"])

    def test_volume(self) -> None:
        """Access modes are abbreviated, in an order of their own and once each."""
        spec = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "ns", "name": "c"},
            "storageClassName": "fast",
            "volumeMode": "Block",
        }
        self.assertEqual(
            cells("", "PersistentVolume", made({"spec": spec, "status": {"phase": "Bound"}}), NOW),
            ["x", "5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "<unset>", "", "3m", "Block"],
        )

    def test_claim(self) -> None:
        """What a claim got shows once it has a volume."""
        status = {"phase": "Pending", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}
        old_class = {"volume.beta.kubernetes.io/storage-class": "slow"}
        obj = made({"spec": {}, "status": status}, annotations=old_class)
        self.assertEqual(cells("", "PersistentVolumeClaim", obj, NOW)[1:6], ["Pending", "", "", "", "slow"])
        obj["spec"]["volumeName"] = "v"
        self.assertEqual(cells("", "PersistentVolumeClaim", obj, NOW)[1:6], ["Pending", "v", "5Gi", "RWO", "slow"])

    def test_storage_class(self) -> None:
        """The default class says so beside its name."""
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.assertEqual(
            cells("storage.k8s.io", "StorageClass", made({"provisioner": "p"}, annotations=default), NOW),
            ["x (default)", "p", "Delete", "Immediate", False, "3m"],
        )


class PolicyTests(SynchronousTestCase):
    """Rows of what decides."""

    def test_role_binding(self) -> None:
        """Subjects are sorted into users, groups and accounts."""
        subjects = [
            {"kind": "User", "name": "ann"},
            {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"},
            {"kind": "User", "name": "bob"},
            {"kind": "ServiceAccount", "name": "lost"},
        ]
        obj = made({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects})
        self.assertEqual(
            cells("rbac.authorization.k8s.io", "RoleBinding", obj, NOW),
            ["x", "Role/r", "3m", "ann, bob", "", "ns/sa, /lost"],
        )

    def test_certificate_request(self) -> None:
        """A request shows its decision, and whether it failed or was issued."""
        for types, certificate, state in (
            ([], "", "Pending"),
            (["Approved"], "Zm9v", "Approved,Issued"),
            (["Approved", "Failed"], "", "Approved,Failed"),
            (["Denied", "Approved"], "", "Denied"),
        ):
            status = {"conditions": [{"type": one} for one in types], "certificate": certificate}
            obj = made({"spec": {"username": "ann", "expirationSeconds": 3600}, "status": status})
            self.assertEqual(
                cells("certificates.k8s.io", "CertificateSigningRequest", obj, NOW),
                ["x", "3m", "<none>", "ann", "60m", state],
            )

    def test_api_service(self) -> None:
        """An APIService that can not be reached tells why."""
        spec = {"service": {"namespace": "ns", "name": "s"}}
        conditions = [{"type": "Available", "status": "False", "reason": "NoEndpoints"}]
        for obj, shown in (
            (made({"spec": {}}), ["Local", "Unknown"]),
            (
                made({"status": {"conditions": [{"type": "Available", "status": "True", "reason": "x"}]}}),
                ["Local", "True"],
            ),
            (made({"spec": spec, "status": {"conditions": conditions}}), ["ns/s", "False (NoEndpoints)"]),
        ):
            self.assertEqual(cells("apiregistration.k8s.io", "APIService", obj, NOW)[1:3], shown)

    def test_policy_binding(self) -> None:
        """A binding shows its parameters, or how they are selected."""
        for reference, shown in (
            (None, "<unset>"),
            ({"name": "p"}, "*/p"),
            ({"name": "p", "namespace": "ns"}, "ns/p"),
            (
                {"selector": {"matchLabels": {"a": "b"}}},
                "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}",
            ),
        ):
            obj = made({"spec": {"policyName": "q", "paramRef": reference}})
            shown_cells = cells("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", obj, NOW)
            self.assertEqual(shown_cells[1:3], ["q", shown])

    def test_priority_level(self) -> None:
        """A level without limits has no numbers."""
        exempt = made({"spec": {"type": "Exempt"}})
        kind = ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration")
        self.assertEqual(cells(*kind, exempt, NOW)[1:6], ["Exempt"] + ["<none>"] * 4)
        queuing = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
        limited = {"nominalConcurrencyShares": 30, "limitResponse": {"queuing": queuing}}
        obj = made({"spec": {"type": "Limited", "limited": limited}})
        self.assertEqual(cells(*kind, obj, NOW)[1:6], ["Limited", 30, 64, 6, 50])

    def test_resource_claim(self) -> None:
        """A claim's state is what has become of it so far."""
        kind = ("resource.k8s.io", "ResourceClaim")
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        reserved = {"status": {"allocation": {}, "reservedFor": [{}]}}
        self.assertEqual(cells(*kind, made(), NOW)[1], "pending")
        self.assertEqual(cells(*kind, made(reserved), NOW)[1], "allocated,reserved")
        self.assertEqual(cells(*kind, made(**deleted), NOW)[1], "deleted")


class TextTests(SynchronousTestCase):
    """Shared pieces."""

    def test_selector(self) -> None:
        """Requirements are sorted by key, and values among themselves."""
        selector = {
            "matchLabels": {"z": "1", "a": "2"},
            "matchExpressions": [
                {"key": "m", "operator": "In", "values": ["y", "x"]},
                {"key": "n", "operator": "NotIn", "values": ["v"]},
                {"key": "b", "operator": "DoesNotExist"},
            ],
        }
        self.assertEqual(selector_cell(selector), "a=2,!b,m in (x,y),n notin (v),z=1")
        self.assertEqual(selector_cell(None), "<none>")
        self.assertEqual(selector_cell({"matchExpressions": [{"key": "a", "operator": "Like"}]}), "<error>")

    def test_first_few(self) -> None:
        """Nothing, some, and too many."""
        self.assertEqual(first_few([], 2), "<unset>")
        self.assertEqual(first_few(["a", "b"], 2), "a,b")
        self.assertEqual(first_few(["a", "b", "c"], 2), "a,b + 1 more...")

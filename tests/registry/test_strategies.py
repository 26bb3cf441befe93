"""Tests for L{kubetwist.registry.strategies}: what kinds are, and what they default to."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.options import DeleteOptions
from kubetwist.registry.strategies import strategy_for

CONTAINER = {"name": "c", "image": "app:1"}


def defaulted(group: str, kind: str, **parts: Any) -> dict[str, Any]:
    """An object of C{kind} with its defaults."""
    obj: dict[str, Any] = {"metadata": {"name": "x"}, **parts}
    strategy_for(group, kind).default(obj)
    return obj


class LookupTests(SynchronousTestCase):
    """Tests for L{strategy_for}."""

    def test_same_instance(self) -> None:
        """A kind has one strategy for the life of the server."""
        self.assertIs(strategy_for("", "Pod"), strategy_for("", "Pod"))

    def test_unknown_kind(self) -> None:
        """A kind that nobody wrote rules for has a spec with a generation and a status."""
        strategy = strategy_for("example.com", "Gadget")
        self.assertTrue(strategy.has_generation and strategy.has_status)

    def test_flags(self) -> None:
        """Kinds differ in what PUT may create, what an update must know, and what DELETE answers with."""
        makes = {kind for group, kind in KINDS if strategy_for(group, kind).allow_create_on_update}
        self.assertEqual(
            makes,
            {
                "Service",
                "Endpoints",
                "Event",
                "LimitRange",
                "Lease",
                "Role",
                "ClusterRole",
                "RoleBinding",
                "ClusterRoleBinding",
            },
        )
        self.assertFalse(strategy_for("coordination.k8s.io", "Lease").allow_unconditional_update)
        self.assertFalse(strategy_for("storage.k8s.io", "CSIDriver").allow_unconditional_update)
        self.assertTrue(strategy_for("", "ServiceAccount").delete_returns_object)
        self.assertTrue(strategy_for("resource.k8s.io", "DeviceTaintRule").delete_returns_object)
        self.assertFalse(strategy_for("storage.k8s.io", "CSIStorageCapacity").delete_returns_object)
        self.assertFalse(strategy_for("", "ConfigMap").delete_returns_object)
        orphan = {kind for group, kind in KINDS if strategy_for(group, kind).default_garbage_collection}
        self.assertEqual(orphan, {"ReplicationController", "Job"})

    def test_names(self) -> None:
        """Names of roles are parts of paths, those of namespaces labels, those of configmaps domains."""
        for group, kind, good, bad in (
            ("rbac.authorization.k8s.io", "Role", "system:Node", "a/b"),
            ("", "Namespace", "a-b", "a.b"),
            ("", "Service", "a-b", "a.b"),
            ("apps", "StatefulSet", "a-b", "a.b"),
            ("policy", "PodDisruptionBudget", "A b", "a/b"),
            ("", "ConfigMap", "a.b", "A"),
            ("networking.k8s.io", "IPAddress", "10.0.0.1", "10.0.0"),
        ):
            strategy = strategy_for(group, kind)
            self.assertEqual(list(strategy.name_problems(good, False)), [], kind)
            self.assertTrue(strategy.name_problems(bad, False), kind)


KINDS = [
    ("", "Pod"),
    ("", "Service"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "ReplicationController"),
    ("", "PodTemplate"),
    ("", "ResourceQuota"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("apiregistration.k8s.io", "APIService"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("resource.k8s.io", "ResourceClaim"),
]


class DefaultingTests(SynchronousTestCase):
    """Tests for C{default}."""

    @settings(max_examples=60, deadline=None)
    @given(kind=st.sampled_from(KINDS))
    def test_idempotent(self, kind: tuple[str, str]) -> None:
        """Defaults applied twice are the same as applied once, even to an object without anything."""
        once = defaulted(*kind)
        again = {**once}
        strategy_for(*kind).default(again)
        self.assertEqual(again, once)

    def test_pod(self) -> None:
        """A pod of one container gets everything that kubelets and schedulers read."""
        spec = defaulted("", "Pod", spec={"containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]})["spec"]
        self.assertEqual(
            spec,
            {
                "containers": [
                    {
                        "name": "c",
                        "image": "app:1",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "imagePullPolicy": "IfNotPresent",
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "resources": {},
                    }
                ],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
                "enableServiceLinks": True,
            },
        )

    def test_pull_policy(self) -> None:
        """An image is pulled always when it is the newest, said or unsaid, and else once."""
        for image, policy in (
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("host:5000/nginx", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("nginx@sha256:0", "IfNotPresent"),
            ("", "IfNotPresent"),
        ):
            spec = defaulted("", "Pod", spec={"containers": [{"name": "c", "image": image}]})["spec"]
            self.assertEqual(spec["containers"][0]["imagePullPolicy"], policy, image)

    def test_requests_follow_limits(self) -> None:
        """What a pod limits and does not ask for, it asks for; a template does not."""
        container = {**CONTAINER, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}
        pod = defaulted("", "Pod", spec={"containers": [container]})
        self.assertEqual(pod["spec"]["containers"][0]["resources"]["requests"], {"cpu": "500m", "memory": "1Gi"})
        template = {"spec": {"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "1"}}}]}}
        deployment = defaulted("apps", "Deployment", spec={"template": template})
        self.assertEqual(deployment["spec"]["template"]["spec"]["containers"][0]["resources"], {"limits": {"cpu": "1"}})

    def test_host_network(self) -> None:
        """With the host's network, ports are the host's."""
        container = {**CONTAINER, "ports": [{"containerPort": 80}]}
        spec = defaulted("", "Pod", spec={"hostNetwork": True, "containers": [container]})["spec"]
        self.assertEqual(spec["containers"][0]["ports"][0]["hostPort"], 80)

    def test_probes_and_variables(self) -> None:
        """Probes have times and thresholds, references to fields a version."""
        container = {
            **CONTAINER,
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"grpc": {"port": 1}},
            "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }
        found = defaulted("", "Pod", spec={"containers": [container]})["spec"]["containers"][0]
        self.assertEqual(
            found["livenessProbe"],
            {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
        )
        self.assertEqual(found["readinessProbe"]["grpc"], {"port": 1, "service": ""})
        self.assertEqual(found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1")

    def test_volumes(self) -> None:
        """Volumes have modes; one without a source is an empty directory."""
        volumes = [
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "h", "hostPath": {"path": "/"}},
        ]
        spec = defaulted("", "Pod", spec={"volumes": volumes, "containers": [CONTAINER]})["spec"]
        self.assertEqual(
            spec["volumes"],
            [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
                {"name": "h", "hostPath": {"path": "/", "type": ""}},
            ],
        )

    def test_deployment(self) -> None:
        """A deployment rolls, a quarter at a time."""
        spec = defaulted("apps", "Deployment", spec={"template": {"spec": {"containers": [dict(CONTAINER)]}}})["spec"]
        rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
        self.assertEqual(spec["strategy"], {"type": "RollingUpdate", "rollingUpdate": rolling})
        self.assertEqual(
            (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]), (1, 10, 600)
        )

    def test_recreate(self) -> None:
        """A deployment that recreates has nothing to roll."""
        spec = defaulted("apps", "Deployment", spec={"strategy": {"type": "Recreate"}})["spec"]
        self.assertEqual(spec["strategy"], {"type": "Recreate"})

    def test_service(self) -> None:
        """A service is internal to the cluster; ports lead to the same number."""
        spec = defaulted("", "Service", spec={"ports": [{"port": 80}]})["spec"]
        self.assertEqual(spec["ports"], [{"port": 80, "protocol": "TCP", "targetPort": 80}])
        self.assertEqual(
            (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]), ("ClusterIP", "None", "Cluster")
        )
        self.assertNotIn("externalTrafficPolicy", spec)

    def test_load_balancer(self) -> None:
        """A balancer's service has node ports and takes traffic from outside."""
        spec = defaulted("", "Service", spec={"type": "LoadBalancer"})["spec"]
        self.assertTrue(spec["allocateLoadBalancerNodePorts"])
        self.assertEqual(spec["externalTrafficPolicy"], "Cluster")

    def test_secret(self) -> None:
        """C{stringData} goes into C{data}, over what is there."""
        secret = defaulted("", "Secret", data={"a": "b2xk", "b": "Yg=="}, stringData={"a": "new"})
        self.assertEqual(secret["data"], {"a": "bmV3", "b": "Yg=="})
        self.assertEqual(secret["type"], "Opaque")
        self.assertNotIn("stringData", secret)

    def test_namespace_label(self) -> None:
        """A namespace can be selected by its name."""
        self.assertEqual(defaulted("", "Namespace")["metadata"]["labels"], {"kubernetes.io/metadata.name": "x"})

    def test_network_policy_types(self) -> None:
        """A policy is about egress only when it says something of it."""
        self.assertEqual(defaulted("networking.k8s.io", "NetworkPolicy")["spec"]["policyTypes"], ["Ingress"])
        both = defaulted("networking.k8s.io", "NetworkPolicy", spec={"egress": [{}]})
        self.assertEqual(both["spec"]["policyTypes"], ["Ingress", "Egress"])

    def test_binding_groups(self) -> None:
        """Users and groups are of the group that roles are of, service accounts of the core one."""
        subjects = [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]
        binding = defaulted("rbac.authorization.k8s.io", "RoleBinding", roleRef={"name": "r"}, subjects=subjects)
        self.assertEqual(binding["roleRef"]["apiGroup"], "rbac.authorization.k8s.io")
        self.assertEqual(
            [subject.get("apiGroup") for subject in binding["subjects"]], ["rbac.authorization.k8s.io", None]
        )

    def test_limit_range(self) -> None:
        """Limits default to maxima, requests to limits, and else to minima."""
        item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}
        found = defaulted("", "LimitRange", spec={"limits": [item]})["spec"]["limits"][0]
        self.assertEqual(found["default"], {"cpu": "2"})
        self.assertEqual(found["defaultRequest"], {"cpu": "2", "memory": "1Mi"})


class CreationTests(SynchronousTestCase):
    """Tests for C{prepare_for_create}."""

    def test_status_is_reset(self) -> None:
        """Clients do not choose the status of what they create."""
        pod = defaulted("", "Pod", spec={"containers": [dict(CONTAINER)]}, status={"phase": "Running"})
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(pod["status"], {"phase": "Pending", "qosClass": "BestEffort"})

    def test_gated_pod(self) -> None:
        """A pod with gates is not to be scheduled, and says so."""
        spec = {"containers": [dict(CONTAINER)], "schedulingGates": [{"name": "g"}]}
        pod = defaulted("", "Pod", spec=spec)
        strategy_for("", "Pod").prepare_for_create(pod)
        condition = pod["status"]["conditions"][0]
        self.assertEqual((condition["type"], condition["reason"]), ("PodScheduled", "SchedulingGated"))

    def test_match_label_keys(self) -> None:
        """Keys whose values are to match become part of the selector."""
        constraint = {"labelSelector": {}, "matchLabelKeys": ["rev"], "topologyKey": "zone"}
        spec = {"containers": [dict(CONTAINER)], "topologySpreadConstraints": [constraint]}
        pod = defaulted("", "Pod", spec=spec)
        pod["metadata"]["labels"] = {"rev": "1"}
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(
            constraint["labelSelector"], {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
        )

    def test_job_selector(self) -> None:
        """A job finds its pods by its own uid, and is labelled as they are."""
        job = defaulted("batch", "Job", spec={"template": {"spec": {"containers": [dict(CONTAINER)]}}})
        job["metadata"]["uid"] = "u"
        strategy_for("batch", "Job").prepare_for_create(job)
        self.assertEqual(job["spec"]["selector"], {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        labels = {
            "controller-uid": "u",
            "batch.kubernetes.io/controller-uid": "u",
            "job-name": "x",
            "batch.kubernetes.io/job-name": "x",
        }
        self.assertEqual(job["spec"]["template"]["metadata"]["labels"], labels)
        self.assertNotIn("labels", job["metadata"])
        strategy_for("batch", "Job").complete(job)
        self.assertEqual(job["metadata"]["labels"], labels)

    def test_job_labels_follow_the_template(self) -> None:
        """A job whose labels come from its template also has the labels that validation generates there."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [dict(CONTAINER)]}}
        job = defaulted("batch", "Job", spec={"template": template})
        job["metadata"]["uid"] = "u"
        strategy_for("batch", "Job").prepare_for_create(job)
        self.assertEqual(job["metadata"]["labels"]["job-name"], "x")

    def test_long_names(self) -> None:
        """Kinds with long names count bytes, and do not check the generateName."""
        for group, kind in (("", "ReplicationController"), ("resource.k8s.io", "DeviceClass")):
            strategy = strategy_for(group, kind)
            self.assertEqual(strategy.name_problems("x" * 254, False), ["must be no more than 253 bytes"])
            self.assertEqual(strategy.name_problems("a.", True), [])
            self.assertTrue(strategy.name_problems("a.", False))

    def test_namespace_finalizer(self) -> None:
        """A namespace waits for its contents when it is deleted."""
        namespace = defaulted("", "Namespace")
        strategy_for("", "Namespace").prepare_for_create(namespace)
        self.assertEqual(namespace["spec"]["finalizers"], ["kubernetes"])


class UpdateTests(SynchronousTestCase):
    """Tests for the preparation of updates and for generations."""

    def test_main_keeps_status(self) -> None:
        """The main resource does not write the status."""
        old = {"metadata": {}, "spec": {}, "status": {"replicas": 2}}
        obj = {"metadata": {}, "spec": {"replicas": 3}, "status": {"replicas": 9}}
        strategy_for("apps", "Deployment").prepare_for_update(obj, old)
        self.assertEqual(obj["status"], {"replicas": 2})

    def test_status_of_ranges(self) -> None:
        """The status of a range of services does not write labels."""
        old = {"metadata": {"labels": {"a": "1"}}, "spec": {}}
        obj = {"metadata": {"labels": {"a": "2"}}, "spec": {}, "status": {}}
        strategy_for("networking.k8s.io", "ServiceCIDR").prepare_for_status_update(obj, old)
        self.assertEqual(obj["metadata"]["labels"], {"a": "1"})

    def test_status_keeps_the_rest(self) -> None:
        """The status subresource writes the status; of a deployment's metadata, annotations but not labels."""
        old = {"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 1}}
        obj = {
            "metadata": {"labels": {"a": "2"}, "annotations": {"n": "1"}},
            "spec": {"replicas": 5},
            "status": {"replicas": 1},
        }
        strategy_for("apps", "Deployment").prepare_for_status_update(obj, old)
        self.assertEqual(
            obj,
            {
                "metadata": {"labels": {"a": "1"}, "annotations": {"n": "1"}},
                "spec": {"replicas": 1},
                "status": {"replicas": 1},
            },
        )

    def test_generation(self) -> None:
        """A generation is made by the spec, not by metadata or status; a slice's labels count, too."""
        old = {"metadata": {}, "spec": {"replicas": 1}, "status": {}}
        strategy = strategy_for("apps", "Deployment")
        self.assertFalse(strategy.generation_changes({**old, "metadata": {"labels": {}}, "status": {"a": 1}}, old))
        self.assertTrue(strategy.generation_changes({**old, "spec": {"replicas": 2}}, old))
        piece = {"metadata": {"labels": {"a": "1"}}, "endpoints": None}
        other = {"metadata": {"labels": {"a": "2"}}, "endpoints": None}
        self.assertTrue(strategy_for("discovery.k8s.io", "EndpointSlice").generation_changes(piece, other))
        self.assertFalse(strategy_for("scheduling.k8s.io", "PriorityClass").generation_changes({"value": 1}, {}))

    def test_grace_period(self) -> None:
        """A pod on a node has the time its spec gives it; one that runs nowhere, or is finished, has none."""
        strategy = strategy_for("", "Pod")
        spec = {"terminationGracePeriodSeconds": 30, "nodeName": "n"}
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions()), 30)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=5)), 5)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=-3)), 1)
        self.assertEqual(strategy.grace_period({"spec": {"terminationGracePeriodSeconds": 30}}, DeleteOptions()), 0)
        done = {"spec": spec, "status": {"phase": "Succeeded"}}
        self.assertEqual(strategy.grace_period(done, DeleteOptions()), 0)
        self.assertIsNone(strategy_for("", "ConfigMap").grace_period({}, DeleteOptions()))

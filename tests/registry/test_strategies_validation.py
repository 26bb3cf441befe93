"""Tests for L{kubetwist.registry.generic.validation}, through the strategies that use it."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.batch.schedule import CronError, check_schedule
from kubetwist.registry.core.node.validation import validate_node_update
from kubetwist.registry.core.persistentvolumeclaim.validation import validate_claim_status_update
from kubetwist.registry.strategies import strategy_for

CONTAINER = {"name": "c", "image": "app:1"}


def copy(obj: Any) -> Any:
    """An object that can be changed without harm."""
    return orjson.loads(orjson.dumps(obj))


def made(group: str, kind: str, **parts: Any) -> dict[str, Any]:
    """An object of C{kind}, with defaults, as it is when it is validated."""
    obj: dict[str, Any] = copy({"metadata": {"name": "x", "namespace": "ns", "uid": "u"}, **parts})
    strategy_for(group, kind).default(obj)
    strategy_for(group, kind).prepare_for_create(obj)
    return obj


def problems(group: str, kind: str, **parts: Any) -> list[str]:
    """What is wrong with a new object."""
    return [str(cause) for cause in strategy_for(group, kind).validate(made(group, kind, **parts))]


def change_problems(group: str, kind: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is wrong with a change; both are what differs from an empty object."""
    before, after = made(group, kind, **old), made(group, kind, **new)
    return [str(cause) for cause in strategy_for(group, kind).validate_update(after, before)]


class PodTests(SynchronousTestCase):
    """Pods."""

    def pod(self, **spec: Any) -> list[str]:
        """The problems of a pod with this spec."""
        return problems("", "Pod", spec={"containers": [CONTAINER], **spec})

    def test_good(self) -> None:
        """A plain pod is valid."""
        self.assertEqual(self.pod(), [])

    def test_no_containers(self) -> None:
        """A pod runs something."""
        self.assertEqual(self.pod(containers=[]), ["spec.containers: Required value"])

    def test_all_at_once(self) -> None:
        """All that is wrong is told at once, container by container, then the pod's own fields."""
        found = self.pod(
            restartPolicy="Sometimes",
            dnsPolicy="Magic",
            containers=[
                {"name": "c", "image": "", "imagePullPolicy": "Perhaps"},
                {"name": "c", "image": "b", "ports": [{"containerPort": 70000, "protocol": "HTTP"}]},
                {"name": "d", "image": "c", "volumeMounts": [{"name": "gone", "mountPath": "/x"}]},
            ],
        )
        self.assertEqual(
            found,
            [
                "spec.containers[0].image: Required value",
                'spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps": supported values: "Always", '
                '"IfNotPresent", "Never"',
                "spec.containers[1].ports[0].containerPort: Invalid value: 70000: "
                "must be between 1 and 65535, inclusive",
                'spec.containers[1].ports[0].protocol: Unsupported value: "HTTP": '
                'supported values: "SCTP", "TCP", "UDP"',
                'spec.containers[1].name: Duplicate value: "c"',
                'spec.containers[2].volumeMounts[0].name: Not found: "gone"',
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
                'spec.dnsPolicy: Unsupported value: "Magic": supported values: "ClusterFirstWithHostNet", '
                '"ClusterFirst", "Default", "None"',
            ],
        )

    def test_limits(self) -> None:
        """Nobody may ask for more than the limit."""
        resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
        found = self.pod(containers=[{**CONTAINER, "resources": resources}])
        self.assertEqual(
            found,
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        )

    def test_volume_with_two_sources(self) -> None:
        """A volume has one source; mounts of one with two lead nowhere."""
        volume = {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}
        mount = {"name": "v", "mountPath": "/v"}
        self.assertEqual(
            self.pod(volumes=[volume], containers=[{**CONTAINER, "volumeMounts": [mount]}]),
            [
                "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                'spec.containers[0].volumeMounts[0].name: Not found: "v"',
            ],
        )

    def test_variable_with_two_values(self) -> None:
        """A variable is given or taken from somewhere, not both."""
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
        env = [{"name": "A", "value": "1", "valueFrom": source}]
        self.assertEqual(
            self.pod(containers=[{**CONTAINER, "env": env}]),
            ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        )

    def test_probe_of_init_container(self) -> None:
        """What ends before the others start is not probed, unless it is a sidecar."""
        probe = {"tcpSocket": {"port": 1}}
        init = {**CONTAINER, "name": "i", "livenessProbe": probe}
        self.assertEqual(
            self.pod(initContainers=[init]),
            [
                "spec.initContainers[0].livenessProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always"
            ],
        )
        self.assertEqual(self.pod(initContainers=[{**init, "restartPolicy": "Always"}]), [])

    def test_tolerations(self) -> None:
        """An operator that does not fit, an effect that is none."""
        self.assertEqual(
            self.pod(tolerations=[{"operator": "Equal"}, {"key": "b", "effect": "Never"}]),
            [
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"',
                'spec.tolerations[1].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"',
            ],
        )

    def test_ephemeral_containers(self) -> None:
        """Ephemeral containers come later."""
        self.assertEqual(
            self.pod(ephemeralContainers=[{"name": "e", "image": "x"}]),
            ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
        )

    def test_image_may_change(self) -> None:
        """The image of a running pod may change."""
        new = {"spec": {"containers": [{**CONTAINER, "image": "app:1.1"}]}}
        self.assertEqual(change_problems("", "Pod", {"spec": {"containers": [CONTAINER]}}, new), [])

    def test_little_else_may_change(self) -> None:
        """Most of a running pod may not change; the message names what may."""
        old = {"spec": {"containers": [CONTAINER]}}
        found = change_problems("", "Pod", old, {"spec": {"containers": [CONTAINER], "hostname": "h"}})
        self.assertEqual(len(found), 1)
        self.assertIn("spec: Forbidden: pod updates may not change fields other than", found[0])
        self.assertIn('\n- "Hostname": "",\n+ "Hostname": "h",\n', found[0])

    def test_containers_stay(self) -> None:
        """Containers of a running pod are neither added nor removed."""
        new = {"spec": {"containers": [CONTAINER, {"name": "d", "image": "x"}]}}
        self.assertEqual(
            change_problems("", "Pod", {"spec": {"containers": [CONTAINER]}}, new),
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
        )

    def test_deadline_comes_nearer(self) -> None:
        """A deadline can be set and brought forward, not put off or taken away."""
        soon, late = ({"spec": {"containers": [CONTAINER], "activeDeadlineSeconds": n}} for n in (50, 90))
        none = {"spec": {"containers": [CONTAINER]}}
        self.assertEqual(change_problems("", "Pod", late, soon), [])
        self.assertEqual(change_problems("", "Pod", none, soon), [])
        self.assertEqual(
            change_problems("", "Pod", soon, late),
            ["spec.activeDeadlineSeconds: Invalid value: 90: must be less than or equal to previous value"],
        )
        self.assertIn("must not update from a positive integer to nil value", change_problems("", "Pod", soon, none)[0])

    def test_duplicate_port_warning(self) -> None:
        """A port defined twice is accepted with a warning."""
        ports = [{"containerPort": 80, "protocol": "TCP"}] * 2
        pod = made("", "Pod", spec={"containers": [{**CONTAINER, "ports": ports}]})
        self.assertEqual(
            list(strategy_for("", "Pod").warnings(pod, None)),
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        )

    @settings(max_examples=50, deadline=None)
    @given(
        spec=st.recursive(
            st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2),
            max_leaves=3,
        )
    )
    def test_odd_node_selectors(self, spec: object) -> None:
        """Whatever labels a node selector has, validation ends with causes, never with an exception."""
        selector = {str(spec): str(spec)}
        for text in self.pod(nodeSelector=selector):
            self.assertTrue(text.startswith("spec.nodeSelector: "), text)


class WorkloadTests(SynchronousTestCase):
    """Deployments and their kin."""

    TEMPLATE: ClassVar[dict[str, Any]] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    SPEC: ClassVar[dict[str, Any]] = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}

    def test_good(self) -> None:
        """The plainest ones are valid."""
        for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"):
            self.assertEqual(problems("apps", kind, spec=self.SPEC), [], kind)

    def test_closed_gate(self) -> None:
        """What is behind a closed gate is dropped when it is stored, not before: who sends it owns it."""
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
        strategy = strategy_for("apps", "StatefulSet")
        obj: dict[str, Any] = copy({"metadata": {}, "spec": {**self.SPEC, "updateStrategy": rolling}})
        strategy.default(obj)
        self.assertEqual(obj["spec"]["updateStrategy"]["rollingUpdate"], {"maxUnavailable": 1, "partition": 0})
        strategy.prepare_for_update(obj, copy(obj))
        self.assertEqual(obj["spec"]["updateStrategy"]["rollingUpdate"], {"partition": 0})

    def test_bare(self) -> None:
        """A deployment without a spec lacks a selector, labels that it could match, and containers."""
        self.assertEqual(
            problems("apps", "Deployment"),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                "spec.template.spec.containers: Required value",
            ],
        )

    def test_mismatch(self) -> None:
        """The selector has to find the pods, which are always restarted."""
        template = {"metadata": {"labels": {"a": "c"}}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        self.assertEqual(
            problems("apps", "Deployment", spec={**self.SPEC, "replicas": -2, "template": template}),
            [
                "spec.replicas: Invalid value: -2: must be greater than or equal to 0",
                'spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`',
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            ],
        )

    def test_selector_stays(self) -> None:
        """A selector is chosen once."""
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
        found = strategy_for("apps", "Deployment").validate_status_update(obj, {"metadata": {}})
        self.assertEqual(
            [str(cause) for cause in found],
            ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
        )

    def test_stateful_set_changes(self) -> None:
        """A stateful set's pods keep their names and their storage."""
        new = {"spec": {**self.SPEC, "serviceName": "other"}}
        found = change_problems("apps", "StatefulSet", {"spec": self.SPEC}, new)
        self.assertEqual(len(found), 1)
        self.assertIn("spec: Forbidden: updates to statefulset spec for fields other than", found[0])

    def test_replication_controller(self) -> None:
        """A replication controller needs a template."""
        self.assertEqual(
            problems("", "ReplicationController", spec={}),
            ["spec.selector: Required value", "spec.template: Required value"],
        )

    def test_job(self) -> None:
        """A job's pods end; it finds them itself."""
        template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
        self.assertEqual(problems("batch", "Job", spec={"template": template}), [])
        self.assertEqual(
            problems("batch", "Job", spec={"template": {"spec": {"containers": [CONTAINER]}}}),
            ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        )
        chosen = {"template": template, "selector": {"matchLabels": {"a": "b"}}}
        self.assertIn("`selector` not auto-generated", problems("batch", "Job", spec=chosen)[0])

    def test_cron_job(self) -> None:
        """A cron job has a schedule, and a zone that exists."""
        template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}
        spec = {"schedule": "*/5 * * * mon-fri", "timeZone": "Europe/Berlin", "jobTemplate": template}
        self.assertEqual(problems("batch", "CronJob", spec=spec), [])
        self.assertEqual(
            problems("batch", "CronJob", spec={**spec, "schedule": "every day", "timeZone": "Mars/Base"}),
            [
                'spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day]',
                'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base',
            ],
        )


class CronTests(SynchronousTestCase):
    """Tests for L{check_schedule}."""

    def test_good(self) -> None:
        """Ranges, steps, lists, names and descriptors."""
        for schedule in ("* * * * *", "0-30/5 1,2 ? jan-mar SUN", "@daily", "@every 1h30m", "5/10 * * * *"):
            check_schedule(schedule)

    def test_bad(self) -> None:
        """Every mistake has its own text."""
        for schedule, text in (
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
            ("@never", "unrecognized descriptor: @never"),
        ):
            self.assertEqual(str(self.assertRaises(CronError, check_schedule, schedule)), text)

    @settings(max_examples=100, deadline=None)
    @given(schedule=st.text(alphabet="0123456789*/-,? @janmon", max_size=20))
    def test_total(self, schedule: str) -> None:
        """Any text is a schedule or is told why not."""
        try:
            check_schedule(schedule)
        except CronError as error:
            self.assertTrue(str(error))


class ConfigTests(SynchronousTestCase):
    """ConfigMaps, Secrets, quotas."""

    def test_keys(self) -> None:
        """A key is a file's name, and is there once."""
        self.assertEqual(
            problems("", "ConfigMap", data={"same": "x"}, binaryData={"same": "eA=="}),
            ['data[same]: Invalid value: "same": duplicate of key present in binaryData'],
        )
        self.assertIn("a valid config key must consist of", problems("", "ConfigMap", data={"a/b": ""})[0])

    def test_size(self) -> None:
        """A megabyte is the most, over all keys."""
        self.assertEqual(problems("", "ConfigMap", data={"a": "x" * 2**20}), [])
        found = problems("", "ConfigMap", data={"a": "x" * 2**20, "b": "x"})
        self.assertEqual(found, ["[]: Too long: may not be more than 1048576 bytes"])

    def test_immutable(self) -> None:
        """What is marked immutable stays so and stays as it is."""
        old = {"immutable": True, "data": {"a": "1"}}
        self.assertEqual(change_problems("", "ConfigMap", old, old), [])
        self.assertEqual(
            change_problems("", "ConfigMap", old, {"data": {"a": "2"}}),
            [
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
            ],
        )

    def test_secret_type(self) -> None:
        """A secret keeps its type, and holds what its type asks for."""
        self.assertEqual(
            change_problems("", "Secret", {"type": "a"}, {"type": "b"}),
            ['type: Invalid value: "b": field is immutable'],
        )
        self.assertEqual(
            problems("", "Secret", type="kubernetes.io/tls"),
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
        )

    def test_secret_is_not_shown(self) -> None:
        """What a secret holds does not stand in the message that refuses it."""
        found = problems("", "Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "hush"})
        self.assertEqual(len(found), 1)
        self.assertNotIn("hush", found[0])
        self.assertTrue(found[0].endswith("invalid character 'h' looking for beginning of value"), found[0])
        found = problems("", "Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "[1]"})
        self.assertTrue(found[0].endswith("cannot unmarshal array into Go value of type map[string]interface {}"))

    def test_quota(self) -> None:
        """A quota counts whole pods."""
        self.assertEqual(
            problems("", "ResourceQuota", spec={"hard": {"pods": "1500m"}}),
            ['spec.hard[pods]: Invalid value: "1500m": must be an integer'],
        )


class OtherTests(SynchronousTestCase):
    """The remaining groups, a rule or two each."""

    def test_role(self) -> None:
        """A rule says what may be done, to what; a role's do not reach beyond its namespace."""
        group = "rbac.authorization.k8s.io"
        self.assertEqual(
            problems(group, "Role", rules=[{"apiGroups": ["apps"], "resources": ["deployments"]}]),
            ["rules[0].verbs: Required value: verbs must contain at least one value"],
        )
        rule = {"verbs": ["get"], "nonResourceURLs": ["/x"]}
        self.assertEqual(problems(group, "ClusterRole", rules=[rule]), [])
        self.assertIn("namespaced rules cannot apply", problems(group, "Role", rules=[rule])[0])

    def test_role_of_binding_stays(self) -> None:
        """A binding is to one role for ever."""
        group = "rbac.authorization.k8s.io"
        old = {"roleRef": {"kind": "Role", "name": "a"}}
        found = change_problems(group, "RoleBinding", old, {"roleRef": {"kind": "ClusterRole", "name": "view"}})
        self.assertEqual(
            found,
            [
                'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"view"}: '
                "cannot change roleRef"
            ],
        )

    def test_ingress(self) -> None:
        """An ingress leads somewhere, to one kind of thing."""
        group = "networking.k8s.io"
        self.assertEqual(
            problems(group, "Ingress", spec={}),
            ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
        )
        self.assertEqual(
            problems(group, "Ingress", spec={"rules": []}),
            ["spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"],
        )
        backend = {"service": {"name": "s", "port": {"number": 80}}, "resource": {"kind": "B", "name": "b"}}
        self.assertEqual(
            problems(group, "Ingress", spec={"defaultBackend": backend}),
            ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends'],
        )

    def test_api_service(self) -> None:
        """An APIService is named after what it serves; its priorities have limits."""
        group = "apiregistration.k8s.io"
        spec = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 0, "versionPriority": 1001}
        self.assertEqual(
            problems(group, "APIService", spec=spec),
            [
                "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
                "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            ],
        )
        names = strategy_for(group, "APIService").names_for({"spec": spec})
        self.assertEqual(names("v1.example.com", False), [])
        self.assertEqual(names("x", False), ['must be `spec.version+"."+spec.group`: "v1.example.com"'])
        self.assertEqual(names("a/b", False), ["may not contain '/'"])

    def test_limit_ranges(self) -> None:
        """Limits agree with each other; those of pods have no defaults, which are not looked at then."""
        item = {
            "type": "Pod",
            "max": {"cpu": "2", "services": "-1"},
            "min": {"cpu": "1"},
            "default": {"cpu": "5", "Bad!": "1"},
            "maxLimitRequestRatio": {"cpu": "3"},
        }
        self.assertEqual(
            problems("", "LimitRange", spec={"limits": [item]}),
            [
                'spec.limits[0].max[services]: Invalid value: "services": must be a standard resource for containers',
                "spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
                "ratio 3 is greater than max/min = 2.000000",
            ],
        )
        item = {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "3"}, "defaultRequest": {"cpu": "1"}}
        self.assertEqual(
            problems("", "LimitRange", spec={"limits": [item]}),
            ['spec.limits[0].default[cpu]: Invalid value: "2": default value 3 is greater than max value 2'],
        )
        item = {"type": "PersistentVolumeClaim", "maxLimitRequestRatio": {"stor": "2"}}
        self.assertEqual(
            [one.partition(":")[0] for one in problems("", "LimitRange", spec={"limits": [item]})],
            ["spec.limits[0].limits", "spec.limits[0].maxLimitRequestRatio[stor]"],
        )

    def test_ratios_of_great_amounts(self) -> None:
        """Ratios are taken of thousandths, where those are numbers that Go has; and of nothing there is none."""
        for least, most, ratio, found in (
            ("100m", "250m", "2500m", ""),
            ("100m", "250m", "2501m", "2.500000"),
            ("1", "9223372036854775807", "2", ""),
            ("9223372036854775806", "9223372036854775807", "1500m", "1.000000"),
            ("0", "1", "9", ""),
        ):
            item = {"type": "Container", "min": {"cpu": least}, "max": {"cpu": most}}
            item["maxLimitRequestRatio"] = {"cpu": ratio}
            text = f"ratio {ratio} is greater than max/min = {found}"
            wanted = f'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "{ratio}": {text}'
            self.assertEqual(problems("", "LimitRange", spec={"limits": [item]}), [wanted] if found else [])

    def test_scopes_of_quotas(self) -> None:
        """What is wrong with a scope is told in its place, in the list and in the selector."""
        spec = {"hard": {"services": "1"}, "scopes": ["Terminating", "Odd", "Terminating", "NotTerminating"]}
        shown = '["Terminating","Odd","Terminating","NotTerminating"]'
        self.assertEqual(
            problems("", "ResourceQuota", spec=spec),
            [
                f"spec.scopes: Invalid value: {shown}: {text}"
                for text in (
                    "unsupported scope applied to resource",
                    "unsupported scope",
                    "unsupported scope applied to resource",
                    "unsupported scope applied to resource",
                    "conflicting scopes",
                )
            ],
        )
        once = {"spec": {"scopes": ["Terminating"]}}
        twice = {"spec": {"scopes": ["Terminating", "Terminating"]}}
        self.assertEqual(change_problems("", "ResourceQuota", twice, once), [])
        expressions = [
            {"scopeName": "Terminating", "operator": "In"},
            {"scopeName": "NotTerminating", "operator": "Exists"},
        ]
        found = problems("", "ResourceQuota", spec={"scopeSelector": {"matchExpressions": expressions}})
        path = "spec.scopeSelector.matchExpressions"
        self.assertEqual(
            [(one.partition(":")[0], one.rpartition(": ")[2][:25]) for one in found],
            [
                (f"{path}.operator", "must be 'Exists' when sco"),
                (f"{path}.values", "must be at least one valu"),
                (path, "conflicting scopes"),
            ],
        )

    def test_finalizer_of_namespace(self) -> None:
        """A finalizer of a namespace has a domain, unless it is the server's own."""
        self.assertEqual(problems("", "Namespace", spec={"finalizers": ["example.com/a"]}), [])
        self.assertEqual(
            problems("", "Namespace", spec={"finalizers": ["bare"]}),
            [
                'spec.finalizers: Invalid value: "bare": '
                "name is neither a standard finalizer name nor is it fully qualified"
            ],
        )

    def test_lease(self) -> None:
        """A lease lasts."""
        self.assertEqual(
            problems("coordination.k8s.io", "Lease", spec={"leaseDurationSeconds": 0}),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        )

    def test_priority_class(self) -> None:
        """The highest priorities are the system's."""
        self.assertEqual(
            problems("scheduling.k8s.io", "PriorityClass", value=1000000001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        )

    def test_runtime_class(self) -> None:
        """The tolerations of a runtime class differ in more than their time."""
        twice = [
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": time} for time in (1, 2)
        ]
        self.assertEqual(
            problems("node.k8s.io", "RuntimeClass", handler="h", scheduling={"tolerations": twice}),
            [
                'scheduling.tolerations[1]: Duplicate value: {"Key":"k","Operator":"Exists","Value":"",'
                '"Effect":"NoExecute","TolerationSeconds":2}'
            ],
        )

    def test_storage_class(self) -> None:
        """A storage class keeps its provisioner."""
        self.assertEqual(
            change_problems("storage.k8s.io", "StorageClass", {"provisioner": "a/b"}, {"provisioner": "c/d"}),
            ['provisioner: Invalid value: "c/d": field is immutable'],
        )

    def test_claim(self) -> None:
        """A claim asks for something, and does not change once made."""
        self.assertEqual(
            problems("", "PersistentVolumeClaim", spec={}),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        )
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        larger = {**spec, "resources": {"requests": {"storage": "2Gi"}}}
        found = change_problems("", "PersistentVolumeClaim", {"spec": spec}, {"spec": larger})
        self.assertEqual(len(found), 1)
        self.assertIn("spec is immutable after creation", found[0])

    def test_given_to_claim(self) -> None:
        """A claim is given storage, or what somebody else counts, and is told of it in words that are known."""
        many = {"storage": "1Gi", "example.com/iops": "5", "cpu": "1", "a b": "1"}
        words = dict.fromkeys(many, "NodeResizePending")
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"spec": spec, "status": {"allocatedResources": many, "allocatedResourceStatuses": words}}
        found = [str(cause) for cause in validate_claim_status_update(claim, claim)]
        for path, (bad, odd) in zip(
            ("allocatedResourceStatuses", "allocatedResources"), (found[:2], found[2:]), strict=True
        ):
            self.assertTrue(bad.startswith(f'status.{path}: Invalid value: "a b": name part must consist of'), bad)
            self.assertEqual(odd, f'status.{path}: Unsupported value: "cpu": supported values: "storage"')
        status = {"allocatedResources": {"storage": "-1"}, "allocatedResourceStatuses": {"storage": "Odd"}}
        first, second = (str(cause) for cause in validate_claim_status_update({**claim, "status": status}, claim))
        self.assertTrue(first.startswith('status.allocatedResourceStatuses: Unsupported value: "storage": '), first)
        self.assertIn("must be a valid resource quantity", second)

    def test_node(self) -> None:
        """What a node is called outside stays as it is; so does each of its ranges of addresses."""
        old = {"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}}
        new = {"spec": {"podCIDRs": ["10.0.1.0/24", "fd01::/64"], "externalID": "x"}}
        found = [cause.field for cause in validate_node_update(new, old)]
        self.assertEqual(found, ["spec.podCIDRs", "spec.podCIDRs", "spec.externalID"])
        self.assertEqual([cause.field for cause in validate_node_update({}, old)], ["spec.podCIDRs"])
        self.assertEqual(validate_node_update(old, old), [])

    def test_budget(self) -> None:
        """A budget has one bound."""
        found = problems("policy", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})
        self.assertEqual(len(found), 1)
        self.assertIn("minAvailable and maxUnavailable cannot be both set", found[0])

    def test_event(self) -> None:
        """An event lives where the object lives that it is about."""
        about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
        self.assertEqual(
            problems("", "Event", involvedObject=about),
            ['involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'],
        )


class AutoscalerTests(SynchronousTestCase):
    """HorizontalPodAutoscalers."""

    def test_two_sources(self) -> None:
        """A metric has the source of its type and no other; of two, only the first one is looked into."""
        pods = {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": "1"}}
        resource = {"name": "", "target": {"type": "Utilization", "averageUtilization": 50}}
        metric = {"type": "Resource", "pods": pods, "resource": resource}
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        found = problems(
            "autoscaling",
            "HorizontalPodAutoscaler",
            spec={"maxReplicas": 2, "scaleTargetRef": target, "metrics": [metric]},
        )
        self.assertEqual(found, ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"])

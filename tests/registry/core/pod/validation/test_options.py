"""Tests of L{kubetwist.registry.core.pod.validation.options}: each gate of the validation, in both positions."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates, Release
from kubetwist.registry.core.pod.strategy import PodStrategy
from kubetwist.registry.core.pod.validation.options import DELETION_COST, PodValidationOptions
from tests.registry.gatetools import create_errors, created, gated, update_errors
from tests.registry.strategytools import CONTAINER, copy


def spec_of(**parts: Any) -> dict[str, Any]:
    """Return a spec with a container."""
    return {"containers": [CONTAINER], **parts}


def container(**parts: Any) -> dict[str, Any]:
    """Return a spec whose container has some fields."""
    return spec_of(containers=[{**CONTAINER, **parts}])


def init_container(**parts: Any) -> dict[str, Any]:
    """Return a spec whose init container has some fields."""
    return spec_of(initContainers=[{**CONTAINER, "name": "i", **parts}])


def toleration(**parts: Any) -> dict[str, Any]:
    """Return a spec with a toleration."""
    return spec_of(tolerations=[{"key": "k", **parts}])


@frozen
class Case:
    """
    A spec that is valid if a gate is enabled.

    @ivar gate: The gate.
    @ivar release: A release in which the gate can have both values.
    @ivar spec: The spec.
    @ivar errors: The errors of the spec if the gate is disabled; empty if the field is dropped.
    @ivar kept: The errors of an update of a pod that has the spec already.
    """

    gate: str
    release: Release
    spec: dict[str, Any]
    errors: list[str]
    kept: list[str] = field(factory=list)


_C = "spec.containers[0]"
_I = "spec.initContainers[0]"
_RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}
_ENV_NAME = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
_SEARCH = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_OPERATORS = 'supported values: "Equal", "Exists", "Lt", "Gt"'
_SOURCES = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
CASES = (
    Case(
        "RelaxedEnvironmentVariableValidation",
        (1, 33),
        container(env=[{"name": "1"}]),
        [f'{_C}.env[0].name: Invalid value: "1": {_ENV_NAME}'],
    ),
    Case(
        "RelaxedEnvironmentVariableValidation",
        (1, 33),
        container(envFrom=[{"prefix": "1", "secretRef": {"name": "s"}}]),
        [f'{_C}.envFrom[0].prefix: Invalid value: "1": {_ENV_NAME}'],
    ),
    Case(
        "RelaxedDNSSearchValidation",
        (1, 33),
        spec_of(dnsConfig={"searches": ["a_b"]}),
        [f'spec.dnsConfig.searches[0]: Invalid value: "a_b": {_SEARCH}'],
    ),
    Case(
        "RelaxedDNSSearchValidation",
        (1, 33),
        spec_of(dnsConfig={"searches": ["."]}),
        [f'spec.dnsConfig.searches[0]: Invalid value: "": {_SEARCH}'],
    ),
    Case(
        "PodLifecycleSleepActionAllowZero",
        (1, 33),
        container(lifecycle={"preStop": {"sleep": {"seconds": 0}}}),
        [
            f"{_C}.lifecycle.preStop.sleep: Invalid value: 0: must be greater than 0 and less than "
            "terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero "
            "sleep."
        ],
    ),
    Case(
        "UserNamespacesHostNetworkSupport",
        (1, 36),
        spec_of(hostUsers=False, hostNetwork=True),
        ["spec.hostNetwork: Forbidden: when `hostUsers` is false"],
    ),
    Case(
        "SELinuxMount",
        (1, 36),
        spec_of(securityContext={"seLinuxChangePolicy": "MountOption"}),
        ['spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"'],
    ),
    Case(
        "TaintTolerationComparisonOperators",
        (1, 36),
        toleration(operator="Gt", value="-5"),
        [f'spec.tolerations[0].operator: Unsupported value: "Gt": {_OPERATORS}'],
    ),
    Case(
        "EnvFiles",
        (1, 36),
        {
            **container(
                env=[{"name": "E", "valueFrom": {"fileKeyRef": {"key": "K", "path": "p", "volumeName": "v"}}}],
            ),
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
        [f'{_C}.env[0].valueFrom: Invalid value: "": {_SOURCES}'],
    ),
    Case("ContainerRestartRules", (1, 36), container(restartPolicy="Never"), []),
    Case("ContainerRestartRules", (1, 36), init_container(restartPolicy="Never", restartPolicyRules=[_RULE]), []),
    Case(
        "RestartAllContainersOnContainerExits",
        (1, 36),
        container(restartPolicy="Never", restartPolicyRules=[{**_RULE, "action": "RestartAllContainers"}]),
        [
            f'{_C}.restartPolicyRules[0].action: Unsupported value: "RestartAllContainers": supported values: '
            '"Restart"',
        ],
    ),
    Case(
        "RestartAllContainersOnContainerExits",
        (1, 36),
        init_container(restartPolicy="Always", restartPolicyRules=[_RULE]),
        [
            f"{_I}.restartPolicyRules: Forbidden: restartPolicyRules are not allowed for init containers with restart "
            "policy Always"
        ],
    ),
    Case("PodLevelResources", (1, 36), spec_of(resources={"limits": {"cpu": "1"}}), []),
    Case("ImageVolume", (1, 35), spec_of(volumes=[{"name": "v", "image": {"reference": "r"}}]), []),
    Case(
        "InPlacePodVerticalScaling",
        (1, 34),
        init_container(restartPolicy="Always", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]),
        [],
    ),
)


class GateTests(SynchronousTestCase):
    """Tests of specs that gates make valid."""

    def test_enabled(self) -> None:
        """The specs are valid if the gate is enabled."""
        for case in CASES:
            strategy = gated("", "Pod", case.release, **{case.gate: True})
            self.assertEqual(create_errors(strategy, spec=case.spec), [], case)

    def test_disabled(self) -> None:
        """They are not valid if the gate is disabled, or lack the field."""
        for case in CASES:
            strategy = gated("", "Pod", case.release, **{case.gate: False})
            self.assertEqual(create_errors(strategy, spec=case.spec), case.errors, case)

    def test_in_use(self) -> None:
        """Updates of pods that have the values already are valid if the gate is disabled."""
        for case in CASES:
            old = created(gated("", "Pod", case.release, **{case.gate: True}), spec=case.spec)
            strategy = gated("", "Pod", case.release, **{case.gate: False})
            self.assertEqual(update_errors(strategy, old, spec=old["spec"]), case.kept, case)

    def test_templates(self) -> None:
        """The same holds for templates."""
        labels = {"a": "b"}
        for case in CASES:
            template = {"metadata": {"labels": labels}, "spec": case.spec}
            spec = {"selector": {"matchLabels": labels}, "template": template}
            on, off = (gated("apps", "Deployment", case.release, **{case.gate: value}) for value in (True, False))
            self.assertEqual(create_errors(on, spec=spec), [], case)
            expected = [error.replace("spec.", "spec.template.spec.", 1) for error in case.errors]
            self.assertEqual(create_errors(off, spec=spec), expected, case)
            old = created(on, spec=spec)
            self.assertEqual(update_errors(off, old, spec=old["spec"]), case.kept, case)


class RuleTests(SynchronousTestCase):
    """Tests of rules for more than one value."""

    def test_comparisons(self) -> None:
        """Tolerations that compare numbers have canonical integers of 64 bits."""
        strategy = gated("", "Pod", TaintTolerationComparisonOperators=True)
        path, canonical = "spec.tolerations[0].value", "must be a valid decimal integer in canonical form"
        for value, errors in (
            ("0", []),
            ("-9223372036854775808", []),
            ("007", [canonical]),
            ("+7", [canonical]),
            ("x", [canonical, 'strconv.ParseInt: parsing "x": invalid syntax']),
            ("", ["must be non-empty", 'strconv.ParseInt: parsing "": invalid syntax']),
            ("9223372036854775808", ['strconv.ParseInt: parsing "9223372036854775808": value out of range']),
        ):
            expected = [f'{path}: Invalid value: "{value}": {text}' for text in errors]
            self.assertEqual(create_errors(strategy, spec=toleration(operator="Lt", value=value)), expected)

    def test_old_operators(self) -> None:
        """Releases before the operators do not name them."""
        strategy = gated("", "Pod", (1, 34))
        text = 'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"'
        self.assertEqual(create_errors(strategy, spec=toleration(operator="Gt", value="1")), [text])

    def test_restart_policies_of_old_releases(self) -> None:
        """Until 1.33, only sidecars have restart policies."""
        strategy = gated("", "Pod", (1, 33))
        self.assertEqual(
            create_errors(strategy, spec=container(restartPolicy="Always")),
            [f"{_C}.restartPolicy: Forbidden: may not be set for non-init containers"],
        )
        self.assertEqual(
            create_errors(strategy, spec=init_container(restartPolicy="Never")),
            [f'{_I}.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
        )

    def test_resize_policies(self) -> None:
        """Until 1.32, only init containers of stored pods have resize policies."""
        spec = init_container(
            restartPolicy="Always", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}]
        )
        strategy = gated("", "Pod", (1, 32), InPlacePodVerticalScaling=True)
        shown = '[{"ResourceName":"cpu","RestartPolicy":"NotRequired"}]'
        text = f"{_I}.resizePolicy: Invalid value: {shown}: must not be set for init containers"
        self.assertEqual(create_errors(strategy, spec=spec), [text])
        self.assertEqual(update_errors(strategy, created(strategy, spec=spec), spec=spec), [])

    def test_host_users(self) -> None:
        """Until 1.33, errors name a field of Go, and containers may have volume devices."""
        spec = {
            **container(volumeDevices=[{"name": "v", "devicePath": "/d"}]),
            "hostUsers": False,
            "hostPID": True,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        }
        text = "spec.HostPID: Forbidden: when `pod.Spec.HostUsers` is false"
        self.assertEqual(create_errors(gated("", "Pod", (1, 33)), spec=spec), [text])
        self.assertEqual(
            create_errors(gated("", "Pod", (1, 34)), spec=spec),
            [f"{path}: Forbidden: when `hostUsers` is false" for path in ("spec.HostPID", f"{_C}.volumeDevices")],
        )

    def test_deletion_cost(self) -> None:
        """The deletion cost is validated if its gate is enabled, unless the stored one is invalid."""
        metadata = {"name": "x", "namespace": "ns", "uid": "u", "annotations": {DELETION_COST: "x"}}
        pod: dict[str, Any] = {"metadata": metadata, "spec": spec_of()}
        on, off = (gated("", "Pod", PodDeletionCost=value) for value in (True, False))
        text = f'metadata.annotations[{DELETION_COST}]: Invalid value: "x": must be a 32bit integer'
        for strategy, errors in ((on, [text]), (off, [])):
            obj = copy(pod)
            strategy.default(obj)
            strategy.prepare_for_create(obj)
            self.assertEqual([str(error) for error in strategy.validate(obj)], errors)
            self.assertEqual(list(strategy.validate_update(obj, copy(obj))), [])

    def test_spread_keys(self) -> None:
        """The keys of spread constraints are merged into their selectors, or must not be in them."""
        constraint = {
            "maxSkew": 1,
            "topologyKey": "t",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "1"}},
            "matchLabelKeys": ["a"],
        }
        spec = spec_of(topologySpreadConstraints=[constraint])
        text = 'Invalid value: "a": exists in both matchLabelKeys and labelSelector'
        separate = f"spec.topologySpreadConstraints[0].matchLabelKeys[0]: {text}"
        merge = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
        on, off = (gated("", "Pod", **{merge: value}) for value in (True, False))
        # Only the merged keys of pods are duplicates: this pod has no labels.
        self.assertEqual(create_errors(on, spec=spec), [])
        self.assertEqual(create_errors(off, spec=spec), [separate])
        self.assertEqual(create_errors(gated("", "Pod", (1, 33)), spec=spec), [separate])
        missing = spec_of(topologySpreadConstraints=[{**constraint, "labelSelector": None}])
        text = "must not be specified when labelSelector is not set"
        self.assertEqual(
            create_errors(off, spec=missing), [f"spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: {text}"]
        )
        # A stored pod that violates one rule is validated by the other one.
        self.assertEqual(update_errors(off, created(on, spec=spec), spec=spec), [])
        self.assertEqual(
            update_errors(gated("", "Pod", MatchLabelKeysInPodTopologySpread=False), created(on, spec=spec), spec=spec),
            [separate],
        )

    def test_relaxed_names(self) -> None:
        """New variables have strict names, even if a stored variable has none."""
        on, off = (gated("", "Pod", (1, 33), RelaxedEnvironmentVariableValidation=value) for value in (True, False))
        old = created(on, spec=container(env=[{"name": "1"}]))
        template = {"metadata": {"labels": {"a": "b"}}}
        self.assertEqual(update_errors(off, old, spec=old["spec"]), [])
        options = PodValidationOptions(FeatureGates((1, 33), {"RelaxedEnvironmentVariableValidation": False}))
        update = options.for_update({**template, "spec": old["spec"]})
        self.assertTrue(update.env_name_validator(container(env=[{"name": "2"}]))("2"))
        self.assertFalse(update.env_name_validator(container(env=[{"name": "1"}, {"name": "2"}]))("2"))

    def test_nothing_is_stored(self) -> None:
        """An update of an object without a template permits no more than a creation."""
        options = PodValidationOptions(FeatureGates())
        self.assertFalse(options.for_update(None).allows("SELinuxMount"))
        self.assertFalse(options.allows("SELinuxMount"))
        self.assertTrue(options.allows("EnvFiles"))


class StatusTests(SynchronousTestCase):
    """Tests of the validation of statuses."""

    def errors(self, strategy: Any, spec: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        """Return the errors of a change of the status."""
        pod = {"metadata": {"name": "x"}, "spec": spec}
        found = strategy.validate_status_update({**pod, "status": after}, {**pod, "status": before})
        return [str(error) for error in found]

    def test_nominated_node(self) -> None:
        """A pod that is bound to a node can be nominated if the gate is disabled."""
        for enabled in (True, False):
            strategy = gated("", "Pod", ClearingNominatedNodeNameAfterBinding=enabled)
            found = self.errors(strategy, spec_of(nodeName="n"), {}, {"nominatedNodeName": "m"})
            text = "may not be set on pods that are already bound to a node"
            self.assertEqual(found, [f"status.nominatedNodeName: Forbidden: {text}"] if enabled else [])

    def test_restarts(self) -> None:
        """Without restart rules, the policy of the pod decides whether containers can run again."""
        ended = {"name": "c", "state": {"terminated": {"exitCode": 1}}}
        running = {"name": "c", "state": {"running": {}}}
        text = "may not be transitioned to non-terminated state"
        on, off = (gated("", "Pod", ContainerRestartRules=value) for value in (True, False))
        before, after = {"containerStatuses": [ended]}, {"containerStatuses": [running]}
        spec = {**container(restartPolicyRules=[_RULE]), "restartPolicy": "Never"}
        self.assertEqual(
            self.errors(off, spec, before, after), [f"status.containerStatuses[0].state: Forbidden: {text}"]
        )
        stored = {**container(restartPolicy="Never", restartPolicyRules=[_RULE]), "restartPolicy": "Never"}
        self.assertEqual(self.errors(on, stored, before, after), [])
        self.assertEqual(self.errors(off, stored, before, after), [])
        for policy in ("Always", "OnFailure"):
            self.assertEqual(self.errors(off, spec_of(restartPolicy=policy), before, after), [])
        sidecar = {**init_container(restartPolicy="Always"), "restartPolicy": "Never"}
        before, after = (
            {"initContainerStatuses": [{**status, "name": "i"}]} for status in (before["containerStatuses"][0], running)
        )
        self.assertEqual(self.errors(off, sidecar, before, after), [])
        self.assertEqual(
            self.errors(off, {**init_container(), "restartPolicy": "Never"}, before, after),
            [f"status.initContainerStatuses[0].state: Forbidden: {text}"],
        )
        before, after = ({"ephemeralContainerStatuses": [status]} for status in (ended, running))
        self.assertEqual(
            self.errors(on, spec_of(restartPolicy="Always"), before, after),
            [f"status.ephemeralContainerStatuses[0].state: Forbidden: {text}"],
        )

    def test_quality(self) -> None:
        """The quality of service is immutable since 1.32."""
        before, after = {"qosClass": "Guaranteed"}, {"qosClass": "Burstable"}
        text = 'status.qosClass: Invalid value: "Burstable": field is immutable'
        self.assertEqual(self.errors(gated("", "Pod", (1, 32)), spec_of(), before, after), [text])
        self.assertEqual(self.errors(gated("", "Pod", (1, 31)), spec_of(), before, after), [])

    def test_image_references(self) -> None:
        """The references of image volumes are validated if the gate is enabled."""
        path = "status.containerStatuses[0].volumeMounts[0].volumeStatus.imageVolumeStatus.imageRef"
        for reference, text in (
            ("", "Required value: imageRef must not be empty"),
            ("x" * 257, "Too long: may not be more than 256 bytes"),
            ("x", None),
        ):
            status = {"containerStatuses": [{"volumeMounts": [{"volumeStatus": {"image": {"imageRef": reference}}}]}]}
            for enabled in (True, False):
                found = self.errors(gated("", "Pod", ImageVolumeWithDigest=enabled), spec_of(), {}, status)
                self.assertEqual(found, [f"{path}: {text}"] if enabled and text else [])


class ResizeTests(SynchronousTestCase):
    """Tests of resizes."""

    def resize(
        self, release: Release, old: dict[str, Any], new: dict[str, Any], **gates: bool
    ) -> tuple[Any, list[str]]:
        """Return the prepared spec and the errors of a resize."""
        strategy = gated("", "Pod", release, **gates)
        assert isinstance(strategy, PodStrategy)
        stored = created(strategy, spec=old)
        obj: dict[str, Any] = copy({**stored, "spec": created(strategy, spec=new)["spec"]})
        strategy.prepare_for_resize(obj, stored)
        return obj["spec"], [str(error) for error in strategy.validate_resize(obj, stored)]

    def sized(self, cpu: str, **parts: Any) -> dict[str, Any]:
        """Return the container of a spec."""
        return {**CONTAINER, "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": "1"}}, **parts}

    def test_whole(self) -> None:
        """Pod-level resources are resized if their gate is enabled."""
        old, new = (spec_of(resources={"requests": {"cpu": "1"}, "limits": {"cpu": cpu}}) for cpu in ("2", "3"))
        gate = "InPlacePodLevelResourcesVerticalScaling"
        spec, errors = self.resize((1, 36), old, new, **{gate: True})
        self.assertEqual((spec["resources"]["limits"], errors), ({"cpu": "3"}, []))
        spec, errors = self.resize((1, 36), old, new, **{gate: False})
        text = f"resize of pods with pod-level resources is forbidden when {gate}Enabled feature gate is disabled"
        self.assertEqual((spec["resources"]["limits"], errors), ({"cpu": "2"}, [f"[]: Forbidden: {text}"]))
        _, errors = self.resize((1, 34), old, new)
        self.assertEqual(errors, ["[]: Forbidden: pods with pod-level resources cannot be resized"])

    def test_memory(self) -> None:
        """In 1.33, only containers that are restarted reduce their memory limit, or add one."""
        large, small, none = (
            {"limits": {"cpu": "2", **memory}, "requests": {"cpu": "1", "memory": "1Mi"}}
            for memory in ({"memory": "2Mi"}, {"memory": "1Mi"}, {})
        )
        policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        path = f"{_C}.resources.limits[memory]"
        text = f"{path}: Forbidden: memory limits cannot be {{}} unless resizePolicy is RestartContainer"
        for release, before, after, policies, errors in (
            ((1, 33), large, small, [], [text.format("decreased")]),
            ((1, 33), none, large, [], [text.format("added")]),
            ((1, 33), large, small, policy, []),
            ((1, 33), small, large, [], []),
            ((1, 33), none, none, [], []),
            ((1, 34), large, small, [], []),
        ):
            old, new = (
                spec_of(containers=[{**CONTAINER, "resources": each, "resizePolicy": policies}])
                for each in (before, after)
            )
            self.assertEqual(self.resize(release, old, new)[1], errors)

    def test_init_containers(self) -> None:
        """Init containers are resized if their gate is enabled; before 1.36, only sidecars."""
        old, new = (spec_of(initContainers=[self.sized(cpu, name="i")]) for cpu in ("2", "3"))
        gate = "InPlacePodVerticalScalingInitContainers"
        self.assertEqual(self.resize((1, 36), old, new, **{gate: True})[1], [])
        text = "spec: Forbidden: resources for non-sidecar init containers are immutable"
        self.assertEqual(self.resize((1, 36), old, new, **{gate: False})[1], [text])
        self.assertEqual(self.resize((1, 35), old, new)[1], [text])

    def test_sidecars(self) -> None:
        """Sidecars are resized since 1.33."""
        old, new = (spec_of(initContainers=[self.sized(cpu, name="i", restartPolicy="Always")]) for cpu in ("2", "3"))
        for release, cpu in (((1, 36), "3"), ((1, 33), "3"), ((1, 32), "2")):
            spec, errors = self.resize(release, old, new)
            self.assertEqual((spec["initContainers"][0]["resources"]["limits"]["cpu"], errors), (cpu, []))
        old = spec_of(initContainers=[self.sized("2", name="i", restartPolicy="Always")])
        new = spec_of(initContainers=[{**old["initContainers"][0], "resources": {"limits": {"cpu": "2", "a/b": "1"}}}])
        text = "spec: Forbidden: only cpu and memory resources for sidecar containers are mutable"
        self.assertIn(text, self.resize((1, 35), old, new)[1])

    def test_resize_policies(self) -> None:
        """A resize drops resize policies if the gate is disabled."""
        old, new = (spec_of(containers=[self.sized("2", **parts)]) for parts in ({}, {"resizePolicy": [{}]}))
        for enabled in (True, False):
            strategy = gated("", "Pod", (1, 34), InPlacePodVerticalScaling=enabled)
            assert isinstance(strategy, PodStrategy)
            stored = created(strategy, spec=old)
            obj: dict[str, Any] = copy({**stored, "spec": {**stored["spec"], **new}})
            strategy.prepare_for_resize(obj, stored)
            self.assertEqual("resizePolicy" in obj["spec"]["containers"][0], enabled)

"""Tests of L{kubetwist.registry.core.pod.warnings} and the kinds that use it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.quantity import Quantity
from kubetwist.api.resource import JSONObject
from kubetwist.registry.core.pod.warnings import MAX_OVERLAPS, _overlapping, pod_warnings
from kubetwist.registry.generic.validation.addresses import address_warnings
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, made, problems

ODD = {"terminationGracePeriodSeconds": -1}
NEGATIVE = "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
NULL = "a null labelSelector results in matching no pod"


def warnings_for(annotations: dict[str, str] | None = None, path: str = "", **spec: Any) -> list[str]:
    """Return the warnings about a pod."""
    return pod_warnings(spec, {"annotations": annotations or {}}, FeatureGates(), path)


class PodTests(SynchronousTestCase):
    """Tests of warnings about pods."""

    def test_names(self) -> None:
        """The name of a new pod that is not a DNS label causes a warning, since it is the hostname."""
        strategy = strategy_for("", "Pod")
        for name, problem in (("a.b", "must not contain dots"), ("x" * 64, "must be no more than 63 characters")):
            new = {"metadata": {"name": name}, "spec": {}}
            (text,) = strategy.warnings(new, None)
            self.assertTrue(text.startswith("metadata.name: this is used in the Pod's hostname"))
            self.assertTrue(text.endswith(f"a DNS label is recommended: [{problem}]"))
            self.assertEqual(strategy.warnings(new, new), ())
        self.assertEqual(strategy.warnings({"metadata": {"name": "a-b"}, "spec": {}}, None), [])

    def test_labels(self) -> None:
        """Deprecated labels of nodes cause warnings in all selectors."""
        old = "beta.kubernetes.io/os"
        text = 'deprecated since v1.14; use "kubernetes.io/os" instead'
        term = {"matchExpressions": [{"key": "a"}, {"key": old, "values": ["b b"]}]}
        required = {"nodeSelectorTerms": [term]}
        affinity = {
            "requiredDuringSchedulingIgnoredDuringExecution": required,
            "preferredDuringSchedulingIgnoredDuringExecution": [{"preference": term}],
        }
        found = warnings_for(
            nodeSelector={old: "x"},
            affinity={"nodeAffinity": affinity},
            topologySpreadConstraints=[{"topologyKey": old, "labelSelector": {}}],
        )
        start = "spec.affinity.nodeAffinity"
        self.assertEqual(
            found[:3],
            [
                f"spec.nodeSelector[{old}]: {text}",
                f"{start}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].key: "
                f"{old} is {text}",
                f"{start}.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].key: "
                f"{old} is {text}",
            ],
        )
        self.assertIn("matchExpressions[1].values[0]: b b is invalid, a valid label must be", found[3])
        self.assertEqual(found[4], f"spec.topologySpreadConstraints[0].topologyKey: {old} is {text}")

    def test_no_selectors(self) -> None:
        """Selectors that match no pod cause warnings."""
        terms = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}],
        }
        found = warnings_for(topologySpreadConstraints=[{}], affinity={"podAffinity": terms, "podAntiAffinity": terms})
        ends = (
            "requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector",
            "preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector",
        )
        self.assertEqual(
            found,
            [f"spec.topologySpreadConstraints[0].labelSelector: {NULL}"]
            + [f"spec.affinity.{kind}.{end}: {NULL}" for kind in ("podAffinity", "podAntiAffinity") for end in ends],
        )

    def test_annotations(self) -> None:
        """Annotations without effect cause warnings, those of profiles if the field is missing."""
        seccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead'
        pod, container = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/c"
        annotations = {"scheduler.alpha.kubernetes.io/critical-pod": "", pod: "x", container: "x"}
        critical = 'non-functional in v1.16+; use the "priorityClassName" field instead'
        self.assertEqual(
            warnings_for(annotations, containers=[{"name": "c"}]),
            [
                f"metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: {critical}",
                f"metadata.annotations[{pod}]: {seccomp}",
                f"metadata.annotations[{container}]: {seccomp}",
            ],
        )
        del annotations["scheduler.alpha.kubernetes.io/critical-pod"]
        context = {"seccompProfile": {"type": "RuntimeDefault"}}
        fields = {"securityContext": context, "containers": [{"name": "c", "securityContext": context}]}
        self.assertEqual(warnings_for(annotations, **fields), [])

    def test_app_armor(self) -> None:
        """The AppArmor annotation causes a warning in a pod if it was applied, in a template without the field."""
        key = "container.apparmor.security.beta.kubernetes.io/c"
        text = f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
        local = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}
        taken = [{"name": "c", "securityContext": local}]

        def early(annotation: str, containers: Any, **spec: Any) -> list[str]:
            obj = {"metadata": {"annotations": {key: annotation}}, "spec": {"containers": containers, **spec}}
            return list(strategy_for("", "Pod").early_warnings(obj))

        self.assertEqual(early("localhost/x", [{"name": "c"}]), [text])
        self.assertEqual(early("nonsense", [{"name": "c"}]), [text])
        self.assertEqual(early("localhost/", [{"name": "c"}]), [text])
        self.assertEqual(early("localhost/x", [{"name": "c"}], securityContext=local), [])
        self.assertEqual(early("localhost/x", taken), [])
        self.assertEqual(early("localhost/x", [{"name": "c"}], os={"name": "windows"}), [])
        self.assertEqual(warnings_for({key: "localhost/x"}, containers=[{"name": "c"}]), [])
        path = "spec.template"
        self.assertEqual(
            warnings_for({key: "localhost/x"}, path, containers=[{"name": "c"}]), [f"spec.template.{text}"]
        )
        self.assertEqual(warnings_for({key: "localhost/x"}, path, containers=taken), [])
        self.assertEqual(
            warnings_for({key: "localhost/x"}, path, containers=[{"name": "c"}], securityContext=local), []
        )
        other = {"appArmorProfile": {"type": "RuntimeDefault"}}
        (found,) = warnings_for({key: "localhost/x"}, path, containers=[{"name": "c"}], securityContext=other)
        self.assertEqual(found, f"spec.template.{text}")

    def test_volumes(self) -> None:
        """Removed volume types and fractional bytes cause warnings."""
        volumes = [
            {"name": "a", "gitRepo": {}},
            {"name": "b", "storageos": {}},
            {"name": "c", "rbd": {}},
            {
                "name": "d",
                "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1m"}}}}},
            },
        ]
        self.assertEqual(
            warnings_for(volumes=volumes),
            [
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.volumes[1].storageOS: deprecated in v1.22, non-functional in v1.25+",
                "spec.volumes[2].rbd: deprecated in v1.28, non-functional in v1.31+",
                "spec.volumes[3].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
                'fractional byte value "1m" is invalid, must be an integer',
            ],
        )

    def test_overlaps(self) -> None:
        """Overlapping files of a volume cause warnings with their sources."""
        same = [{"path": "a"}, {"path": "a/b"}, {"path": "ab"}]
        self.assertEqual(
            warnings_for(volumes=[{"name": "v", "configMap": {"name": "m", "items": same}}]),
            ['volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a"'],
        )
        sources = [
            {"clusterTrustBundle": {"signerName": "Test", "path": "test/test"}},
            {"downwardAPI": {"items": [{"path": "test"}]}},
            {"secret": {"name": "Test", "items": [{"path": "test/"}]}},
            {"serviceAccountToken": {"path": "test"}},
            {},
        ]
        start = 'volume "v" (Projected)'
        bundle = '(ClusterTrustBundle "Test")'
        self.assertEqual(
            sorted(warnings_for(volumes=[{"name": "v", "projected": {"sources": sources}}])),
            [
                f"{start} has no sources provided",
                f'{start}: overlapping paths: "test" (DownwardAPI) with "test/test" (ClusterTrustBundle "Test")',
                f'{start}: overlapping paths: "test" (Secret "Test") with "test" (DownwardAPI)',
                f'{start}: overlapping paths: "test" (Secret "Test") with "test/test" (ClusterTrustBundle "Test")',
                f'{start}: overlapping paths: "test" (ServiceAccountToken) with "test" (DownwardAPI)',
                f'{start}: overlapping paths: "test" (ServiceAccountToken) with "test" (Secret "Test")',
                f'{start}: overlapping paths: "test" (ServiceAccountToken) with "test/test" {bundle}',
            ],
        )

    def test_repeats(self) -> None:
        """Duplicate entries cause a warning for the second one."""
        self.assertEqual(
            warnings_for(hostAliases=[{"ip": "1.1.1.1"}] * 3, imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}]),
            [
                'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"',
                'spec.hostAliases[2].ip: duplicate ip "1.1.1.1"',
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
        )

    def test_variables(self) -> None:
        """A duplicate variable causes a warning, unless it extends the first one."""
        values = ("a", "a", "", "$(a)", "$(a) $(a)")
        env = [{"name": "a", "value": value} for value in values]
        env.append({"name": "a", "value": "x$(a)", "valueFrom": {}})  # type: ignore[dict-item]
        text = 'hides previous definition of "a", which may be dropped when using apply'
        for kind in ("initContainers", "containers", "ephemeralContainers"):
            found = warnings_for(**{kind: [{"env": env}]})
            self.assertEqual(found, [f"spec.{kind}[0].env[{index}]: {text}" for index in (1, 2, 3, 5)])

    def test_bytes(self) -> None:
        """Fractional bytes cause warnings."""
        half = {"memory": "1500m", "cpu": "1500m", "ephemeral-storage": "1"}
        text = 'fractional byte value "1500m" is invalid, must be an integer'
        self.assertEqual(
            warnings_for(overhead=half, containers=[{"resources": {"limits": half, "requests": half}}]),
            [
                f"spec.overhead[memory]: {text}",
                f"spec.containers[0].resources.limits[memory]: {text}",
                f"spec.containers[0].resources.requests[memory]: {text}",
            ],
        )

    @given(
        st.one_of(
            st.integers(0, 10**6).map(str), st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,4})?(m|k|Ki|u|e-2)?", fullmatch=True)
        )
    )
    def test_any_amount(self, amount: str) -> None:
        """A quantity causes a warning if and only if it is not an integer."""
        found = warnings_for(containers=[{"resources": {"limits": {"memory": amount}}}])
        self.assertEqual(bool(found), Quantity.parse(amount).value.denominator != 1)

    def test_ports(self) -> None:
        """Duplicate ports cause a warning that depends on the risk."""
        port = {"containerPort": 80, "protocol": "TCP"}
        for ports, text in (
            ([port, port], "duplicate port definition with spec.containers[0].ports[0]"),
            ([port, {**port, "hostPort": 8}], "overlapping port definition with spec.containers[0].ports[0]"),
            (
                [{**port, "hostPort": 8}, {**port, "hostPort": 8, "hostIP": "1.1.1.1"}],
                "dangerously ambiguous port definition with spec.containers[0].ports[0]",
            ),
            (
                [{"containerPort": 1}, {**port, "hostIP": "1.1.1.1", "name": "n"}],
                "hostIP set without hostPort: {Name:n HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}",
            ),
        ):
            self.assertEqual(warnings_for(containers=[{"ports": ports}]), [f"spec.containers[0].ports[1]: {text}"])
        self.assertEqual(warnings_for(containers=[{"ports": [port, {**port, "protocol": "UDP"}]}]), [])

    def test_addresses(self) -> None:
        """Non-canonical IP addresses cause warnings with the canonical form."""
        odd = 'non-standard IP address "{}" is invalid: use "{}"'
        for text, told_of in (
            ("1.2.3.4", []),
            ("fd00::1", []),
            ("not one", []),
            ("1.2.3.04", [f"p: {odd.format('1.2.3.04', '1.2.3.4')}"]),
            ("::ffff:1.2.3.4", [f"p: {odd.format('::ffff:1.2.3.4', '1.2.3.4')}"]),
            ("FD00::1", ['p: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")']),
        ):
            self.assertEqual(address_warnings(text, "p"), told_of)
        found = warnings_for(dnsConfig={"nameservers": ["01.1.1.1"]}, hostAliases=[{"ip": "FD::1"}])
        self.assertEqual(
            [text.partition(":")[0] for text in found], ["spec.dnsConfig.nameservers[0]", "spec.hostAliases[0].ip"]
        )

    @settings(max_examples=100, deadline=None)
    @given(st.text(alphabet="0123456789.:abf/%", max_size=20))
    def test_any_address(self, text: str) -> None:
        """Any text causes at most one warning as an address."""
        self.assertLessEqual(len(address_warnings(text, "p")), 1)


class KindWarningTests(SynchronousTestCase):
    """Tests of warnings of the kinds with pod templates."""

    def warnings_for(self, group: str, kind: str, obj: JSONObject, old: JSONObject | None = None) -> list[str]:
        """Return the warnings of a kind."""
        return list(strategy_for(group, kind).warnings(obj, old))

    def workload(self, name: str = "w", generation: int = 1, **spec: Any) -> JSONObject:
        """Return an object with a template."""
        return {
            "metadata": {"name": name, "generation": generation},
            "spec": {"template": {"spec": ODD}, **spec},
            "template": {"spec": ODD},
        }

    def test_templates(self) -> None:
        """A new template, or one that may have changed, causes warnings."""
        for group, kind, path in (
            ("apps", "Deployment", "spec.template."),
            ("apps", "ReplicaSet", "spec.template."),
            ("apps", "DaemonSet", "spec.template."),
            ("apps", "StatefulSet", "spec.template."),
            ("", "ReplicationController", "spec.template."),
            ("", "PodTemplate", "template."),
            ("batch", "Job", "spec.template."),
        ):
            obj = self.workload()
            self.assertEqual(self.warnings_for(group, kind, obj), [path + NEGATIVE], kind)
            self.assertEqual(self.warnings_for(group, kind, self.workload(generation=2), obj), [path + NEGATIVE], kind)
            self.assertEqual(self.warnings_for(group, kind, obj, obj), [], kind)
        obj = {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {"template": {"spec": ODD}}}}}
        self.assertEqual(self.warnings_for("batch", "CronJob", obj), [f"spec.jobTemplate.spec.template.{NEGATIVE}"])
        self.assertEqual(self.warnings_for("", "ReplicationController", {"metadata": {"name": "r"}, "spec": {}}), [])

    def test_names(self) -> None:
        """A name that cannot be a hostname causes one warning."""
        text = (
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            "a DNS label is recommended: [must not contain dots]"
        )
        for group, kind in (
            ("apps", "Deployment"),
            ("apps", "ReplicaSet"),
            ("", "ReplicationController"),
            ("batch", "Job"),
        ):
            obj = self.workload("a.b")
            obj["spec"]["template"] = {"spec": {}}
            self.assertEqual(self.warnings_for(group, kind, obj), [text], kind)
            self.assertEqual(self.warnings_for(group, kind, obj, obj), [])

    def test_stateful_sets(self) -> None:
        """Claims and the history limit cause warnings each time; updates have the path of the reference."""
        claim = {"spec": {"resources": {"requests": {"storage": "1m"}}}}
        obj = self.workload(volumeClaimTemplates=[claim], revisionHistoryLimit=-1)
        obj["spec"]["template"] = {}
        fraction = 'resources.requests[storage]: fractional byte value "1m" is invalid, must be an integer'
        history = (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )
        self.assertEqual(
            self.warnings_for("apps", "StatefulSet", obj), [f"spec.volumeClaimTemplates[0].{fraction}", history]
        )
        self.assertEqual(
            self.warnings_for("apps", "StatefulSet", obj, obj),
            [f"spec.volumeClaimTemplates[0].Spec.{fraction}", history],
        )
        self.assertEqual(
            self.warnings_for("", "PersistentVolumeClaim", {"metadata": {}, **claim}), [f"spec.{fraction}"]
        )

    def test_jobs(self) -> None:
        """A job with too many indexes causes a warning."""
        obj = self.workload(completionMode="Indexed", completions=100_001, parallelism=10_001)
        self.assertIn(
            "spec: In Indexed Jobs with a number of completions higher than 10^5",
            self.warnings_for("batch", "Job", obj)[0],
        )
        obj["spec"]["parallelism"] = 10_000
        self.assertEqual(len(self.warnings_for("batch", "Job", obj)), 1)


class OverlapTests(SynchronousTestCase):
    """Tests of overlapping paths of a volume."""

    def _slowly(self, paths: list[tuple[str, str]]) -> list[str]:
        """Compare each path with all earlier ones, as the reference does."""
        return [
            f'"{path}" with "{other}"'
            for number, (path, _) in enumerate(paths)
            for other, _ in paths[:number]
            if path and other and (f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/"))
        ]

    @given(st.lists(st.lists(st.sampled_from(["a", "b", ""]), max_size=3).map("/".join), max_size=9))
    def test_as_compared(self, paths: list[str]) -> None:
        """Overlaps are those of a comparison of all pairs of paths, in the same order."""
        named = [(path, "") for path in paths]
        self.assertEqual(list(_overlapping(named)), self._slowly(named)[:MAX_OVERLAPS])

    def test_linear(self) -> None:
        """Thousands of paths are compared by a tree instead of pairs."""
        operations: list[str] = []

        class Path(str):
            """A path that counts how often it is split or compared."""

            __slots__ = ()

            def split(self, *arguments: Any) -> Any:
                operations.append(self)
                return super().split(*arguments)

            def startswith(self, *arguments: Any) -> bool:
                operations.append(self)
                return super().startswith(*arguments)

        self.assertEqual(list(_overlapping((Path(f"p{number}"), "") for number in range(5000))), [])
        self.assertLessEqual(len(operations), 5000)

    def test_bounded(self) -> None:
        """If all paths overlap, the number of warnings is limited."""
        self.assertEqual(len(list(_overlapping([("a", "")] * 5000))), MAX_OVERLAPS)


class PortWarningTests(SynchronousTestCase):
    """Tests of warnings about ports."""

    def pod(self, **spec: Any) -> list[str]:
        """Return the validation errors of a pod with a spec."""
        return problems("", "Pod", spec={"containers": [CONTAINER], **spec})

    def test_duplicate_port_warning(self) -> None:
        """A port defined twice is accepted with a warning."""
        ports = [{"containerPort": 80, "protocol": "TCP"}] * 2
        pod = made("", "Pod", spec={"containers": [{**CONTAINER, "ports": ports}]})
        self.assertEqual(
            list(strategy_for("", "Pod").warnings(pod, None)),
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        )


class RepeatedPortTests(SynchronousTestCase):
    """Tests of duplicate ports."""

    def test_ports(self) -> None:
        """Duplicate ports and port names cause warnings, also across containers."""
        port = {"containerPort": 80, "protocol": "TCP"}
        containers = [
            {"name": "a", "image": "a", "ports": [{**port, "name": "one"}, {**port, "name": "two"}]},
            {"name": "b", "image": "b", "ports": [{**port, "name": "one"}]},
        ]
        found = strategy_for("", "Pod").warnings({"metadata": {"name": "x"}, "spec": {"containers": containers}}, None)
        self.assertEqual(len(found), 4)
        self.assertIn('spec.containers[1].ports[0]: duplicate port name "one"', found[3])

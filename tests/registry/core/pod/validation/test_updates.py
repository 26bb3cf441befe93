"""Tests of L{kubetwist.registry.core.pod.validation.updates}: updates, resizes and statuses."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.core.pod.strategy import PodStrategy
from kubetwist.registry.strategies import strategy_for

from ....pods import APP_ARMOR_C, CONTAINER, MIRROR, pod


class ChangeTests(SynchronousTestCase):
    """Tests of updates of pods."""

    def changed(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """Return the validation errors of an update."""
        return [str(cause) for cause in strategy_for("", "Pod").validate_update(new, old)]

    def test_annotations(self) -> None:
        """Annotations for kubelets are immutable."""
        plain, marked = pod(nodeName="n"), pod({MIRROR: "1", APP_ARMOR_C: "unconfined"}, nodeName="n")
        marked["spec"] = plain["spec"]
        path = "metadata.annotations"
        self.assertEqual(
            self.changed(plain, marked),
            [
                f"{path}[{APP_ARMOR_C}]: Forbidden: may not add AppArmor annotations",
                f"{path}[{MIRROR}]: Forbidden: may not add mirror pod annotation",
            ],
        )
        self.assertEqual(
            self.changed(marked, plain),
            [
                f"{path}[{APP_ARMOR_C}]: Forbidden: may not remove or update AppArmor annotations",
                f"{path}[{MIRROR}]: Forbidden: may not remove or update mirror pod annotation",
            ],
        )
        self.assertEqual(self.changed(marked, marked), [])
        self.assertEqual(len(strategy_for("", "Pod").validate_status_update(plain, marked)), 2)

    def test_tolerations(self) -> None:
        """Existing tolerations are immutable, except for their seconds."""
        old = [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 1}]
        new = [{"key": "b"}, {"key": "a", "effect": "NoExecute", "value": ""}]
        self.assertEqual(self.changed(pod(tolerations=old), pod(tolerations=new)), [])

    def test_gated(self) -> None:
        """The nodes of a pod with scheduling gates can only be restricted."""
        gates = {"schedulingGates": [{"name": "g"}]}

        def to(terms: Any) -> dict[str, Any]:
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            return pod(affinity={"nodeAffinity": required if terms else {}}, **gates)

        some = [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        self.assertEqual(
            self.changed(to(some), to(None)),
            [f"{path}: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"],
        )
        found = self.changed(to([{}]), to(some))
        self.assertEqual([one.partition(":")[0] for one in found], [f"{path}[0]"])

    def test_dropped_fields(self) -> None:
        """Stop signals have a feature gate."""
        stopping = [{**CONTAINER, "lifecycle": {"stopSignal": "SIGINT"}}]
        obj = pod(os={"name": "linux"}, containers=stopping)
        self.assertNotIn("lifecycle", obj["spec"]["containers"][0])
        changed = pod(os={"name": "linux"})
        changed["spec"]["containers"][0]["lifecycle"] = {"stopSignal": "SIGINT", "preStop": {"sleep": {"seconds": 1}}}
        PodStrategy().prepare_for_update(changed, obj)
        self.assertEqual(changed["spec"]["containers"][0]["lifecycle"], {"preStop": {"sleep": {"seconds": 1}}})
        before = orjson.loads(orjson.dumps(changed))
        before["spec"]["containers"][0]["lifecycle"]["stopSignal"] = "SIGINT"
        after = orjson.loads(orjson.dumps(before))
        PodStrategy().prepare_for_update(after, before)
        self.assertEqual(after["spec"], before["spec"])

    def test_closed_gates(self) -> None:
        """Fields of disabled gates are dropped from pods and templates, unless the stored object has them."""
        sources = [{"podCertificate": {"keyType": "X"}}, {"clusterTrustBundle": {"name": "b"}}]
        volumes = [{"name": "v", "projected": {"sources": sources}}]
        spec = {"volumes": volumes, "schedulingGroup": {"podGroupName": "g"}}
        obj = pod(**spec)
        self.assertEqual(obj["spec"]["volumes"][0]["projected"]["sources"], [{}, {}])
        self.assertNotIn("schedulingGroup", obj["spec"])
        for group, kind, name in (("", "PodTemplate", ""), ("apps", "Deployment", "spec"), ("batch", "Job", "spec")):
            template = {"template": {"spec": orjson.loads(orjson.dumps(spec))}}
            strategy = strategy_for(group, kind)
            made: dict[str, Any] = {"metadata": {"name": "x", "uid": "u"}, **({name: template} if name else template)}
            strategy.default(made)
            strategy.prepare_for_create(made)
            found = (made[name] if name else made)["template"]["spec"]
            self.assertEqual(found["volumes"][0]["projected"]["sources"], [{}, {}], kind)
        held = pod()
        held["spec"].update(orjson.loads(orjson.dumps(spec)))
        changed = orjson.loads(orjson.dumps(held))
        PodStrategy().prepare_for_update(changed, held)
        self.assertEqual(changed["spec"], held["spec"])
        opened = PodStrategy().with_features(FeatureGates(settings={"GenericWorkload": True}))
        obj = pod()
        obj["spec"]["schedulingGroup"] = {}
        opened.prepare_for_create(obj)
        self.assertIn("schedulingGroup", obj["spec"])

    def test_large(self) -> None:
        """The error contains a small difference between large pods."""
        volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(40)]
        old, new = pod(volumes=volumes), pod(volumes=volumes, hostname="h")
        (found,) = self.changed(old, new)
        self.assertIn('+ "Hostname": "h",', found)
        (found,) = self.changed(old, pod(volumes=volumes, securityContext={"fsGroupChangePolicy": "Always"}))
        self.assertIn('+  "FSGroupChangePolicy": "Always",\n   "Sysctls": null,', found)

    def test_repeated_gates(self) -> None:
        """The last of new gates with the same name is reported."""
        old, new = pod(schedulingGates=[{"name": "a"}]), pod(schedulingGates=[{"name": "b"}, {"name": "b"}])
        text = "only deletion is allowed, but found new scheduling gate 'b'"
        self.assertEqual(
            [one for one in self.changed(old, new) if "only deletion" in one],
            [f"spec.schedulingGates[1].name: Forbidden: {text}"],
        )


class ResizeTests(SynchronousTestCase):
    """Tests of resizes."""

    def resized(self, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        """Return the validation errors of a resize."""
        strategy = PodStrategy()
        strategy.prepare_for_resize(new, old)
        return [str(cause) for cause in strategy.validate_resize(new, old)]

    def sized(self, name: str = "c", cpu: str = "1", **more: Any) -> dict[str, Any]:
        """Return a container with requests."""
        return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu, **more}}}

    def test_unsupported_pods(self) -> None:
        """Mirror pods and Windows pods cannot be resized."""
        self.assertEqual(
            self.resized(pod({MIRROR: "1"}, nodeName="n"), pod()), ["[]: Forbidden: static pods cannot be resized"]
        )
        self.assertEqual(
            self.resized(pod(os={"name": "windows"}), pod()), ["[]: Forbidden: windows pods cannot be resized"]
        )
        running: Any = {"qosClass": "Burstable", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}
        old = pod(containers=[self.sized()], status=running)
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized(cpu="2")])),
            ["spec: Forbidden: Pod running on node without support for resize"],
        )
        running["containerStatuses"][0]["resources"] = {}
        self.assertEqual(self.resized(old, pod(containers=[self.sized(cpu="2")])), [])

    def test_renamed(self) -> None:
        """A renamed container is rejected alone: metadata and status are those of the stored pod."""
        old = pod(containers=[self.sized("a"), self.sized("b")], status={"qosClass": "Burstable"})
        new = pod(
            {"a b": "c"}, containers=[self.sized("a", cpu="5"), self.sized("x")], status={"qosClass": "Guaranteed"}
        )
        PodStrategy().prepare_for_resize(new, old)
        self.assertEqual([one["name"] for one in new["spec"]["containers"]], ["a", "x"])
        self.assertEqual(new["metadata"].get("annotations"), old["metadata"].get("annotations"))
        self.assertEqual(new["status"], old["status"])

    def test_order(self) -> None:
        """The order of containers is immutable."""
        old = pod(containers=[self.sized("a"), self.sized("b")])
        text = "containers may not be renamed or reordered on resize"
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized("b"), self.sized("a")])),
            [f"spec.containers[{index}].name: Forbidden: {text}" for index in range(2)],
        )
        found = self.resized(old, pod(containers=[self.sized("a"), self.sized("b")], initContainers=[self.sized("i")]))
        self.assertEqual(
            found, ["spec.initContainers: Forbidden: initContainers may not be added or removed on resize"]
        )

    def test_amounts(self) -> None:
        """Resources cannot be removed, and only some can change, in init containers as well."""
        old = pod(containers=[self.sized()], initContainers=[self.sized("i", memory="1")])
        new = pod(containers=[self.sized("c", "2")], initContainers=[self.sized("i", "2", memory="2")])
        self.assertEqual(self.resized(old, new), [])
        new = pod(containers=[self.sized(**{"ephemeral-storage": "1"})], initContainers=[self.sized("i")])
        self.assertEqual(
            self.resized(old, new),
            [
                "spec.initContainers[0].resources.requests: Forbidden: resource requests cannot be removed",
                "spec: Forbidden: only cpu and memory resources are mutable",
            ],
        )
        policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
        starting = {**self.sized("i"), "resizePolicy": policy}
        found = self.resized(
            pod(containers=[self.sized()], initContainers=[starting]),
            pod(containers=[self.sized()], initContainers=[{**starting, "resources": {"requests": {"cpu": "2"}}}]),
        )
        self.assertEqual(
            found,
            [
                "spec.initContainers[0]: Forbidden: "
                "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            ],
        )

    def test_whole(self) -> None:
        """Pod-level resources cannot be removed."""
        whole = {"requests": {"cpu": "2", "hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}
        old = pod(containers=[self.sized()], resources=whole)
        self.assertIn(
            "spec.resources: Forbidden: pod-level resources cannot be removed",
            self.resized(old, pod(containers=[self.sized()])),
        )
        less = {"requests": {"cpu": "2"}}
        self.assertEqual(
            self.resized(old, pod(containers=[self.sized()], resources=less)),
            [
                "spec.resources.requests: Forbidden: pod-level resource requests cannot be removed",
                "spec.resources.limits: Forbidden: pod-level resource limits cannot be removed",
                "spec: Forbidden: only cpu and memory resources are mutable at pod-level",
            ],
        )
        more = {**whole, "requests": {"cpu": "3", "hugepages-2Mi": "2Mi"}}
        self.assertEqual(self.resized(old, pod(containers=[self.sized()], resources=more)), [])


class StatusTests(SynchronousTestCase):
    """Tests of updates of the status."""

    def reported(self, status: Any, before: Any = None, **spec: Any) -> list[str]:
        """Return the validation errors of an update of the status."""
        obj, old = pod(status=status, **spec), pod(status=before or {}, **spec)
        found = strategy_for("", "Pod").validate_status_update(obj, old)
        return [str(cause).removeprefix("status.") for cause in found]

    def test_restarts(self) -> None:
        """A terminated container can only run again if its rules or the policy restart it."""
        rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
        all_of_them = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [9]}}
        for policy, parts, code, good in (
            ("Always", {}, 0, True),
            ("OnFailure", {}, 0, False),
            ("OnFailure", {}, 1, True),
            ("Never", {}, 1, False),
            ("Never", {"restartPolicy": "Always"}, 0, True),
            ("Always", {"restartPolicy": "Never"}, 0, False),
            ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule]}, 3, True),
            ("Always", {"restartPolicy": "Never", "restartPolicyRules": [rule]}, 4, False),
            ("Never", {"restartPolicy": "Never", "restartPolicyRules": [all_of_them]}, 0, True),
        ):
            for field, kind in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses")):
                before = {kind: [{"name": "s", "state": {"terminated": {"exitCode": code}}}]}
                after = {kind: [{"name": "s", "state": {"running": {}}}]}
                lists = {"containers": [CONTAINER], field: [{**CONTAINER, "name": "s", **parts}]}
                wrong = f"{kind}[0].state: Forbidden: may not be transitioned to non-terminated state"
                found = self.reported(after, before, restartPolicy=policy, **lists)
                self.assertEqual(found, [] if good else [wrong], (policy, parts, code, field))

    def test_nominated(self) -> None:
        """A bound pod cannot have a nominated node."""
        nominated = {"nominatedNodeName": "m"}
        self.assertEqual(self.reported(nominated), [])
        self.assertEqual(
            self.reported(nominated, nodeName="n"),
            ["nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"],
        )
        self.assertEqual(self.reported(nominated, nominated, nodeName="n"), [])

    def test_generations(self) -> None:
        """Observed generations are not negative."""
        status = {"observedGeneration": -1, "conditions": [{"type": "Ready", "observedGeneration": -2}]}
        self.assertEqual(
            self.reported(status),
            [
                "conditions[0].observedGeneration: Invalid value: -2: must be a non-negative integer",
                "observedGeneration: Invalid value: -1: must be a non-negative integer",
            ],
        )

    def test_addresses(self) -> None:
        """Existing addresses are accepted, and two addresses of one IP family are rejected."""
        both = {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}
        self.assertEqual([one.partition(":")[0] for one in self.reported(both)], ["podIPs"])
        odd = {"podIP": "1.2.3.04", "podIPs": [{"ip": "1.2.3.04"}]}
        self.assertEqual(len(self.reported(odd)), 1)
        self.assertEqual(self.reported(odd, odd), [])

    def test_bad_addresses(self) -> None:
        """Two malformed addresses are reported as malformed."""
        found = self.reported({"podIP": "x", "podIPs": [{"ip": "x"}, {"ip": "::1"}]})
        self.assertEqual(
            [one.partition(": ")[2] for one in found[1:]],
            [
                "Internal error: failed to check for dual stack with error:invalid IP[0]: x",
                'Invalid value: [{"IP":"x"},{"IP":"::1"}]: may specify no more than one IP for each IP family',
            ],
        )

    def test_first_address(self) -> None:
        """podIPs is set from podIP if they differ."""
        for status, expected in (
            ({"podIP": "a"}, ("a", [{"ip": "a"}])),
            ({"podIP": "a", "podIPs": [{"ip": "b"}, {"ip": "c"}]}, ("a", [{"ip": "a"}])),
            ({"podIPs": [{"ip": "b"}, {"ip": "c"}]}, ("b", [{"ip": "b"}, {"ip": "c"}])),
        ):
            obj = {**pod(), "status": status}
            PodStrategy().default(obj)
            self.assertEqual((obj["status"]["podIP"], obj["status"]["podIPs"]), expected)

    def test_observed_generation(self) -> None:
        """Missing observed generations are kept; fields of disabled gates are dropped."""
        conditions = [{"type": "A", "observedGeneration": 2}, {"type": "A", "observedGeneration": 3}]
        old = pod(status={"observedGeneration": 4, "conditions": conditions})
        new = pod(
            status={
                "conditions": [{"type": "B"}, {"type": "A"}, {"type": "A", "observedGeneration": 5}, {"type": "A"}],
                "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}],
                "containerStatuses": [{"volumeMounts": [{"name": "v", "volumeStatus": {}}]}],
            }
        )
        PodStrategy().prepare_for_status_update(new, old)
        self.assertEqual(
            new["status"],
            {
                "observedGeneration": 4,
                "conditions": [
                    {"type": "B"},
                    {"type": "A", "observedGeneration": 2},
                    {"type": "A", "observedGeneration": 5},
                    {"type": "A"},
                ],
                "containerStatuses": [{"volumeMounts": [{"name": "v"}]}],
            },
        )

    def test_extended_claims(self) -> None:
        """The claim for extended resources has a name and mappings to containers."""
        mapping = {"containerName": "c", "resourceName": "a/b", "requestName": "r"}
        path = "extendedResourceClaimStatus"
        found = self.reported({path: {"requestMappings": [mapping, mapping, {**mapping, "containerName": "x"}]}})
        self.assertEqual(
            [one.partition(": ")[0].removeprefix("status.") for one in found],
            [
                f"{path}.requestMappings[0].resourceName",
                f"{path}.requestMappings[1].resourceName",
                *(f"{path}.requestMappings[1].{name}" for name in ("containerName", "resourceName", "requestName")),
                f"{path}.requestMappings[2].containerName",
                f"{path}.resourceClaimName",
            ],
        )
        self.assertEqual(len(self.reported({path: {}})), 2)

    def test_claims(self) -> None:
        """Statuses of resource claims refer to claims of the spec."""
        statuses = [{"name": "a", "resourceClaimName": "r"}, {"name": "a"}, {"name": "b", "resourceClaimName": "R"}]
        found = self.reported(
            {"resourceClaimStatuses": statuses}, resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}]
        )
        self.assertEqual(
            [one.partition(": ")[0] for one in found],
            [f"resourceClaimStatuses[{place}" for place in ("1].name", "2].name", "2].resourceClaimName")],
        )

    def test_users(self) -> None:
        """Users of containers are for Linux."""
        status = {
            "containerStatuses": [{"name": "c", "user": {"linux": {"uid": -1, "gid": 0, "supplementalGroups": [-2]}}}]
        }
        self.assertEqual(
            [one.partition(": ")[0] for one in self.reported(status)],
            ["containerStatuses[0].user.linux.uid", "containerStatuses[0].user.linux.supplementalGroups[0]"],
        )
        self.assertEqual(
            self.reported(status, os={"name": "windows"}),
            ["containerStatuses[0].user.linux: Forbidden: cannot be set for a windows pod"],
        )

    def test_health(self) -> None:
        """The health of devices refers to resources of the container."""
        device = {"resourceID": "1", "health": "Healthy"}
        allocated = [
            {"name": "claim:a/r", "resources": [device, device]},
            {"name": "claim:b", "resources": [{"resourceID": "2", "health": "Ill"}]},
            {"name": "example.com/d"},
        ]
        container = {**CONTAINER, "resources": {"claims": [{"name": "a", "request": "r"}]}}
        status = {
            "containerStatuses": [{"name": "c", "allocatedResourcesStatus": allocated}],
            "ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": allocated}],
        }
        here = "containerStatuses[0].allocatedResourcesStatus"
        self.assertEqual(
            [one.partition(": ")[0] for one in self.reported(status, containers=[container])],
            [
                f"{here}[0].resources[1].resourceID",
                f"{here}[1].name",
                f"{here}[1].resources[0].health",
                f"{here}[2].name",
                "ephemeralContainerStatuses[0].allocatedResourcesStatus",
            ],
        )

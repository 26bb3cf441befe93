"""Tests for the plugins that concern pods and have no state."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from hypothesis import given
from hypothesis import strategies as st

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.alwaysadmit import AlwaysAdmit
from kubetwist.admission_plugins.alwaysdeny import AlwaysDeny
from kubetwist.admission_plugins.alwayspullimages import AlwaysPullImages
from kubetwist.admission_plugins.configurations import InvalidConfiguration
from kubetwist.admission_plugins.extendedresourcetoleration import ExtendedResourceToleration
from kubetwist.admission_plugins.limitpodhardantiaffinitytopology import LimitPodHardAntiAffinityTopology
from kubetwist.admission_plugins.nodedeclaredfeaturevalidator import NodeDeclaredFeatureValidator
from kubetwist.admission_plugins.podnodeselector import PodNodeSelector, parse_labels
from kubetwist.admission_plugins.podresizevalidator import PodResizeValidator
from kubetwist.admission_plugins.podtolerationrestriction import PodTolerationRestriction
from kubetwist.admission_plugins.tolerations import implies, merge_tolerations
from kubetwist.api.errors import APIStatusError
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import Context, PluginTestCase, every_container, pod, write

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def in_namespace(**annotations: str) -> Context:
    """A server whose namespace has annotations, under C{scheduler.alpha.kubernetes.io/}."""
    written = {f"scheduler.alpha.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    context = Context()
    context.add("", "namespaces", {"metadata": {"name": "ns", "annotations": written}})
    return context


class AlwaysTests(PluginTestCase):
    """Tests for L{AlwaysAdmit} and L{AlwaysDeny}."""

    def test_admit(self) -> None:
        """AlwaysAdmit has nothing against anything, and is not even asked."""
        plugin = AlwaysAdmit()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        made = write(pod())
        self.admit_twice(plugin, made)
        self.validate(plugin, made)
        self.assertEqual(made.attributes.object, pod())

    def test_deny(self) -> None:
        """AlwaysDeny refuses everything, deleting and connecting too."""
        plugin = AlwaysDeny()
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        for resource, operation in (
            ("pods", "CREATE"),
            ("configmaps", "UPDATE"),
            ("namespaces", "DELETE"),
            ("pods/exec", "CONNECT"),
        ):
            for admitting in (True, False):
                why = self.why(plugin, write(pod(), resource, operation), admitting=admitting)
                self.assertEqual(why, "admission control is denying all modifications")


class AlwaysPullImagesTests(PluginTestCase):
    """Tests for L{AlwaysPullImages}."""

    plugin = AlwaysPullImages()

    def test_every_container(self) -> None:
        """Containers of every kind, and volumes that are images, are pulled each time."""
        verifyObject(IMutatingAdmission, self.plugin)
        verifyObject(IValidatingAdmission, self.plugin)
        obj = every_container(imagePullPolicy="Never")
        obj["spec"]["volumes"] = [{"name": "v", "image": {"pullPolicy": "IfNotPresent"}}, {"name": "e", "emptyDir": {}}]
        made = write(obj)
        spec = self.admit_twice(self.plugin, made)["spec"]
        for kind in CONTAINER_LISTS:
            self.assertEqual([one["imagePullPolicy"] for one in spec[kind]], ["Always"], kind)
        self.assertEqual(
            spec["volumes"], [{"name": "v", "image": {"pullPolicy": "Always"}}, {"name": "e", "emptyDir": {}}]
        )
        self.validate(self.plugin, made)

    def test_changed_back(self) -> None:
        """What another plugin has changed back is refused, whatever kind of container it is in."""
        for kind in CONTAINER_LISTS:
            obj = every_container(imagePullPolicy="Always")
            obj["spec"][kind][0]["imagePullPolicy"] = "Never"
            self.assertEqual(
                self.why(self.plugin, write(obj)),
                f'spec.{kind}[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
            )

    def test_updates(self) -> None:
        """An update without new images is left alone, so that pods that are there can still be changed."""
        old = every_container(imagePullPolicy="Never")
        same = orjson.loads(orjson.dumps(old))
        self.assertEqual(self.admit(self.plugin, write(same, operation="UPDATE", old=old)), old)
        self.validate(self.plugin, write(same, operation="UPDATE", old=old))
        for kind in CONTAINER_LISTS:
            changed = orjson.loads(orjson.dumps(old))
            changed["spec"][kind][0]["image"] = "new"
            spec = self.admit(self.plugin, write(changed, operation="UPDATE", old=old))["spec"]
            self.assertEqual(spec["containers"][0]["imagePullPolicy"], "Always")


class AntiAffinityTests(PluginTestCase):
    """Tests for L{LimitPodHardAntiAffinityTopology}."""

    def test_topology(self) -> None:
        """Others can be kept from a pod's node, and from nothing larger; preferring so is everyone's own affair."""
        plugin = LimitPodHardAntiAffinityTopology()
        verifyObject(IValidatingAdmission, plugin)

        def spread(key: str, rule: str = "required") -> JSONObject:
            terms = [{"topologyKey": "kubernetes.io/hostname"}, {"topologyKey": key}]
            return pod(affinity={"podAntiAffinity": {f"{rule}DuringSchedulingIgnoredDuringExecution": terms}})

        self.validate(plugin, write(pod()))
        self.validate(plugin, write(spread("kubernetes.io/hostname")))
        self.validate(plugin, write(spread("zone", "preferred")))
        self.assertEqual(
            self.why(plugin, write(spread("zone"))),
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone "
            "but only key kubernetes.io/hostname is allowed",
        )


class ExtendedResourceTests(PluginTestCase):
    """Tests for L{ExtendedResourceToleration}."""

    plugin = ExtendedResourceToleration()

    def admitted(self, *names: str, **spec: Any) -> list[JSONObject]:
        """The tolerations of a pod that asks for resources in an init container and a regular one."""
        obj = every_container()
        obj["spec"].update(spec)
        for kind, name in zip(("containers", "initContainers"), names, strict=False):
            obj["spec"][kind][0]["resources"] = {"requests": {name: "1", "cpu": "1"}}
        found: list[JSONObject] = self.admit_twice(self.plugin, write(obj))["spec"].get("tolerations", [])
        return found

    def test_added(self) -> None:
        """A pod tolerates the taints named after what it asks for, sorted; native resources have none."""
        verifyObject(IMutatingAdmission, self.plugin)
        wanted = [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in ("example.com/a", "example.com/b")
        ]
        self.assertEqual(self.admitted("example.com/b", "example.com/a"), wanted)
        self.assertEqual(self.admitted("memory", "hugepages-2Mi"), [])
        self.assertEqual(self.admitted("requests.example.com/a", "x.kubernetes.io/a"), [])

    def test_there(self) -> None:
        """The same toleration with a time is replaced, and what tolerates something else is kept."""
        there = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}
        other = {"key": "example.com/a", "operator": "Exists", "effect": "NoExecute"}
        plain = {"key": "example.com/a", "operator": "Exists", "effect": "NoSchedule"}
        self.assertEqual(self.admitted("example.com/a", tolerations=[there, other]), [plain, other])
        self.assertEqual(self.admitted("example.com/a", tolerations=[plain]), [plain])


class NodeSelectorTests(PluginTestCase):
    """Tests for L{PodNodeSelector}."""

    CONFIGURATION: ClassVar[Any] = {
        "podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "env=any", "ns": "env=any,a=b"}
    }

    def plugin(self, configuration: Any = None) -> PodNodeSelector:
        """The plugin."""
        plugin = PodNodeSelector.configured(Context(), configuration)
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def test_annotation(self) -> None:
        """A pod selects what its namespace says, besides its own."""
        made = write(pod(nodeSelector={"x": "y"}), context=in_namespace(node_selector="env=prod, disk=ssd"))
        spec = self.admit_twice(self.plugin(), made)["spec"]
        self.assertEqual(spec["nodeSelector"], {"env": "prod", "disk": "ssd", "x": "y"})

    def test_default(self) -> None:
        """A namespace that says nothing has the cluster's default; one that says nothing on purpose has nothing."""
        made = write(pod(), context=in_namespace())
        self.assertEqual(
            self.admit_twice(self.plugin(self.CONFIGURATION), made)["spec"]["nodeSelector"], {"env": "any"}
        )
        made = write(pod(), context=in_namespace(node_selector=""))
        self.assertNotIn("nodeSelector", self.admit_twice(self.plugin(self.CONFIGURATION), made)["spec"])

    def test_refused(self) -> None:
        """A pod that says otherwise than its namespace, or what its namespace may not, is refused."""
        made = write(pod(nodeSelector={"env": "test"}), context=in_namespace(node_selector="env=prod"))
        for admitting in (True, False):
            why = self.why(self.plugin(), made, admitting=admitting)
            self.assertEqual(why, "pod node label selector conflicts with its namespace node label selector")
        made = write(pod(nodeSelector={"c": "d"}), context=in_namespace())
        why = self.why(self.plugin(self.CONFIGURATION), made, admitting=True)
        self.assertEqual(why, "pod node label selector labels conflict with its namespace whitelist")

    def test_bad_annotation(self) -> None:
        """An annotation that makes no sense is an error with its text, not a traceback."""
        for written, text in (
            ("a", "invalid selector: [a]"),
            ("a=b=c", "invalid selector: [a b c]"),
            ("=b", '<nil>: Invalid value: "": name part must be non-empty'),
            ("a=b c", '[a]: Invalid value: "b c": a valid label must be'),
        ):
            error = self.refusal(
                self.plugin(), write(pod(), context=in_namespace(node_selector=written)), admitting=True
            )
            self.assertEqual((error.code, error.reason), (500, ""))
            self.assertIn(text, error.message)

    @given(st.text(alphabet="ab=, ./!", max_size=12))
    def test_any_selector(self, text: str) -> None:
        """Whatever is written, there are labels or one error."""
        try:
            found = parse_labels(text)
        except APIStatusError as error:
            self.assertEqual(error.code, 500)
        else:
            self.assertEqual(len(found), len({part.split("=")[0].strip() for part in text.split(",") if text}))

    def test_configuration(self) -> None:
        """A configuration that makes no sense stops the server."""
        for configuration in ({"podNodeSelectorPluginConfig": {"ns": 1}}, {"x": 1}, {"podNodeSelectorPluginConfig": 1}):
            with self.assertRaises(InvalidConfiguration):
                self.plugin(configuration)


class TolerationRestrictionTests(PluginTestCase):
    """Tests for L{PodTolerationRestriction}."""

    EXISTS: ClassVar[JSONObject] = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    PRESSURE: ClassVar[JSONObject] = {
        "key": "node.kubernetes.io/memory-pressure",
        "operator": "Exists",
        "effect": "NoSchedule",
    }

    def plugin(self, **said: Any) -> PodTolerationRestriction:
        """The plugin."""
        kind = {"kind": "Configuration", "apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1"}
        plugin = PodTolerationRestriction.configured(Context(), {**kind, **said} if said else None)
        verifyObject(IMutatingAdmission, plugin)
        verifyObject(IValidatingAdmission, plugin)
        return plugin

    def test_defaults(self) -> None:
        """A pod tolerates what its namespace has it tolerate, or else the cluster; an empty annotation is nothing."""
        other = {"key": "b", "operator": "Exists"}
        plugin = self.plugin(default=[self.EXISTS])
        for said, wanted in (
            ({"defaultTolerations": orjson.dumps([other]).decode()}, [other]),
            ({}, [self.EXISTS]),
            ({"defaultTolerations": ""}, None),
        ):
            spec = self.admit_twice(plugin, write(pod(), context=in_namespace(**said)))["spec"]
            self.assertEqual(spec.get("tolerations"), wanted)

    def test_memory_pressure(self) -> None:
        """Pods that say what memory they need can run where memory is short; updates add no defaults."""
        obj = pod()
        obj["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}
        plugin = self.plugin(default=[self.EXISTS])
        made = write(obj, operation="UPDATE", old=obj, context=in_namespace())
        self.assertEqual(self.admit_twice(plugin, made)["spec"]["tolerations"], [self.PRESSURE])

    def test_allowed(self) -> None:
        """What a pod may tolerate, the namespace says, or else the cluster."""
        text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its {} whitelist"
        obj = pod(tolerations=[{"key": "x", "operator": "Exists"}])
        narrow = orjson.dumps([self.EXISTS]).decode()
        error = self.refusal(self.plugin(), write(obj, context=in_namespace(tolerationsWhitelist=narrow)))
        self.assertEqual((error.code, error.message), (500, text.format("namespace")))
        error = self.refusal(self.plugin(whitelist=[self.EXISTS]), write(obj, context=in_namespace()), admitting=True)
        self.assertEqual(error.message, text.format("cluster"))
        everything = write(obj, context=in_namespace(tolerationsWhitelist=""))
        self.validate(self.plugin(whitelist=[self.EXISTS]), everything)
        self.validate(self.plugin(whitelist=[{"operator": "Exists"}]), write(obj, context=in_namespace()))

    def test_bad_annotation(self) -> None:
        """An annotation that makes no sense is an error with its text."""
        for written in (
            "{",
            "{}",
            '["a"]',
            '[{"key": 1}]',
            '[{"tolerationSeconds": "1"}]',
            '[{"tolerationSeconds": true}]',
        ):
            error = self.refusal(
                self.plugin(), write(pod(), context=in_namespace(defaultTolerations=written)), admitting=True
            )
            self.assertEqual((error.code, error.reason), (500, ""))
        self.assertEqual(
            error.message,
            "json: cannot unmarshal bool into Go struct field Toleration.tolerationSeconds of type int64",
        )
        junk = write(pod(), context=in_namespace(defaultTolerations="junk"))
        error = self.refusal(self.plugin(), junk, admitting=True)
        self.assertEqual(error.message, "invalid character 'j' looking for beginning of value")

    def test_no_namespace(self) -> None:
        """A pod whose namespace is not there is told so."""
        self.assertEqual(self.refusal(self.plugin(), write(pod()), admitting=True).code, 404)

    def test_configuration(self) -> None:
        """A configuration that makes no sense stops the server."""
        for said in ({"default": [{"key": 1}]}, {"default": {}}, {"other": []}):
            with self.assertRaises(InvalidConfiguration):
                self.plugin(**said)

    @given(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "key": st.sampled_from(("a", "b")),
                    "operator": st.sampled_from(("Exists", "Equal")),
                    "effect": st.sampled_from(("NoSchedule", "NoExecute")),
                    "value": st.sampled_from(("1", "2")),
                    "tolerationSeconds": st.integers(0, 2),
                },
            ),
            max_size=5,
        )
    )
    def test_merge(self, tolerations: list[JSONObject]) -> None:
        """Merging loses nothing that is tolerated, and merging again changes nothing."""
        merged = merge_tolerations(tolerations, [])
        for one in tolerations:
            self.assertTrue(any(implies(wide, one) for wide in merged))
        self.assertEqual(merge_tolerations(merged, merged), merged)


class ResizeTests(PluginTestCase):
    """Tests for L{PodResizeValidator} and L{NodeDeclaredFeatureValidator}."""

    def node(self, system: str = "linux", **status: Any) -> Context:
        """A server with one node."""
        context = Context()
        labels = {"kubernetes.io/os": system} if system else {}
        context.add("", "nodes", {"metadata": {"name": "n", "labels": labels}, "status": status})
        return context

    def sized(self, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> JSONObject:
        """A pod on the node."""
        obj = pod(nodeName="n", **spec)
        obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
        return obj

    def test_room(self) -> None:
        """A pod does not ask for more than its node has."""
        plugin = PodResizeValidator()
        verifyObject(IValidatingAdmission, plugin)
        context = self.node(allocatable={"cpu": "2", "memory": "2Gi"})
        old = self.sized()
        self.validate(plugin, write(self.sized("2", "2Gi"), "pods/resize", "UPDATE", old=old, context=context))
        why = self.why(plugin, write(self.sized("2500m", "3Gi"), "pods/resize", "UPDATE", old=old, context=context))
        self.assertEqual(
            why,
            "Node didn't have enough allocatable resources: cpu, requested: 2500, allocatable: 2000; "
            "memory, requested: 3221225472, allocatable: 2147483648",
        )

    def test_node(self) -> None:
        """The node must be there and run Linux; a pod that is on none can have any size."""
        plugin, old = PodResizeValidator(), self.sized()
        resized = self.sized("1500m")
        self.assertEqual(self.why(plugin, write(resized, "pods/resize", "UPDATE", old=old)), 'node "n" not found')
        context = self.node("windows", allocatable={"cpu": "9", "memory": "9Gi"})
        self.assertEqual(
            self.why(plugin, write(resized, "pods/resize", "UPDATE", old=old, context=context)),
            'pod resize is only supported on linux nodes, node "n" is "windows"',
        )
        self.validate(plugin, write(old, "pods/resize", "UPDATE", old=old))
        self.validate(plugin, write(pod(), "pods/resize", "UPDATE", old=old))

    def test_features(self) -> None:
        """A guaranteed pod gets other CPUs, and a pod other resources as a whole, where its node can do so."""
        plugin = NodeDeclaredFeatureValidator()
        verifyObject(IValidatingAdmission, plugin)
        old, new = self.sized(), self.sized("2")
        old["status"] = {"qosClass": "Guaranteed"}
        new["spec"]["resources"] = {"requests": {"cpu": "2"}}
        made = write(new, "pods/resize", "UPDATE", old=old, context=self.node())
        self.assertEqual(
            self.why(plugin, made),
            "pod update requires features GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling which "
            'are not available on node "n"',
        )
        able = self.node(declaredFeatures=["GuaranteedQoSPodCPUResize", "InPlacePodLevelResourcesVerticalScaling"])
        self.validate(plugin, write(new, "pods/resize", "UPDATE", old=old, context=able))
        self.assertEqual(self.why(plugin, write(new, "pods/resize", "UPDATE", old=old)), 'node "n" not found')

    def test_no_features(self) -> None:
        """Other changes, other pods, and quantities written differently need nothing of the node."""
        plugin, old = NodeDeclaredFeatureValidator(), self.sized()
        old["status"] = {"qosClass": "Burstable"}
        self.validate(plugin, write(self.sized("2"), "pods/resize", "UPDATE", old=old))
        old["status"] = {"qosClass": "Guaranteed"}
        self.validate(plugin, write(self.sized("1000m"), "pods/resize", "UPDATE", old=old))
        self.validate(plugin, write(self.sized(tolerations=[{"operator": "Exists"}]), "pods", "UPDATE", old=old))

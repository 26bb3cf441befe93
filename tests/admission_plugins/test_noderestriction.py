"""Tests for L{kubetwist.admission_plugins.noderestriction} and L{kubetwist.admission_plugins.nodecredentials}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.noderestriction import forbidden_labels, same
from kubetwist.api.resource import JSONObject, UserInfo
from kubetwist.interfaces import IMutatingAdmission
from kubetwist.registry.core.pod.references import MIRROR_ANNOTATION
from tests.admission_plugins.nodetools import NodeRestrictionTestCase


def mirror(**changes: Any) -> JSONObject:
    """Return a mirror pod of a kubelet."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "node-uid", "controller": True}
    owner.update(changes.pop("owner", {}))
    meta = {"name": "static-one", "annotations": {MIRROR_ANNOTATION: "hash"}, "ownerReferences": [owner]}
    meta.update(changes.pop("metadata", {}))
    spec = {"nodeName": "one", "containers": [{"name": "c", "image": "i"}], **changes}
    return {"metadata": meta, "spec": spec}


def node(name: str = "one", labels: Any = None, status: Any = None, **spec: Any) -> JSONObject:
    """Return a Node with owner references."""
    meta: JSONObject = {"name": name, "labels": labels or {}}
    if "owners" in spec:
        meta["ownerReferences"] = spec.pop("owners")
    return {"metadata": meta, "spec": spec, "status": status or {}}


keys = st.sampled_from(
    [
        "plain",
        "example.com/x",
        "kubernetes.io/hostname",
        "kubernetes.io/other",
        "x.k8s.io/y",
        "node.kubernetes.io/z",
        "a.kubelet.kubernetes.io/z",
        "node-restriction.kubernetes.io/r",
        "notkubernetes.io/n",
    ]
)


labels = st.dictionaries(keys, st.sampled_from(["", "a"]))


class IdentityTests(NodeRestrictionTestCase):
    """Tests of the identification of nodes."""

    def test_interface(self) -> None:
        """The plugin is called for all writes, in the mutating phase."""
        verifyObject(IMutatingAdmission, self.plugin)
        self.assertFalse(self.plugin.handles("CONNECT"))

    def test_other_users(self) -> None:
        """Users that are not nodes are not restricted."""
        for user in (UserInfo("admin"), UserInfo("system:node:one"), UserInfo("x", groups=("system:nodes",))):
            self.assertEqual(self.rejection("CREATE", "nodes", node("two"), user=user), "")

    def test_nameless(self) -> None:
        """A node user without a node name may write nothing."""
        user = UserInfo("system:node:", groups=("system:nodes",))
        message = 'could not determine node from user "system:node:"'
        self.assertEqual(self.rejection("CREATE", "events", {"metadata": {}}, user=user), message)

    def test_other_resources(self) -> None:
        """Resources without checks are not restricted."""
        self.assertEqual(self.rejection("CREATE", "events", {"metadata": {"name": "x"}}), "")


class PodTests(NodeRestrictionTestCase):
    """Tests of pods."""

    def test_mirror(self) -> None:
        """A kubelet creates mirror pods of its node, with the node as their only owner."""
        self.assertEqual(self.rejection("CREATE", "pods", mirror()), "")
        only = 'node "one" can only create pods with'
        for message, pod in (
            (
                f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "one" can only create mirror pods',
                mirror(metadata={"annotations": None}),
            ),
            (f"{only} spec.nodeName set to itself", mirror(nodeName="two")),
            (f"{only} an owner reference set to itself", mirror(metadata={"ownerReferences": []})),
            (f"{only} a single owner reference set to itself", mirror(metadata={"ownerReferences": [{}, {}]})),
            (f"{only} an owner reference set to itself", mirror(owner={"kind": "Pod"})),
            (f"{only} an owner reference set to itself", mirror(owner={"name": "two"})),
            (f"{only} an owner reference set to itself", mirror(owner={"apiVersion": "v2"})),
            (f"{only} a controller owner reference set to itself", mirror(owner={"controller": None})),
            (
                'node "one" must not set blockOwnerDeletion on an owner reference',
                mirror(owner={"blockOwnerDeletion": True}),
            ),
            ("node one UID mismatch: expected x got node-uid", mirror(owner={"uid": "x"})),
        ):
            self.assertEqual(self.rejection("CREATE", "pods", pod), message)
        del self.cluster.objects["nodes", "one"]
        self.assertEqual(self.rejection("CREATE", "pods", mirror()), '404 node "one" not found')

    def test_references(self) -> None:
        """CVE-2025-4563: a mirror pod cannot refer to any object of the API."""
        env = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
        with_env = [{"name": "c", "image": "i", "env": [{"name": "A", **env}]}]
        for reference, spec in (
            ("serviceaccounts", {"serviceAccountName": "robot"}),
            ("secrets", {"imagePullSecrets": [{"name": "s"}]}),
            ("secrets", {"containers": with_env}),
            ("secrets", {"initContainers": with_env}),
            ("secrets", {"ephemeralContainers": with_env}),
            ("configmaps", {"containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "m"}}]}]}),
            ("resourceclaims", {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}),
            ("secrets", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}),
            ("secrets (via secret volumes)", {"volumes": [{"name": "v", "secret": {}}]}),
            ("configmaps (via configmap volumes)", {"volumes": [{"name": "v", "configMap": {}}]}),
            ("csidrivers (via CSI volumes)", {"volumes": [{"name": "v", "csi": {"driver": "d"}}]}),
            ("endpoints (via glusterFS volumes)", {"volumes": [{"name": "v", "glusterfs": {"endpoints": "e"}}]}),
            ("persistentvolumeclaims", {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
            ("persistentvolumeclaims (via ephemeral volumes)", {"volumes": [{"name": "v", "ephemeral": {}}]}),
            ("secrets (via azureFile volumes)", {"volumes": [{"name": "v", "azureFile": {}}]}),
            *(
                (reference, {"volumes": [{"name": "v", "projected": {"sources": [{field: {}}]}}]})
                for reference, field in (
                    ("configmaps (via projected volumes)", "configMap"),
                    ("secrets (via projected volumes)", "secret"),
                    ("serviceaccounts (via projected volumes)", "serviceAccountToken"),
                    ("clustertrustbundles", "clusterTrustBundle"),
                    ("podcertificates", "podCertificate"),
                )
            ),
        ):
            message = f'node "one" can not create pods that reference {reference}'
            self.assertEqual(self.rejection("CREATE", "pods", mirror(**spec)), message)
        harmless = [{"name": "a", "emptyDir": {}}, {"name": "b", "projected": {"sources": [{"downwardAPI": {}}]}}]
        self.assertEqual(self.rejection("CREATE", "pods", mirror(volumes=harmless)), "")

    def test_deletion(self) -> None:
        """A kubelet deletes pods on its node, and cannot update pods."""
        self.assertEqual(self.rejection("DELETE", "pods", name="mine"), "")
        self.assertEqual(
            self.rejection("DELETE", "pods", name="theirs"),
            'node "one" can only delete pods with spec.nodeName set to itself',
        )
        self.assertEqual(self.rejection("DELETE", "pods", name="gone"), '404 pod "gone" not found')
        self.assertEqual(
            self.rejection("UPDATE", "pods", mirror(), mirror()),
            'unexpected operation "UPDATE", node "one" can only create and delete mirror pods',
        )

    def test_status(self) -> None:
        """A kubelet updates the status of pods on its node, except for labels and resource claims."""
        old = mirror()
        update = "pods/status"
        self.assertEqual(self.rejection("UPDATE", update, {**mirror(), "status": {"phase": "Running"}}, old), "")
        for message, new in (
            ('node "one" cannot update labels through pod status', mirror(metadata={"labels": {"a": "b"}})),
            (
                'node "one" cannot update resource claim statues',
                {**mirror(), "status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}},
            ),
            (
                'node "one" cannot update extended resource claim status',
                {**mirror(), "status": {"extendedResourceClaimStatus": {"resourceClaimName": "b"}}},
            ),
        ):
            self.assertEqual(self.rejection("UPDATE", update, new, old), message)
        self.assertEqual(
            self.rejection("UPDATE", update, mirror(), mirror(nodeName="two")),
            'node "one" can only update pod status for pods with spec.nodeName set to itself',
        )
        self.assertEqual(self.rejection("CREATE", update, mirror()), 'unexpected operation "CREATE"')

    def test_eviction(self) -> None:
        """A kubelet evicts pods on its node; the name in the path counts."""
        self.assertEqual(self.rejection("CREATE", "pods/eviction", {"metadata": {"name": "mine"}}), "")
        message = "node one can only evict pods with spec.nodeName set to itself"
        self.assertEqual(
            self.rejection("CREATE", "pods/eviction", {"metadata": {"name": "mine"}}, name="theirs"), message
        )
        self.assertEqual(
            self.rejection("CREATE", "pods/eviction", {"metadata": {}}), "could not determine pod from request data"
        )
        self.assertEqual(
            self.rejection("CREATE", "pods/eviction", {"metadata": {"name": "gone"}}), '404 pod "gone" not found'
        )
        self.assertEqual(self.rejection("DELETE", "pods/eviction", name="mine"), "unexpected operation DELETE")

    def test_other_subresources(self) -> None:
        """A kubelet cannot write other subresources of pods."""
        message = "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"
        self.assertEqual(self.rejection("CREATE", "pods/binding", {"metadata": {"name": "mine"}}), message)


class NodeTests(NodeRestrictionTestCase):
    """Tests of nodes."""

    def test_name(self) -> None:
        """A kubelet writes only its Node."""
        for operation, resource in (("CREATE", "nodes"), ("UPDATE", "nodes/status"), ("DELETE", "nodes")):
            self.assertEqual(
                self.rejection(operation, resource, node("two"), node("two")),
                'node "one" is not allowed to modify node "two"',
            )
            self.assertEqual(self.rejection(operation, resource, node(), node()), "")

    def test_creation(self) -> None:
        """A new Node has no configSource, no owners (CVE-2025-5187), and only labels that kubelets may set."""
        self.assertEqual(
            self.rejection("CREATE", "nodes", node(configSource={})),
            'node "one" is not allowed to create pods with a non-nil configSource',
        )
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "x"}
        self.assertEqual(
            self.rejection("CREATE", "nodes", node(owners=[owner])),
            'node "one" is not allowed to modify ownerReferences',
        )
        labels = {
            "kubernetes.io/os": "linux",
            "example.com/a": "b",
            "z.node-restriction.kubernetes.io/x": "",
            "k8s.io/a": "",
        }
        self.assertEqual(
            self.rejection("CREATE", "nodes", node(labels=labels)),
            'node "one" is not allowed to set the following labels: k8s.io/a, z.node-restriction.kubernetes.io/x',
        )
        self.assertEqual(self.rejection("CREATE", "nodes", node(taints=[{"key": "a", "effect": "NoSchedule"}])), "")

    def test_update(self) -> None:
        """CVE-2025-5187: a kubelet cannot change taints, owners and restricted labels, by any subresource."""
        taint = {"key": "a", "effect": "NoSchedule"}
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "x"}
        for resource in ("nodes", "nodes/status"):
            for message, new, old in (
                ('node "one" is not allowed to modify taints', node(), node(taints=[taint])),
                ('node "one" is not allowed to modify taints', node(taints=[taint]), node()),
                ('node "one" is not allowed to modify ownerReferences', node(owners=[owner]), node()),
                ('node "one" is not allowed to modify ownerReferences', node(), node(owners=[owner])),
                ("is not allowed to modify labels: kubernetes.io/x", node(labels={"kubernetes.io/x": "a"}), node()),
                ("is not allowed to modify labels: kubernetes.io/x", node(), node(labels={"kubernetes.io/x": "a"})),
                (
                    'node "one" is not allowed to update configSource to a new non-nil configSource',
                    node(configSource={"configMap": {"name": "x"}}),
                    node(),
                ),
                ("", node(), node(configSource={"configMap": {"name": "x"}})),
                ("", node(taints=None), node(taints=[])),
                ("", node(labels={"a": "b"}, status={"phase": "x"}, unschedulable=True), node(labels={"c": "d"})),
            ):
                self.assertEqual(self.rejection("UPDATE", resource, new, old), message)


class LabelTests(SynchronousTestCase):
    """Tests for L{forbidden_labels} and L{same}."""

    @given(labels, labels)
    def test_only_changes(self, new: dict[str, str], old: dict[str, str]) -> None:
        """Only changed labels are checked, and of these only restricted labels of the API's domains are forbidden."""
        protected = {"kubernetes.io/other", "x.k8s.io/y", "node-restriction.kubernetes.io/r"}
        changed = {label for label in protected if new.get(label) != old.get(label)}
        self.assertEqual(forbidden_labels(new, old), sorted(changed))

    def test_same(self) -> None:
        """An empty value equals an absent one, at any depth; other values differ."""
        self.assertTrue(same({"a": None, "b": {"c": []}}, {"b": {}}))
        self.assertFalse(same({"a": 0}, {}))
        self.assertFalse(same([1], [1, 2]))


class OtherTests(NodeRestrictionTestCase):
    """Tests of claims, leases, CSINodes and ResourceSlices."""

    def test_claims(self) -> None:
        """A kubelet updates only the status of a claim's resize."""
        old = {"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {"volumeName": "v"}, "status": {}}
        grown = {"capacity": {"storage": "2Gi"}, "conditions": [{}], "allocatedResources": {"storage": "2Gi"}}
        new: JSONObject = {"metadata": {"name": "c"}, "spec": {"volumeName": "v"}, "status": grown}
        update = "persistentvolumeclaims/status"
        self.assertEqual(self.rejection("UPDATE", update, new, old), "")
        start = 'node "one" is not allowed to update fields other than status.quantity and status.conditions:'
        labelled = {**new, "metadata": {"name": "c", "labels": {"a": "b"}}}
        self.assertEqual(self.rejection("UPDATE", update, labelled, old), f"{start} metadata.labels")
        moved = {**new, "spec": {"volumeName": "w"}, "status": {"phase": "Bound"}}
        self.assertEqual(self.rejection("UPDATE", update, moved, old), f"{start} spec.volumeName, status.phase")
        self.assertEqual(self.rejection("CREATE", update, new), 'unexpected operation "CREATE"')
        self.assertEqual(self.rejection("UPDATE", "persistentvolumeclaims", new, old), "may only update PVC status")

    def test_leases(self) -> None:
        """A kubelet writes the lease of its node."""
        mine, theirs = {"metadata": {"name": "one"}}, {"metadata": {"name": "two"}}
        lease = "leases.coordination.k8s.io"
        message = "can only access node lease with the same name as the requesting node"
        for operation in ("CREATE", "UPDATE", "DELETE"):
            self.assertEqual(self.rejection(operation, lease, mine, namespace="kube-node-lease"), "")
            self.assertEqual(self.rejection(operation, lease, theirs, namespace="kube-node-lease"), message)
        self.assertEqual(
            self.rejection("CREATE", lease, mine), 'can only access leases in the "kube-node-lease" system namespace'
        )

    def test_csi_nodes(self) -> None:
        """A kubelet writes the CSINode of its node."""
        message = "can only access CSINode with the same name as the requesting node"
        for operation in ("CREATE", "UPDATE", "DELETE"):
            self.assertEqual(self.rejection(operation, "csinodes.storage.k8s.io", {"metadata": {"name": "one"}}), "")
            self.assertEqual(
                self.rejection(operation, "csinodes.storage.k8s.io", {"metadata": {"name": "two"}}), message
            )

    def test_slices(self) -> None:
        """A kubelet creates and deletes ResourceSlices of its node."""
        mine = {"metadata": {"name": "s"}, "spec": {"nodeName": "one"}}
        theirs = {"metadata": {"name": "s"}, "spec": {"allNodes": True}}
        slices = "resourceslices.resource.k8s.io"
        for operation, verb, obj, old in (("CREATE", "create", 1, 0), ("DELETE", "delete", 0, 1)):
            for result, expected in (
                (mine, ""),
                (theirs, f"can only {verb} ResourceSlice with the same NodeName as the requesting node"),
            ):
                self.assertEqual(
                    self.rejection(operation, slices, result if obj else None, result if old else None), expected
                )
        self.assertEqual(self.rejection("UPDATE", slices, theirs, mine), "")

"""Tests for L{kubetwist.admission_plugins.nodecredentials}."""

from __future__ import annotations

from base64 import b64encode
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubetwist.api.resource import JSONObject
from kubetwist.registry.core.pod.references import MIRROR_ANNOTATION
from tests.admission_plugins.nodetools import NodeRestrictionTestCase

CERTIFICATES = "certificates.k8s.io"


@cache
def signing_request(*names: str, signer: str = "kubernetes.io/kubelet-serving") -> JSONObject:
    """Return a CertificateSigningRequest for these common names."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256())
    pem = request.public_bytes(Encoding.PEM)
    return {"metadata": {"name": "csr"}, "spec": {"signerName": signer, "request": b64encode(pem).decode()}}


class TokenTests(NodeRestrictionTestCase):
    """Tests of service account tokens."""

    def token(self, name: str = "mine", uid: str = "pod-uid", audiences: tuple[str, ...] = (), **ref: str) -> str:
        """Return the message of the rejection of a token for a pod."""
        reference = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, **ref}
        request = {"metadata": {}, "spec": {"audiences": list(audiences), "boundObjectRef": reference}}
        return self.rejection("CREATE", "serviceaccounts/token", request, name="robot")

    def volumes(self, *volumes: JSONObject) -> None:
        """Set the volumes of the pod."""
        self.cluster.objects["pods", "mine"]["spec"]["volumes"] = list(volumes)

    def test_pod(self) -> None:
        """A kubelet gets tokens that are bound to a pod of its node."""
        self.volumes({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}})
        self.assertEqual(self.token(), "")
        for message, reference in (
            ("node requested token not bound to a pod", {"kind": "Secret"}),
            ("node requested token not bound to a pod", {"name": ""}),
            ("node requested token not bound to a pod", {"apiVersion": "v2"}),
            ("node requested token with a pod binding without a uid", {"uid": ""}),
            ('404 pod "gone" not found', {"name": "gone"}),
            (
                "the UID in the bound object reference (x) does not match the UID in record."
                " The object might have been deleted and then recreated",
                {"uid": "x"},
            ),
            (
                "node requested token bound to a pod scheduled on a different node",
                {"name": "theirs", "uid": "other-uid"},
            ),
        ):
            self.assertEqual(self.token(**reference), message)
        unbound = {"metadata": {}, "spec": {"audiences": []}}
        message = "node requested token not bound to a pod"
        self.assertEqual(self.rejection("CREATE", "serviceaccounts/token", unbound, name="robot"), message)
        self.assertEqual(self.rejection("UPDATE", "serviceaccounts", unbound, unbound, name="robot"), "")

    def test_audience(self) -> None:
        """A token has at most one audience, which a projected volume of the pod must list."""
        self.volumes({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault"}}]}})
        self.assertEqual(self.token(audiences=("vault",)), "")
        for audiences in ((), ("other",)):
            self.assertEqual(
                self.token(audiences=audiences),
                f'audience "{audiences[0] if audiences else ""}" not found in pod spec volume,'
                " system:node:one is not authorized to request tokens for this audience",
            )
        self.assertEqual(self.token(audiences=("a", "b")), "node may only request 0 or 1 audiences")

    def test_drivers(self) -> None:
        """The audience can be listed by the CSI driver of a volume, inline or of a claim."""
        self.cluster.add("csidrivers", "d", tokenRequests=[{"audience": "cloud"}])
        self.cluster.add("persistentvolumes", "v", csi={"driver": "d"})
        for claim in ("data", "mine-e"):
            self.cluster.add("persistentvolumeclaims", claim, volumeName="v")
        self.cluster.add("persistentvolumeclaims", "pending")
        for volume in (
            {"name": "v", "csi": {"driver": "d"}},
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
        ):
            self.volumes({"name": "x", "emptyDir": {}}, volume)
            self.assertEqual(self.token(audiences=("cloud",)), "")
            self.assertNotEqual(self.token(audiences=("other",)), "")
        self.volumes({"name": "v", "persistentVolumeClaim": {"claimName": "pending"}})
        self.assertIn("not found in pod spec volume", self.token(audiences=("cloud",)))

    def test_missing(self) -> None:
        """Missing objects are reported, unless another volume needs the audience."""
        none = {"name": "v", "persistentVolumeClaim": {"claimName": "none"}}
        self.volumes(none)
        start = 'error validating audience "x":'
        self.assertEqual(self.token(audiences=("x",)), f'{start} persistentvolumeclaim "none" not found')
        self.cluster.add("persistentvolumeclaims", "none", volumeName="gone")
        self.assertEqual(self.token(audiences=("x",)), f'{start} persistentvolume "gone" not found')
        self.volumes({"name": "v", "csi": {"driver": "d"}})
        self.assertEqual(self.token(audiences=("x",)), f'{start} csidriver.storage.k8s.io "d" not found')
        self.volumes(none, {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "x"}}]}})
        self.assertEqual(self.token(audiences=("x",)), "")

    def test_authorized(self) -> None:
        """The node can have permission for an audience, for pulling images."""
        self.cluster.allowed = {"registry"}
        self.assertEqual(self.token(audiences=("registry",)), "")
        (calls,) = self.cluster.requests
        self.assertEqual(
            (calls.verb, calls.group, calls.resource, calls.namespace, calls.name),
            ("request-serviceaccounts-token-audience", "", "registry", "ns", "robot"),
        )


class CertificateTests(NodeRestrictionTestCase):
    """Tests of certificates."""

    def test_signing_requests(self) -> None:
        """A kubelet can request kubelet certificates with the name of its node only."""
        csr = f"certificatesigningrequests.{CERTIFICATES}"
        message = "can only create a node CSR with CN=system:node:one"
        self.assertEqual(self.rejection("CREATE", csr, signing_request("system:node:one")), "")
        for names in (("system:node:two",), (), ("system:node:one", "system:node:two")):
            self.assertEqual(self.rejection("CREATE", csr, signing_request(*names)), message)
        self.assertEqual(self.rejection("CREATE", csr, signing_request("x", signer="example.com/x")), "")
        for request in ("", "@@@", b64encode(b"-----BEGIN X-----").decode()):
            spec = {"signerName": "kubernetes.io/kubelet-serving", "request": request}
            self.assertIn("unable to parse csr: ", self.rejection("CREATE", csr, {"metadata": {}, "spec": spec}))

    def test_pod_certificates(self) -> None:
        """A kubelet can request certificates of pods that run on its node only."""
        spec = {
            "nodeName": "one",
            "nodeUID": "node-uid",
            "podName": "mine",
            "podUID": "pod-uid",
            "serviceAccountName": "robot",
            "serviceAccountUID": "account-uid",
        }
        kind = f"podcertificaterequests.{CERTIFICATES}"

        def rejection(**changes: str) -> str:
            return self.rejection("CREATE", kind, {"metadata": {"name": "r"}, "spec": {**spec, **changes}})

        self.assertEqual(rejection(), "")
        whose = 'PodCertificateRequest for pod "ns/mine"'
        for message, changes in (
            ('PodCertificateRequest.Spec.NodeName="two", which is not the requesting node "one"', {"nodeName": "two"}),
            (f'500 {whose} names node UID "x", inconsistent with the running node ("node-uid")', {"nodeUID": "x"}),
            (
                '500 while retrieving pod "ns/gone" named in the PodCertificateRequest: pod "gone" not found',
                {"podName": "gone"},
            ),
            (f'500 {whose} contains pod UID ("x") which differs from running pod "pod-uid"', {"podUID": "x"}),
            (
                'pod "ns/theirs" is not running on node "one" named in the PodCertificateRequest',
                {"podName": "theirs", "podUID": "other-uid"},
            ),
            (
                f'{whose} contains serviceAccountName ("x") that differs from running pod ("robot")',
                {"serviceAccountName": "x"},
            ),
            (
                f'500 {whose} names service account UID "x", which differs from the running service account'
                ' ("account-uid")',
                {"serviceAccountUID": "x"},
            ),
        ):
            self.assertEqual(rejection(**changes), message)
        self.cluster.objects["pods", "mine"]["metadata"]["annotations"] = {MIRROR_ANNOTATION: "x"}
        self.assertEqual(rejection(), 'pod "ns/mine" is a mirror pod')
        self.assertEqual(self.rejection("DELETE", kind, name="r"), "unexpected operation DELETE")
        self.assertEqual(self.rejection("CREATE", f"{kind}/status", {}, name="r"), "unexpected subresource status")

"""Tests of L{kubetwist.registry.generic.admitting} and of admission in stores, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.api.admission import AdmissionAttributes
from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.resources.customserver import DEFINITIONS, KITES, CustomServer, definition
from tests.resources.server import Server, config_map, pod

MERGE = "application/merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"


@implementer(IMutatingAdmission, IValidatingAdmission)
class Witness:
    """An admission plugin that records requests, and can reject them."""

    name = "Witness"

    def __init__(self) -> None:
        self.admitted: list[AdmissionAttributes] = []
        self.validated: list[AdmissionAttributes] = []
        self.refuses = False
        self.change: Any = None

    def handles(self, operation: str) -> bool:
        """Handle all operations."""
        return True

    def admit(self, attributes: AdmissionAttributes) -> None:
        """Record the request, and change the object."""
        self.admitted.append(attributes)
        if self.change is not None:
            self.change(attributes)

    def validate(self, attributes: AdmissionAttributes) -> None:
        """Record the request, or reject it."""
        self.validated.append(attributes)
        if self.refuses:
            raise attributes.forbidden("the witness says so")


class AdmittingTestCase(SynchronousTestCase):
    """Base class of tests with a recording plugin."""

    server: Server

    def witness(self) -> Witness:
        """Install a recording plugin."""
        self.client = self.server.client()
        self.seen = Witness()
        self.server.admit(self.seen)
        return self.seen

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the response to a request that succeeds."""
        code, answer = self.client.ask(method, path, body, **headers)
        self.assertLess(code, 300, answer)
        return answer

    def summary(self) -> list[tuple[str, str, str, str]]:
        """Return operation, resource, kind and name of the recorded requests, which are the same in both phases."""
        both = [
            [
                (
                    one.operation,
                    f"{one.resource}/{one.subresource}".rstrip("/"),
                    f"{one.request_kind.api_version} {one.kind}",
                    one.name,
                )
                for one in phase
            ]
            for phase in (self.seen.admitted, self.seen.validated)
        ]
        self.assertEqual(both[0], both[1])
        self.seen.admitted.clear()
        self.seen.validated.clear()
        return both[0]


class BuiltInTests(AdmittingTestCase):
    """Tests of built-in resources."""

    def setUp(self) -> None:
        """Create a pod and install a plugin."""
        self.server = Server(
            "pods",
            "configmaps",
            "namespaces",
            "leases",
            "serviceaccounts",
            "poddisruptionbudgets",
            "bindings",
            "nodes",
            "subjectaccessreviews",
            "horizontalpodautoscalers",
        )
        self.client = self.server.client()
        self.ask("POST", PODS, pod("p"))
        self.witness()

    def test_connections(self) -> None:
        """Plugins get connections with the options of their query; they are never dry runs."""
        self.client.ask("POST", f"{PODS}/p/exec?command=ls&command=-l&stdin=1&tty=false&container=main")
        self.assertEqual(self.seen.admitted[0].object, self.seen.validated[0].object)
        exec_options = {"kind": "PodExecOptions", "apiVersion": "v1", "stdin": True, "container": "main"}
        self.assertEqual(self.seen.admitted[0].object, {**exec_options, "command": ["ls", "-l"]})
        self.assertIsNone(self.seen.admitted[0].options)
        self.assertEqual(self.summary(), [("CONNECT", "pods/exec", "v1 PodExecOptions", "p")])
        self.client.ask("GET", f"{PODS}/p/portforward?ports=80&ports=443")
        self.assertEqual((self.seen.admitted[0].object or {})["ports"], [80, 443])
        self.client.ask("GET", f"{PODS}/p/proxy/some/path")
        self.assertEqual((self.seen.admitted[1].object or {})["path"], "/some/path")
        self.client.ask("GET", f"{PODS}/p/attach")
        self.assertEqual(
            [kind for _, _, kind, _ in self.summary()],
            ["v1 PodPortForwardOptions", "v1 PodProxyOptions", "v1 PodAttachOptions"],
        )
        self.client.ask("GET", f"{PODS}/p/log")
        self.assertEqual(self.summary(), [])
        code, answer = self.client.ask("GET", f"{PODS}/p/exec?dryRun=All&command=x")
        self.assertEqual((code, answer["message"]), (400, "dryRun is not supported"))
        code, answer = self.client.ask("GET", f"{PODS}/p/portforward?ports=x")
        self.assertEqual(code, 400)
        self.seen.refuses = True
        code, answer = self.client.ask("GET", f"{PODS}/p/exec?command=x")
        self.assertEqual((code, answer["message"]), (403, 'pods "p" is forbidden: the witness says so'))

    def test_actions(self) -> None:
        """Bindings and evictions are creations of their kinds; the resulting write is not admitted again."""
        self.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
        self.assertEqual(self.summary(), [("CREATE", "pods/binding", "v1 Binding", "p")])
        self.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        self.assertEqual(self.summary(), [("CREATE", "pods/eviction", "policy/v1 Eviction", "p")])
        self.ask("POST", PODS, pod("q"))
        self.summary()
        bindings = "/api/v1/namespaces/default/bindings"
        self.ask("POST", bindings, {"metadata": {"name": "q"}, "target": {"name": "n"}})
        self.assertEqual(self.summary(), [("CREATE", "bindings", "v1 Binding", "q")])

    def test_changed_binding(self) -> None:
        """The binding as a plugin changed it is executed."""

        def change(attributes: AdmissionAttributes) -> None:
            assert attributes.object is not None
            attributes.object["metadata"]["labels"] = {"zone": "a"}

        self.seen.change = change
        self.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}})
        self.assertEqual(self.ask("GET", f"{PODS}/p")["metadata"]["labels"], {"zone": "a"})

    def test_refused_action(self) -> None:
        """A rejected eviction deletes no pod."""
        self.seen.refuses = True
        code, _ = self.client.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
        self.assertEqual(code, 403)
        self.assertNotIn("deletionTimestamp", self.ask("GET", f"{PODS}/p")["metadata"])

    def test_put_creates(self) -> None:
        """A PUT that creates an object is admitted as a creation."""
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
        made = self.ask("PUT", path, {"metadata": {"name": "l"}})
        self.ask("PUT", path, {**made, "spec": {"holderIdentity": "me"}})
        kind = "coordination.k8s.io/v1 Lease"
        self.assertEqual(self.summary(), [("CREATE", "leases", kind, "l"), ("UPDATE", "leases", kind, "l")])

    def test_namespaces(self) -> None:
        """The namespace of a namespace is its name; its deletion is admitted once, with the old object."""
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        self.ask("DELETE", "/api/v1/namespaces/n")
        self.ask("DELETE", "/api/v1/namespaces/n")
        self.assertEqual([one.namespace for one in self.seen.admitted], ["n", "n"])
        old = self.seen.admitted[1].old_object
        assert old is not None
        self.assertEqual((old["metadata"]["name"], self.seen.admitted[1].object), ("n", None))

    def test_generated_names(self) -> None:
        """A name is empty until it is generated; validating plugins get the object with its name."""
        names = []

        def change(attributes: AdmissionAttributes) -> None:
            assert attributes.object is not None
            names.append(attributes.object["metadata"].get("name"))

        self.seen.change = change
        made = self.ask("POST", MAPS, {"metadata": {"generateName": "m-"}})
        self.assertEqual(names, [None])
        validated = self.seen.validated[0]
        assert validated.object is not None
        self.assertEqual((validated.name, validated.object["metadata"]["name"]), ("", made["metadata"]["name"]))

    def test_owners(self) -> None:
        """Duplicate owners that a plugin adds are removed, with a warning."""
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}

        def change(attributes: AdmissionAttributes) -> None:
            assert attributes.object is not None
            attributes.object["metadata"]["ownerReferences"] = [owner, dict(owner)]

        self.seen.change = change
        answered = self.client.answer("POST", MAPS, config_map("m"))
        self.assertEqual(answered.code, 201)
        self.assertIn("duplicate entries after mutating admission happens", str(answered.headers))
        self.assertEqual(self.ask("GET", f"{MAPS}/m")["metadata"]["ownerReferences"], [owner])

    def test_versions(self) -> None:
        """Plugins get the version of the request and that of the object."""
        path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        self.ask("POST", path, {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}})
        (seen,) = self.seen.admitted
        self.assertEqual((seen.version, seen.request_kind.version, seen.object_kind.version), ("v1", "v1", "v2"))

    def test_reviews(self) -> None:
        """Creating a review is admitted as a creation; a rejected review has no result."""
        review = {"spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}}
        self.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        kind = "authorization.k8s.io/v1 SubjectAccessReview"
        self.assertEqual(self.summary(), [("CREATE", "subjectaccessreviews", kind, "")])
        self.seen.refuses = True
        code, _ = self.client.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        self.assertEqual(code, 403)


class CustomTests(AdmittingTestCase):
    """Tests of custom resources."""

    def setUp(self) -> None:
        """Create a custom resource with two versions, a status and a scale."""
        self.server = server = CustomServer()
        client = server.client()
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        replicas = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        crd = definition(schema, subresources={"status": {}, "scale": replicas})
        newer = {**crd["spec"]["versions"][0], "name": "v2", "storage": False}
        crd["spec"]["versions"].append(newer)
        server.define(client, crd)
        self.assertEqual(client.ask("GET", DEFINITIONS)[0], 200)
        self.witness()

    def kite(self, **spec: Any) -> dict[str, Any]:
        """Return an object."""
        return {"apiVersion": "example.com/v2", "kind": "Kite", "metadata": {"name": "k"}, "spec": spec}

    def test_versions(self) -> None:
        """Plugins get objects in the version of the request, both new and old."""
        path = KITES.replace("/v1/", "/v2/")
        self.ask("POST", path, self.kite(replicas=1))
        self.ask("PATCH", f"{path}/k", {"spec": {"replicas": 2}}, Content_Type=MERGE)
        self.ask("PATCH", f"{path}/k/status", {"status": {"replicas": 2}}, Content_Type=MERGE)
        for seen in self.seen.admitted:
            self.assertEqual((seen.version, seen.object_kind.version), ("v2", "v2"))
        kind = "example.com/v2 Kite"
        self.assertEqual(
            self.summary(),
            [
                ("CREATE", "kites", kind, "k"),
                ("UPDATE", "kites", kind, "k"),
                ("UPDATE", "kites/status", kind, "k"),
            ],
        )

    def test_scale(self) -> None:
        """Plugins get a scale as a C{Scale}, and can change it."""
        self.ask("POST", KITES, {**self.kite(replicas=1), "apiVersion": "example.com/v1"})
        self.summary()

        def change(attributes: AdmissionAttributes) -> None:
            assert attributes.object is not None
            attributes.object["spec"]["replicas"] += 10

        self.seen.change = change
        answer = self.ask("PATCH", f"{KITES}/k/scale", {"spec": {"replicas": 3}}, Content_Type=MERGE)
        self.assertEqual(answer["spec"]["replicas"], 13)
        old = self.seen.validated[0].old_object
        assert old is not None
        self.assertEqual(old["spec"], {"replicas": 1})
        self.assertEqual(self.summary(), [("UPDATE", "kites/scale", "autoscaling/v1 Scale", "k")])
        self.assertEqual(self.ask("GET", f"{KITES}/k")["spec"]["replicas"], 13)

    def test_deletion(self) -> None:
        """The deletion of a custom resource is admitted."""
        self.ask("POST", KITES, {**self.kite(), "apiVersion": "example.com/v1"})
        self.summary()
        self.ask("DELETE", f"{KITES}/k")
        self.assertEqual(self.summary(), [("DELETE", "kites", "example.com/v1 Kite", "k")])

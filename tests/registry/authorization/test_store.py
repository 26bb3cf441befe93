"""Tests for L{kubetwist.registry.authorization.store}, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.jsontypes import JSONObject
from kubetwist.api.options import CreateOptions
from kubetwist.api.requestscope import RequestScope
from kubetwist.api.selectors import Requirement
from kubetwist.authorization.union import AuthorizerUnion
from kubetwist.registry.authorization.store import AccessReview, authorizer_attributes
from kubetwist.registry.generic.resourceinfo import ResourceInfo
from tests.registry.rbac.rbacserver import API, REVIEWS, USERS, RBACServer, binding, role, rule

SUBJECT, OWN = f"{REVIEWS}/subjectaccessreviews", f"{REVIEWS}/selfsubjectaccessreviews"
LOCAL = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
LIST = {"verb": "list", "resource": "configmaps", "namespace": "default"}


class ReviewTestCase(SynchronousTestCase):
    """A test case with a server on which Bob may list ConfigMaps, and Alice may create reviews."""

    def setUp(self) -> None:
        """Grant the permissions."""
        self.server = RBACServer()
        self.server.make(f"{API}/namespaces/default/roles", role("maps", rule("list", "configmaps")))
        self.server.make(f"{API}/namespaces/default/rolebindings", binding("maps", "Role/maps", "User/bob"))
        groups = ["authorization.k8s.io", "authentication.k8s.io"]
        self.server.make(f"{API}/clusterroles", role("ask", rule("create", "*", groups)))
        self.server.make(f"{API}/clusterrolebindings", binding("ask", "ClusterRole/ask", "User/alice", "User/bob"))

    def review(self, path: str, spec: Any, user: str = "alice", **meta: Any) -> tuple[int, Any]:
        """Return the response to a review."""
        return self.server.ask(user, "POST", path, {"metadata": meta, "spec": spec})

    def status(self, path: str, spec: Any, user: str = "alice") -> Any:
        """Return the status of a review that succeeds."""
        code, answer = self.review(path, spec, user)
        self.assertEqual(code, 201, answer)
        self.assertEqual(answer["spec"], spec)
        return answer["status"]

    def causes(self, path: str, spec: Any, **meta: Any) -> list[tuple[str, str]]:
        """Return fields and messages of the errors of an invalid review."""
        code, status = self.review(path, spec, **meta)
        self.assertEqual((code, status["reason"]), (422, "Invalid"), status)
        self.assertNotIn("kind", status["details"])
        self.assertTrue(status["message"].startswith('.authorization.k8s.io "" is invalid: '), status["message"])
        return [(cause["field"], cause["message"]) for cause in status["details"]["causes"]]


class _Slow:
    """An asynchronous authorizer."""

    name = "Slow"

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def authorize(self, attributes: Any) -> Deferred[Verdict]:
        """Return a verdict later."""
        return succeed(self._verdict)


class AccessTests(ReviewTestCase):
    """Tests for access reviews."""

    def test_allowed(self) -> None:
        """A review returns whether a user is allowed, and the binding."""
        reason = 'RBAC: allowed by RoleBinding "maps/default" of Role "maps" to User "bob"'
        expected = {"allowed": True, "reason": reason}
        self.assertEqual(self.status(SUBJECT, {"user": "bob", "resourceAttributes": LIST}), expected)
        self.assertEqual(self.status(LOCAL, {"user": "bob", "resourceAttributes": LIST}), expected)
        self.assertEqual(self.status(OWN, {"resourceAttributes": LIST}, "bob"), expected)
        self.assertEqual(self.status(OWN, {"resourceAttributes": LIST}), {"allowed": False})

    def test_several(self) -> None:
        """The first of several authorizers with an opinion decides, even if they are asynchronous."""
        silence, no, yes = (
            Verdict(decision, decision.value) for decision in (Decision.NO_OPINION, Decision.DENY, Decision.ALLOW)
        )
        question = {"user": "eve", "resourceAttributes": LIST}
        for verdicts, expected in (
            ((silence, silence), {"allowed": False, "reason": "no opinion\nno opinion"}),
            ((silence, yes, no), {"allowed": True, "reason": "allow"}),
            ((silence, no, yes), {"allowed": False, "denied": True, "reason": "deny"}),
            (
                (Verdict(Decision.NO_OPINION, error="broken"),),
                {"allowed": False, "evaluationError": "broken"},
            ),
        ):
            union = AuthorizerUnion([*map(_Slow, verdicts)])
            review = AccessReview(self.info("SubjectAccessReview"), evolve(self.server.context, authorizer=union))
            scope = RequestScope("", USERS["alice"])
            obj = {"metadata": {}, "spec": question}
            answer = self.server.run(review.create(scope, obj, CreateOptions()))
            self.assertEqual(answer["status"], expected)

    def test_without_selectors(self) -> None:
        """Without the feature gate AuthorizeWithSelectors, selectors are removed from reviews."""
        environment = self.server.context.environment
        assert environment is not None
        self.patch(environment.context, "features", FeatureGates((1, 31)))
        review = AccessReview(self.info("SelfSubjectAccessReview"), self.server.context)
        selectors: JSONObject = {"fieldSelector": {"rawSelector": "x"}, "labelSelector": {}}
        obj: JSONObject = {"metadata": {}, "spec": {"resourceAttributes": {**LIST, **selectors}}}
        answer = self.server.run(review.create(RequestScope("", USERS["bob"]), obj, CreateOptions()))
        self.assertEqual(answer["spec"]["resourceAttributes"], LIST)
        self.assertTrue(answer["status"]["allowed"])

    def info(self, kind: str) -> ResourceInfo:
        """Return the description of a resource."""
        (result,) = [info for info in self.server.infos if info.kind == kind]
        return result

    def test_groups(self) -> None:
        """A review may have groups without a user; group system:masters has all permissions."""
        spec = {"groups": ["system:masters"], "nonResourceAttributes": {"path": "/x", "verb": "get"}}
        self.assertEqual(self.status(SUBJECT, spec), {"allowed": True})

    def test_resource_or_path(self) -> None:
        """A review has either a resource or a path."""
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        nothing = [("spec.resourceAttributes", f"Invalid value: null: {text}")]
        self.assertEqual(self.causes(OWN, {}), nothing)
        self.assertEqual(self.causes(SUBJECT, {"user": "bob"}), nothing)
        both = {"resourceAttributes": LIST, "nonResourceAttributes": {"path": "/x", "verb": "get"}}
        self.assertEqual(
            self.causes(SUBJECT, both),
            [
                (
                    "spec.nonResourceAttributes",
                    'Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with'
                    " resourceAttributes",
                ),
                ("spec.user", 'Invalid value: "": at least one of user or group must be specified'),
            ],
        )

    def test_metadata(self) -> None:
        """A review with a name or labels is rejected."""
        errors = self.causes(OWN, {"resourceAttributes": LIST}, labels={"b": "c", "a": "b"}, name="x")
        self.assertEqual(errors[0][0], "metadata")
        self.assertTrue(errors[0][1].startswith('Invalid value: {"name":"x","labels":{"a":"b","b":"c"}'))
        self.assertTrue(errors[0][1].endswith(": must be empty"))

    def test_local(self) -> None:
        """A local review has resources of its namespace."""
        other = {**LIST, "namespace": "other"}
        text = 'Invalid value: "other": must match metadata.namespace'
        self.assertEqual(
            self.causes(LOCAL, {"user": "bob", "resourceAttributes": other}),
            [("spec.resourceAttributes.namespace", text)],
        )
        path = {"path": "/x", "verb": "get"}
        self.assertEqual(
            self.causes(LOCAL, {"user": "bob", "nonResourceAttributes": path}),
            [
                (
                    "spec.nonResourceAttributes",
                    'Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
                )
            ],
        )
        code, _ = self.review(LOCAL, {"user": "bob", "resourceAttributes": LIST}, namespace="other")
        self.assertEqual(code, 400)

    def test_selectors(self) -> None:
        """A selector has either text or requirements."""
        both = {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In", "values": ["b"]}]}
        path = "spec.resourceAttributes.fieldSelector"
        self.assertEqual(
            self.causes(OWN, {"resourceAttributes": {**LIST, "fieldSelector": both}}),
            [(f"{path}.rawSelector", 'Invalid value: "a=b": may not specified at the same time as requirements')],
        )
        needed = f"Required value: when {path} is specified, requirements or rawSelector is required"
        self.assertEqual(
            self.causes(OWN, {"resourceAttributes": {**LIST, "fieldSelector": {}}}),
            [(f"{path}.requirements", needed)],
        )
        requirements = [{"operator": "In"}, {"key": "k", "operator": "Exists", "values": ["x"]}]
        fields = [
            field
            for field, _ in self.causes(
                OWN, {"resourceAttributes": {**LIST, "labelSelector": {"requirements": requirements}}}
            )
        ]
        requirements_path = "spec.resourceAttributes.labelSelector.requirements"
        self.assertEqual(fields[0], f"{requirements_path}[0].values")
        self.assertEqual(set(fields[1:-1]), {f"{requirements_path}[0].key"})
        self.assertEqual(fields[-1], f"{requirements_path}[1].values")

    def test_unknown_operators(self) -> None:
        """Unknown parts of a selector are omitted, which the status reports."""
        strange = {"key": "a", "operator": "Matches", "values": ["x"]}
        known = {"key": "a", "operator": "NotIn", "values": ["x"]}
        for requirements, how in (([strange], "ignored"), ([strange, known], "partially ignored")):
            for selector in ("fieldSelector", "labelSelector"):
                spec = {"resourceAttributes": {**LIST, selector: {"requirements": requirements}}}
                self.assertEqual(
                    self.status(OWN, spec)["evaluationError"],
                    f"spec.resourceAttributes.{selector} {how} due to parse error",
                )

    def test_attributes(self) -> None:
        """Authorizers get the selectors of the review in both forms."""
        problems: list[str] = []
        for fields, labels in (
            ({"rawSelector": "spec.nodeName=n1"}, {"rawSelector": "!a"}),
            (
                {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n1"]}]},
                {"requirements": [{"key": "a", "operator": "DoesNotExist"}]},
            ),
        ):
            resource = {**LIST, "fieldSelector": fields, "labelSelector": labels}
            attributes = authorizer_attributes(USERS["bob"], resource, None, problems)
            self.assertEqual(attributes.field_terms, (("spec.nodeName", "n1", True),))
            self.assertEqual(attributes.label_terms, (Requirement("a", "!", ()),))
        self.assertEqual((problems, attributes.version), ([], "*"))
        authorizer_attributes(USERS["bob"], {**LIST, "labelSelector": {"rawSelector": "a in"}}, None, problems)
        self.assertEqual(problems, ["spec.resourceAttributes.labelSelector ignored due to parse error"])


class RulesTests(ReviewTestCase):
    """Tests for C{SelfSubjectRulesReview}."""

    path = f"{REVIEWS}/selfsubjectrulesreviews"

    def test_rules(self) -> None:
        """A user can list the rules that apply to him in a namespace."""
        code, answer = self.review(self.path, {"namespace": "default"}, "bob")
        self.assertEqual((code, answer["spec"]), (201, {}))
        status = answer["status"]
        self.assertIn(rule("list", "configmaps"), status["resourceRules"])
        self.assertEqual((status["nonResourceRules"], status["incomplete"]), ([], False))

    def test_namespace(self) -> None:
        """The namespace is required."""
        code, answer = self.review(self.path, {}, "bob")
        self.assertEqual((code, answer["message"]), (400, "no namespace on request"))


class UserTests(ReviewTestCase):
    """Tests for reviews of users and tokens."""

    def test_self(self) -> None:
        """A user can review who he is."""
        code, answer = self.server.ask("alice", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        self.assertEqual(code, 201)
        self.assertEqual(list(answer["metadata"]), ["creationTimestamp"])
        self.assertEqual(
            answer["status"]["userInfo"],
            {"username": "alice", "uid": "uid-alice", "groups": ["developers", "qa", "system:authenticated"]},
        )

    def test_token(self) -> None:
        """A token review returns the user, and the requested audiences of the token."""
        user = {"username": "bob", "groups": ["system:authenticated"]}
        known = {"authenticated": True, "user": user, "audiences": ["https://here"]}
        self.assertEqual(self.status(TOKENS, {"token": "bob"}), known)
        self.assertEqual(self.status(TOKENS, {"token": "bob", "audiences": ["x", "https://here"]}), known)
        twice = self.status(TOKENS, {"token": "bob", "audiences": ["https://here", "x", "https://here"]})
        self.assertEqual(twice["audiences"], ["https://here"] * 2)
        unknown = {"user": {}, "error": "invalid bearer token"}
        self.assertEqual(self.status(TOKENS, {"token": "nobody"}), unknown)
        self.assertEqual(self.status(TOKENS, {"token": "bob", "audiences": ["x"]}), unknown)

    def test_no_token(self) -> None:
        """The token is required."""
        code, answer = self.review(TOKENS, {"token": ""})
        self.assertEqual((code, answer["message"]), (400, "token is required for TokenReview in authentication"))

    def test_status_from_client(self) -> None:
        """The client's status is kept if the token is invalid; a review has no namespace."""
        body = {"metadata": {"namespace": "x"}, "spec": {"token": "bob"}, "status": {"error": "e"}}
        _, answer = self.server.ask("alice", "POST", TOKENS, body)
        self.assertNotIn("namespace", answer["metadata"])
        self.assertEqual((answer["status"]["error"], answer["status"]["authenticated"]), ("e", True))
        body = {"spec": {"token": "nobody"}, "status": {"authenticated": True}}
        _, answer = self.server.ask("alice", "POST", TOKENS, body)
        self.assertEqual(answer["status"], {"user": {}, "error": "invalid bearer token"})

"""Tests for L{kubetwist.admission_plugins.policies.validating}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from tests.admission_plugins.fakes import starting_over
from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase, rule


class ValidatingTests(PolicyTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.validating}."""

    def test_reviews(self) -> None:
        """Policies do not apply to access reviews, even if they match all resources."""
        everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
        self.policy(matchConstraints={"resourceRules": [everything]}, validations=[{"expression": "false"}])
        self.assertEqual(self.request_error("POST", MAPS, {"metadata": {"name": "m"}})[0], 422)
        spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        self.assertTrue(self.send_request("POST", path, {"spec": spec})["status"]["allowed"])

    def test_denial(self) -> None:
        """A request that fails a validation is rejected with the message and reason of the validation."""
        self.policy(
            variables=[{"name": "size", "expression": "object.?data.orValue({}).size()"}],
            validations=[
                {"expression": "variables.size < 3", "messageExpression": "'has ' + string(variables.size)"},
                {"expression": "!('no' in object.?data.orValue({}))", "message": "never", "reason": "Forbidden"},
                {"expression": "object.metadata.name != 'x'"},
            ],
        )
        self.create("ok", {"a": "1"})
        denied = "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request:"
        self.assertEqual(
            self.request_error("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "", "b": "", "c": ""}}),
            (422, "Invalid", f'configmaps "m" is forbidden: {denied} has 3'),
        )
        self.assertEqual(
            self.request_error("POST", MAPS, {"metadata": {"name": "m"}, "data": {"no": ""}}),
            (403, "Forbidden", f'configmaps "m" is forbidden: {denied} never'),
        )
        _, answer = self.client.ask("POST", MAPS, {"metadata": {"name": "x"}})
        self.assertEqual(
            answer["details"]["causes"], [{"message": f"{denied} failed expression: object.metadata.name != 'x'"}]
        )

    def test_refilled(self) -> None:
        """While caches are refilled their old content is used, also if it is empty; afterwards their new content."""
        caches = [store.cache for store in self.server.stores if "admissionpolic" in store.cache.prefix]
        self.assertEqual(len(caches), 4)
        self.create("a")
        with starting_over(self.server, caches):
            self.create("b")
        self.policy(validations=[{"expression": "false"}])
        self.request_error("POST", MAPS, {"metadata": {"name": "c"}})
        with starting_over(self.server, caches):
            self.request_error("POST", MAPS, {"metadata": {"name": "c"}})
        self.request_error("POST", MAPS, {"metadata": {"name": "c"}})

    def test_without_binding(self) -> None:
        """A policy without a binding, or whose binding was deleted, has no effect."""
        self.policy(validations=[{"expression": "false"}], binding=None)
        self.create("a")
        self.bind()
        self.request_error("POST", MAPS, {"metadata": {"name": "b"}})
        self.send_request("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p-b")
        self.create("b")

    def test_old_object(self) -> None:
        """An update has an object and an old object; a delete has only an old object."""
        everything = {**rule("configmaps"), "operations": ["*"]}
        self.policy(
            matchConstraints={"resourceRules": [everything]},
            validations=[
                {
                    "expression": "request.operation == 'CREATE' ? oldObject == null : "
                    "request.operation == 'UPDATE' ? object.data == oldObject.data : "
                    "object == null && oldObject.metadata.name != 'keep'"
                }
            ],
        )
        self.create("keep", {"a": "1"})
        content = {"Content_Type": "application/merge-patch+json"}
        self.send_request("PATCH", f"{MAPS}/keep", {"metadata": {"labels": {"x": "y"}}}, **content)
        self.request_error("PATCH", f"{MAPS}/keep", {"data": {"a": "2"}}, **content)
        self.request_error("DELETE", f"{MAPS}/keep")
        self.create("go")
        self.send_request("DELETE", f"{MAPS}/go")

    def test_failure_policy(self) -> None:
        """An expression that fails to evaluate denies the request, unless failurePolicy is Ignore."""
        self.policy(validations=[{"expression": "object.nothere == 1"}])
        code, reason, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual((code, reason), (422, "Invalid"))
        self.assertIn("expression 'object.nothere == 1' resulted in error: no such key: nothere", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.send_request("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_warnings(self) -> None:
        """The action Warn sends a warning and admits the request."""
        self.policy(validations=[{"expression": "false", "message": "hm"}], binding={"validationActions": ["Warn"]})
        answer = self.client.answer("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(answer.code, 201)
        self.assertIn(
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': hm",
            answer.headers["warning"][0],
        )

    def test_authorizer(self) -> None:
        """Expressions can check permissions of the user, also with an asynchronous authorizer."""
        pending: list[Deferred[Verdict]] = []

        def authorize(attributes: AuthorizerAttributes) -> Any:
            if attributes.verb != "approve":
                return Verdict(Decision.ALLOW)
            pending.append(Deferred())
            return pending[-1]

        self.server.authorizer.authorize = authorize
        self.policy(
            validations=[
                {"expression": "authorizer.requestResource.check('approve').allowed()", "message": "ask first"}
            ]
        )
        for decision, code in ((Decision.ALLOW, b" 201 "), (Decision.NO_OPINION, b" 422 ")):
            client = self.server.client()
            body = b'{"metadata":{"generateName":"a"}}'
            head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            self.assertEqual(client.taken(), b"")
            pending.pop().callback(Verdict(decision))
            self.server.clock.advance(0)
            self.assertIn(code, client.taken().partition(b"\r\n")[0])
        self.assertEqual(pending, [])

    def test_configuration_is_exempt(self) -> None:
        """A policy cannot prevent changes of policies."""
        everything = {**rule("*"), "operations": ["*"]}
        self.policy(matchConstraints={"resourceRules": [everything]}, validations=[{"expression": "false"}])
        self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.send_request("DELETE", f"{GROUP}/validatingadmissionpolicies/p")
        self.create("a")

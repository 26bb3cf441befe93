"""Tests for L{kubetwist.admission_plugins.policies.validating}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from tests.admission_plugins.fakes import starting_over
from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase, rule


class ValidatingTests(PolicyTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.validating}."""

    def test_denial(self) -> None:
        """What a validation does not accept is refused, with its message, and the reason it gives."""
        self.policy(
            variables=[{"name": "size", "expression": "object.?data.orValue({}).size()"}],
            validations=[
                {"expression": "variables.size < 3", "messageExpression": "'has ' + string(variables.size)"},
                {"expression": "!('no' in object.?data.orValue({}))", "message": "never", "reason": "Forbidden"},
                {"expression": "object.metadata.name != 'x'"},
            ],
        )
        self.create("ok", {"a": "1"})
        said = "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request:"
        self.assertEqual(
            self.refused("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "", "b": "", "c": ""}}),
            (422, "Invalid", f'configmaps "m" is forbidden: {said} has 3'),
        )
        self.assertEqual(
            self.refused("POST", MAPS, {"metadata": {"name": "m"}, "data": {"no": ""}}),
            (403, "Forbidden", f'configmaps "m" is forbidden: {said} never'),
        )
        _, answer = self.client.ask("POST", MAPS, {"metadata": {"name": "x"}})
        self.assertEqual(
            answer["details"]["causes"], [{"message": f"{said} failed expression: object.metadata.name != 'x'"}]
        )

    def test_lost_place(self) -> None:
        """While caches start over, what they had goes on to hold, be it nothing; then what they have become does."""
        caches = [store.cache for store in self.server.stores if "admissionpolic" in store.cache.prefix]
        self.assertEqual(len(caches), 4)
        self.create("a")
        with starting_over(self.server, caches):
            self.create("b")
        self.policy(validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "c"}})
        with starting_over(self.server, caches):
            self.refused("POST", MAPS, {"metadata": {"name": "c"}})
        self.refused("POST", MAPS, {"metadata": {"name": "c"}})

    def test_without_binding(self) -> None:
        """A policy that is not bound does nothing; one that is bound no more, neither."""
        self.policy(validations=[{"expression": "false"}], binding=None)
        self.create("a")
        self.bind()
        self.refused("POST", MAPS, {"metadata": {"name": "b"}})
        self.ask("DELETE", f"{GROUP}/validatingadmissionpolicybindings/p-b")
        self.create("b")

    def test_old_object(self) -> None:
        """An update is seen with what it replaces; a deletion has nothing but that."""
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
        self.ask("PATCH", f"{MAPS}/keep", {"metadata": {"labels": {"x": "y"}}}, **content)
        self.refused("PATCH", f"{MAPS}/keep", {"data": {"a": "2"}}, **content)
        self.refused("DELETE", f"{MAPS}/keep")
        self.create("go")
        self.ask("DELETE", f"{MAPS}/go")

    def test_failure_policy(self) -> None:
        """An expression that can not be evaluated denies, or with failurePolicy Ignore does not."""
        self.policy(validations=[{"expression": "object.nothere == 1"}])
        code, reason, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual((code, reason), (422, "Invalid"))
        self.assertIn("expression 'object.nothere == 1' resulted in error: no such key: nothere", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_warnings(self) -> None:
        """The action Warn tells the client, and lets the request pass."""
        self.policy(validations=[{"expression": "false", "message": "hm"}], binding={"validationActions": ["Warn"]})
        answer = self.client.answer("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(answer.code, 201)
        self.assertIn(
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': hm",
            answer.headers["warning"][0],
        )

    def test_authorizer(self) -> None:
        """Expressions ask what the user may do, also when the answer takes its time."""
        pending: list[Deferred[Verdict]] = []

        def authorize(question: AuthorizerAttributes) -> Any:
            if question.verb != "approve":
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
        """A policy can not lock everybody out of changing policies."""
        everything = {**rule("*"), "operations": ["*"]}
        self.policy(matchConstraints={"resourceRules": [everything]}, validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.ask("DELETE", f"{GROUP}/validatingadmissionpolicies/p")
        self.create("a")

"""Tests for L{kubetwist.admission_plugins.policies.source}."""

from __future__ import annotations

from typing import Any

from kubetwist.admission.expressions import _in_other_thread
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase


class CompiledTests(PolicyTestCase):
    """Tests for L{PolicySource}."""

    def test_changed_policy(self) -> None:
        """A changed policy applies to the next request."""
        self.policy(validations=[{"expression": "false"}])
        self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        patch = {"spec": {"validations": [{"expression": "true"}]}}
        path = f"{GROUP}/validatingadmissionpolicies/p"
        self.send_request("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_conditions(self) -> None:
        """A policy is skipped if a match condition is false; if it fails to evaluate, the failure policy decides."""
        conditions = [
            {"name": "named", "expression": "object.metadata.name.startsWith('a')"},
            {"name": "labelled", "expression": "object.metadata.labels['k'] == 'v'"},
        ]
        self.policy(matchConditions=conditions, validations=[{"expression": "false", "message": "no"}])
        self.create("b")
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("expression 'object.metadata.labels['k'] == 'v'' resulted in error: no such key: labels", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.send_request("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_budget(self) -> None:
        """A policy that exceeds the cost budget denies the request in limited time."""
        listed = "object.data.map(k, k)"
        bomb = f"{listed}.all(a, {listed}.all(b, {listed}.all(c, a + b + c != 'x')))"
        self.policy(validations=[{"expression": bomb}])
        data = {f"k{number}": "" for number in range(200)}
        _, _, message = self.request_error("POST", MAPS, {"metadata": {"name": "a"}, "data": data})
        self.assertIn("operation cancelled: actual cost limit exceeded", message)

    def test_expensive(self) -> None:
        """A policy with expensive expressions is evaluated in a thread, with the same result."""
        threads = self.server.done_in_threads
        listed = "object.data.map(k, k)"
        self.policy(validations=[{"expression": f"{listed}.all(a, {listed}.all(b, a != 'no'))"}])
        for size, expected in ((3, []), (100, ["_run_in_thread"])):
            threads.clear()
            data = {f"k{number}": "" for number in range(size)}
            self.create(f"ok{size}", data)
            self.request_error("POST", MAPS, {"metadata": {"name": f"no{size}"}, "data": {**data, "no": ""}})
            self.assertEqual([function.__name__ for function in threads], expected * 2)

    def test_authorizer_of_expensive(self) -> None:
        """Authorizers are called only in the reactor's thread; the evaluation in the thread is repeated."""
        calls: list[bool] = []
        in_thread: list[bool] = []
        outer = self.server.done_in_threads

        def authorize(attributes: AuthorizerAttributes) -> Any:
            if attributes.verb == "approve":
                calls.append(_in_other_thread.get())
            return Verdict(Decision.ALLOW)

        self.server.authorizer.authorize = authorize
        listed = "object.data.map(k, k)"
        costly = f"{listed}.all(a, {listed}.all(b, a != 'no'))"
        approved = "authorizer.requestResource.check('approve').allowed()"
        self.policy(validations=[{"expression": f"{costly} && {approved}"}])
        outer.clear()
        self.create("a", {f"k{number}": "" for number in range(100)})
        in_thread = [function.__name__ == "_run_in_thread" for function in outer]
        # The first evaluation in the thread needs the decision, the second one has it.
        self.assertEqual((in_thread, calls), ([True, True], [False]))

    def test_variables_are_lazy(self) -> None:
        """A variable is evaluated at its first use, and once."""
        self.policy(
            variables=[{"name": "broken", "expression": "object.nothere"}, {"name": "n", "expression": "1 + 1"}],
            validations=[{"expression": "variables.n == 2 || variables.broken == 1"}],
        )
        self.create("a")

"""Tests for L{kubetwist.admission_plugins.policies.source}."""

from __future__ import annotations

from typing import Any

from kubetwist.admission.expressions import _in_other_thread
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from tests.admission_plugins.policies.policycase import GROUP, MAPS, PolicyTestCase


class CompiledTests(PolicyTestCase):
    """Tests for L{kubetwist.admission_plugins.policies.source}."""

    def test_changed_policy(self) -> None:
        """A change of a policy holds for the next request."""
        self.policy(validations=[{"expression": "false"}])
        self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        patch = {"spec": {"validations": [{"expression": "true"}]}}
        path = f"{GROUP}/validatingadmissionpolicies/p"
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_conditions(self) -> None:
        """A policy is not asked when a condition does not hold; one that can not be told denies, or is ignored."""
        conditions = [
            {"name": "named", "expression": "object.metadata.name.startsWith('a')"},
            {"name": "labelled", "expression": "object.metadata.labels['k'] == 'v'"},
        ]
        self.policy(matchConditions=conditions, validations=[{"expression": "false", "message": "no"}])
        self.create("b")
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}})
        self.assertIn("expression 'object.metadata.labels['k'] == 'v'' resulted in error: no such key: labels", message)
        path = f"{GROUP}/validatingadmissionpolicies/p"
        patch = {"spec": {"failurePolicy": "Ignore"}}
        self.ask("PATCH", path, patch, Content_Type="application/merge-patch+json")
        self.create("a")

    def test_budget(self) -> None:
        """A policy that costs too much denies, and nobody waits for it (CEL bombs)."""
        listed = "object.data.map(k, k)"
        bomb = f"{listed}.all(a, {listed}.all(b, {listed}.all(c, a + b + c != 'x')))"
        self.policy(validations=[{"expression": bomb}])
        data = {f"k{number}": "" for number in range(200)}
        _, _, message = self.refused("POST", MAPS, {"metadata": {"name": "a"}, "data": data})
        self.assertIn("operation cancelled: actual cost limit exceeded", message)

    def test_costly(self) -> None:
        """A policy with expensive expressions is evaluated in a thread, with the same verdict."""
        threads = self.server.done_in_threads
        listed = "object.data.map(k, k)"
        self.policy(validations=[{"expression": f"{listed}.all(a, {listed}.all(b, a != 'no'))"}])
        for size, wanted in ((3, []), (100, ["_run_in_thread"])):
            threads.clear()
            data = {f"k{number}": "" for number in range(size)}
            self.create(f"ok{size}", data)
            self.refused("POST", MAPS, {"metadata": {"name": f"no{size}"}, "data": {**data, "no": ""}})
            self.assertEqual([function.__name__ for function in threads], wanted * 2)

    def test_authorizer_of_costly(self) -> None:
        """Authorizers are never called from a thread: the evaluation waits until the reactor has called them."""
        asked: list[bool] = []
        in_thread: list[bool] = []
        outer = self.server.done_in_threads

        def authorize(question: AuthorizerAttributes) -> Any:
            if question.verb == "approve":
                asked.append(_in_other_thread.get())
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
        self.assertEqual((in_thread, asked), ([True, True], [False]))

    def test_variables_are_lazy(self) -> None:
        """A variable is computed when it is named, and once."""
        self.policy(
            variables=[{"name": "broken", "expression": "object.nothere"}, {"name": "n", "expression": "1 + 1"}],
            validations=[{"expression": "variables.n == 2 || variables.broken == 1"}],
        )
        self.create("a")

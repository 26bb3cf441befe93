"""Tests for L{kubetwist.cel.library.costs}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.estimates import Estimate
from kubetwist.cel.library.costs import KubernetesCosts
from kubetwist.cel.library.environments import kubernetes_environment
from kubetwist.cel.types import DYN, STRING, Type

ENVIRONMENT = kubernetes_environment().extend({"x": STRING, "y": STRING, "any": DYN})

NOTHING = Estimate(0, 0)


def estimated(text: str, x: Estimate, y: Estimate = NOTHING) -> Estimate:
    """Return the estimated cost of an expression whose variables have these sizes."""

    def size_of(path: tuple[str, ...], type_: Type) -> Estimate | None:
        return {("x",): x, ("y",): y}.get(path)

    return ENVIRONMENT.compile(text).estimated_cost(size_of)


class CostTests(SynchronousTestCase):
    """Tests for L{KubernetesCosts}."""

    def test_examples(self) -> None:
        """Estimates equal kube-apiserver's."""
        for text, size, expected in (
            ("x.lowerAscii()", Estimate(0, 100), Estimate(1, 11)),
            ("x.split(',')", Estimate(0, 100), Estimate(1, 21)),
            ("x.find('abcd')", Estimate(0, 99), Estimate(2, 11)),
            ("quantity(x)", Estimate(0, 50), Estimate(1, 6)),
        ):
            self.assertEqual(estimated(text, size), expected, text)

    def test_checks(self) -> None:
        """The cost limit allows two authorization checks."""
        found = KubernetesCosts().estimate_call_cost("check", "", None, ())
        assert found is not None
        self.assertEqual(found.cost, Estimate(350_000, 350_000))

    def test_unknown(self) -> None:
        """Functions without a cost in Kubernetes have the default cost."""
        costs = KubernetesCosts()
        self.assertIsNone(costs.call_cost("startsWith", "starts_with_string"))
        self.assertIsNone(costs.estimate_call_cost("startsWith", "starts_with_string", None, ()))

    @given(
        st.sampled_from(
            [
                "x.lowerAscii()",
                "x.trim()",
                "x.split(y)",
                "x.replace(y, 'ab')",
                "x.substring(0)",
                "x.split(y).join(y)",
                "x.indexOf(y)",
                "url('http://a/' + y).getHost()",
                "isQuantity(x)",
                "isIP(x)",
            ]
        ),
        st.text("ab,", max_size=30),
        st.text("ab,", max_size=3),
    )
    def test_within(self, text: str, x: str, y: str) -> None:
        """No evaluation costs more than its estimate for the sizes of its values."""
        sizes = Estimate(len(x), len(x)), Estimate(len(y), len(y))
        cost = ENVIRONMENT.compile(text).evaluate({"x": x, "y": y})[1]
        self.assertLessEqual(cost, estimated(text, *sizes).max)

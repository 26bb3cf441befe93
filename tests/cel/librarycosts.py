"""Libraries that define the costs of their functions."""

from __future__ import annotations

from collections.abc import Sequence

from kubetwist.cel import types
from kubetwist.cel.environment import Environment
from kubetwist.cel.estimates import AstNode, CallEstimate, Estimate, FunctionTracker, fixed
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.values import Value
from tests.cel.support import CelTestCase


class LibraryCosts:
    """A cost model: C{weigh} costs the size of its argument, C{pair} the cost of its overload."""

    def call_cost(self, function: str, overload: str) -> FunctionTracker | int | None:
        """Return the cost of a call."""
        if function == "weigh":
            return lambda args, result: args[0]
        return {"pair_int": 20, "": 30}.get(overload) if function == "pair" else None

    def estimate_call_cost(
        self, function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
    ) -> CallEstimate | None:
        """Return the estimated cost of a call."""
        if function == "weigh":
            return CallEstimate(Estimate(0, 100))
        if function == "grow" and target is not None:
            return CallEstimate(fixed(1), target.size.multiply_by_cost_factor(2))
        return None


class LibraryCostTestCase(CelTestCase):
    """Base of tests of expressions with L{LibraryCosts}."""

    def setUp(self) -> None:
        """Create an environment with a library that defines costs."""

        def same(value: Value) -> Value:
            return value

        library = Library(
            "test",
            (
                function("weigh", overload("weigh_int", (types.INT,), types.INT, same)),
                function(
                    "pair",
                    overload("pair_int", (types.INT,), types.INT, same),
                    overload("pair_string", (types.STRING,), types.STRING, same, tracker=7),
                ),
                function("grow", member("grow_string", (types.STRING,), types.STRING, lambda text: text * 2)),
            ),
        )
        self.environment = Environment(
            {"i": types.INT, "any": types.DYN, "s": types.STRING}, (library,), LibraryCosts()
        )

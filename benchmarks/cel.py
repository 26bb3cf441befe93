"""
Measure CEL alone: microseconds per evaluation, per compilation and per unit of cost.

Usage: python benchmarks/cel.py [--seconds 0.3]

The object is a pod with many environment variables; fields that an expression does not read must not increase its time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from kubetwist.cel import types
from kubetwist.cel.environment import PER_CALL_LIMIT
from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.library.environments import kubernetes_environment
from kubetwist.cel.schemas import schema_decl_type

STRING = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "ratio": {"type": "number"},
                "rules": {"type": "array", "items": {"type": "object", "properties": {"name": STRING}}},
            },
        }
    },
}

EXPRESSIONS = (
    "object.spec.replicas <= 5",
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.metadata.name.startsWith('web-')",
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "object.spec.containers.all(c, quantity(c.resources.limits.memory).isLessThan(quantity('1Gi')))",
    "object.spec.containers.exists(c, c.env.exists(e, e.name == 'VARIABLE_199'))",
    "object.metadata.labels.all(k, k.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",
    "self.spec.replicas > 0 && self.spec.ratio <= 1.0",
    "self.spec.rules.all(r, r.name != '' && r.name.size() < 63)",
    "oldObject == null || object.spec.replicas >= oldObject.spec.replicas",
)


def pod(containers: int = 3, variables: int = 200) -> dict[str, Any]:
    """Return an object with many fields that most expressions do not read."""
    return {
        "metadata": {"name": "web-1", "labels": {"app": "web", "tier": "front", "release": "stable"}},
        "spec": {
            "replicas": 3,
            "containers": [
                {
                    "name": f"c{number}",
                    "image": f"registry.example.com/web:{number}",
                    "resources": {"limits": {"memory": "512Mi"}},
                    "env": [{"name": f"VARIABLE_{each}", "value": "x" * 20} for each in range(variables)],
                }
                for number in range(containers)
            ],
        },
    }


def measure(call: Callable[[], object], seconds: float) -> float:
    """Return the microseconds per call."""
    calls, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        for _ in range(20):
            call()
        calls += 20
    return passed / calls * 1e6


def main() -> None:
    """Print a line per expression."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each measurement")
    seconds: float = parser.parse_args().seconds
    begin = time.perf_counter()
    declaration = schema_decl_type(SCHEMA, "self")
    assert declaration is not None
    environment = kubernetes_environment().extend(
        {"object": types.DYN, "oldObject": types.DYN, "self": declaration.type, "l": types.list_of(types.INT)}
    )
    print(f"environment made in {(time.perf_counter() - begin) * 1e3:.0f} ms")
    custom = {"spec": {"replicas": 3, "ratio": 1, "rules": [{"name": f"rule-{number}"} for number in range(10)]}}
    values = {"object": pod(), "oldObject": pod(), "self": declaration.to_cel(custom), "l": list(range(300_000))}
    print(f"{'evaluate us':>12}{'compile us':>12}{'cost':>7}  expression")
    for text in EXPRESSIONS:
        program = environment.compile(text)
        evaluated = measure(partial(program.evaluate, values), seconds)
        compiled = measure(partial(environment.compile, text), seconds)
        print(f"{evaluated:12.2f}{compiled:12.0f}{program.evaluate(values)[1]:7}  {text}")
    for text in (
        "l.all(x, x >= 0)",
        "l.map(x, [x, x]).size() > 0",
        "l.all(x, string(x) != '')",
        "l.all(x, 1 / 0 > x || true)",
    ):
        program = environment.compile(text)
        begin = time.perf_counter()
        try:
            program.evaluate(values)
        except EvaluationError as error:
            taken = (time.perf_counter() - begin) * 1e3
            print(f"{taken:9.0f} ms until {text} was stopped at {error.cost} of {PER_CALL_LIMIT}: {error.message}")


if __name__ == "__main__":
    main()

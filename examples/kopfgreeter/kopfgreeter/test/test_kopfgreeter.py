"""Tests for the operator, with an API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

GREETINGS = "/apis/example.com/v1/namespaces/default/greetings"


def test_greeting(kube_api_clean: Any, kopf_operator: Any) -> None:
    """A greeting has its text, also after a change of the name."""
    kube_api_clean.load(Path(__file__).parents[1] / "crd.yaml")
    with kopf_operator("kopfgreeter.handlers", namespace="default") as operator:
        greeting = {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": "mine"}}
        kube_api_clean.load([{**greeting, "spec": {"name": "world"}}])
        kube_api_clean.wait_for("greetings.example.com/mine", jsonpath="{.status.text}=Hello, world!")
        change = {"spec": {"name": "moon"}}
        kube_api_clean.request("PATCH", f"{GREETINGS}/mine", change, content_type="application/merge-patch+json")
        kube_api_clean.wait_for("greetings.example.com/mine", jsonpath="{.status.text}=Hello, moon!")
    assert "Handler 'greet/spec.name' succeeded." in operator.output

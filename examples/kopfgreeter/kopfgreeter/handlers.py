"""The handlers of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kopf


@kopf.on.create("greetings.example.com")
@kopf.on.update("greetings.example.com", field="spec.name")
def greet(spec: Mapping[str, str], patch: kopf.Patch, **_: Any) -> None:
    """Write the greeting into the status."""
    patch.status["text"] = f"Hello, {spec['name']}!"

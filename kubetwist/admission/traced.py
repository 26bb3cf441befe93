"""The admission chain with tracing: each call of a plugin has a span."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.admission import AdmissionAttributes
from ..tracing.spans import Span, current, run_in_span
from .chain import AdmissionChain


class TracedChain(AdmissionChain):
    """Creates a span for each call of a plugin, named after the plugin."""

    def _caller(
        self, call: Callable[[AdmissionAttributes], Any], name: str, phase: str, operation: str
    ) -> Callable[[AdmissionAttributes], Any]:
        span_attributes = {"phase": phase, "operation": operation}

        def traced_call(attributes: AdmissionAttributes) -> Any:
            parent = current.get()
            if not isinstance(parent, Span):
                return call(attributes)
            return run_in_span(parent.child(name, span_attributes), call, attributes)

        return traced_call

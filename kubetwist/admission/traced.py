"""The admission chain where requests are traced: each plugin that is asked has a span."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..tracing.spans import Span, current, within
from .attributes import AdmissionAttributes
from .chain import AdmissionChain

if TYPE_CHECKING:
    pass


class TracedChain(AdmissionChain):
    """The same, with spans that are called after the plugins."""

    def _by_operation(self, interface: Any, phase: str) -> dict[str, list[Any]]:
        found = super()._by_operation(interface, phase)
        for operation, steps in found.items():
            for step in steps:
                step.ask = _traced(step.ask, step.plugin.name, phase, operation)
        return found


def _traced(
    ask: Callable[[AdmissionAttributes], Any], name: str, phase: str, operation: str
) -> Callable[[AdmissionAttributes], Any]:
    about = {"phase": phase, "operation": operation}

    def asked(attributes: AdmissionAttributes) -> Any:
        place = current.get()
        if not isinstance(place, Span):
            return ask(attributes)
        return within(place.child(name, about), ask, attributes)

    return asked

"""Plugins that modify objects, and their factories."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from zope.interface import implementer

from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission


class Nothing:
    """A server without objects."""

    release = "1.36"

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """Return nothing."""
        return None


@define
class Writer:
    """A plugin that writes its name into objects and records its calls."""

    name: str
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    calls: list[str] = field(factory=list)

    def handles(self, operation: str) -> bool:
        """Return whether the operation is handled."""
        return operation in self.operations

    async def admit(self, attributes: Any) -> None:
        """Modify the object."""
        attributes.object.setdefault("by", []).append(self.name)

    async def validate(self, attributes: Any) -> None:
        """Record the call."""
        self.calls.append(attributes.operation)


@implementer(IMutatingAdmission)
class Mutating(Writer):
    """A mutating plugin."""

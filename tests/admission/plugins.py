"""Plugins that write into what they are shown, and who makes them."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from zope.interface import implementer

from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission


class Nothing:
    """A server that has nothing."""

    release = "1.36"

    def get_copy(self, group: str, resource: str, namespace: str, name: str) -> JSONObject | None:
        """Nothing."""
        return None


@define
class Writer:
    """Writes its name into objects, and notes when it was asked."""

    name: str
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    asked: list[str] = field(factory=list)

    def handles(self, operation: str) -> bool:
        """Some."""
        return operation in self.operations

    async def admit(self, attributes: Any) -> None:
        """Write."""
        attributes.object.setdefault("by", []).append(self.name)

    async def validate(self, attributes: Any) -> None:
        """Note."""
        self.asked.append(attributes.operation)


@implementer(IMutatingAdmission)
class Mutating(Writer):
    """Changes."""

"""Fake controllers."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from zope.interface import implementer

from kubetwist.interfaces import IControllerFactory


@implementer(IControllerFactory)
@frozen
class Factory:
    """A factory that does not make a controller."""

    name: str
    default: bool = True
    groups: tuple[str, ...] = ()
    made: Any = None

    def make(self, context: Any) -> Any:
        """Return the context."""
        return self.made(context) if self.made else None

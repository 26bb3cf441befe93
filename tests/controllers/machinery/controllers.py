"""Controllers that note what happens to them."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from zope.interface import implementer

from kubetwist.interfaces import IControllerFactory


@implementer(IControllerFactory)
@frozen
class Factory:
    """A factory of nothing."""

    name: str
    default: bool = True
    groups: tuple[str, ...] = ()
    made: Any = None

    def make(self, context: Any) -> Any:
        """What it was given."""
        return self.made(context) if self.made else None

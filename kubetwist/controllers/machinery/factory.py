"""Names a controller without importing it: Twisted imports every drop-in merely to list it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attrs import frozen

from twisted.plugin import IPlugin
from zope.interface import implementer

from ...interfaces import IController, IControllerFactory

if TYPE_CHECKING:
    from .context import ControllerContext


@implementer(IPlugin, IControllerFactory)
@frozen
class ControllerFactory:
    """
    Makes a controller when it is asked to.

    @ivar place: C{"module:class"}; the class is called with the context.
    @ivar default: Whether C{*} means it.
    @ivar groups: Other names by which it is meant, together with others.
    @ivar needs: Resources without which it has nothing to do, as C{"jobs.batch"}: where --runtime-config has switched
        one of them off, it is not made.
    """

    name: str
    place: str
    default: bool = True
    groups: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def make(self, context: ControllerContext) -> IController | None:
        """@see: L{IControllerFactory.make}."""
        for need in self.needs:
            resource, _, group = need.partition(".")
            if not context.served(group, resource):
                return None
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)(context)  # type: ignore[no-any-return]

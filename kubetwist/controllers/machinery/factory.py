"""
Factories of controllers. They import a controller only when it is made, as Twisted imports every drop-in to list it.
"""

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
    Makes a controller by the name of its class.

    @ivar place: C{"module:class"}. The class is called with the context.
    @ivar default: Whether C{*} in C{--controllers} enables it.
    @ivar groups: Further names in C{--controllers} that select it together with other controllers.
    @ivar needs: Resources that it requires: C{"jobs.batch"}. It is not made if --runtime-config disables one of them.
    """

    name: str
    place: str
    default: bool = True
    groups: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def make(self, context: ControllerContext) -> IController | None:
        """See L{IControllerFactory.make}."""
        for need in self.needs:
            resource, _, group = need.partition(".")
            if not context.served(group, resource):
                return None
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)(context)  # type: ignore[no-any-return]

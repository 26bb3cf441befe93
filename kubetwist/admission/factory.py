"""Names an admission plugin without importing it: Twisted imports every drop-in merely to list it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attrs import frozen

from twisted.plugin import IPlugin
from zope.interface import implementer

from ..api.jsontypes import JSONValue
from ..interfaces import IAdmissionPlugin, IAdmissionPluginFactory

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext


@implementer(IPlugin, IAdmissionPluginFactory)
@frozen
class AdmissionPluginFactory:
    """
    Makes a plugin when it is asked to.

    @ivar place: C{"module:class"}. The class has a class method C{configured}, called as
        L{IAdmissionPluginFactory.make} is; or it is called without arguments, if it needs neither server nor
        configuration.
    @ivar default: Whether it is on unless switched off.
    @ivar after: The plugin that it comes after; C{""} for the usual place.
    """

    name: str
    place: str
    default: bool = True
    after: str = ""

    def make(self, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """@see: L{IAdmissionPluginFactory.make}."""
        module, _, name = self.place.partition(":")
        made = getattr(import_module(module), name)
        configured = getattr(made, "configured", None)
        plugin: IAdmissionPlugin = made() if configured is None else configured(server, configuration)
        return plugin

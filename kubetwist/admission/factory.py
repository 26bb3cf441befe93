"""Factory of an admission plugin that imports its module on demand: Twisted imports all drop-ins to list plugins."""

from __future__ import annotations

from collections.abc import Callable
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
    Creates an admission plugin on demand.

    @ivar place: C{"module:class"}. If the class has a class method C{configured}, that is called with the parameters of
        L{IAdmissionPluginFactory.make}. Otherwise the class is called without arguments.
    @ivar default: Whether the plugin is enabled by default.
    @ivar after: The name of the plugin that precedes it; C{""} for the default position.
    @ivar when: The releases that have the plugin, as a condition (L{FeatureGates.meets}); C{""} for all.
    """

    name: str
    place: str
    default: bool = True
    after: str = ""
    when: str = ""

    def make(self, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """@see: L{IAdmissionPluginFactory.make}."""
        module, _, name = self.place.partition(":")
        return make_from_class(getattr(import_module(module), name), server, configuration)


def make_from_class(
    plugin_class: Callable[[], IAdmissionPlugin], server: AdmissionContext, configuration: JSONValue
) -> IAdmissionPlugin:
    """Return an instance of a plugin's class, which may have a class method C{configured}."""
    configured = getattr(plugin_class, "configured", None)
    plugin: IAdmissionPlugin = plugin_class() if configured is None else configured(server, configuration)
    return plugin

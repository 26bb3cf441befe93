"""
Factories of built-in admission plugins whose modules are imported at the first request that they handle.

Most plugins handle a few resources, and most servers of tests never get a request for those.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from twisted.plugin import IPlugin
from zope.interface import alsoProvides, implementer

from ..api.admission import OPERATIONS, AdmissionAttributes
from ..api.jsontypes import JSONValue
from ..interfaces import IAdmissionPlugin, IAdmissionPluginFactory, IMutatingAdmission, IValidatingAdmission
from .factory import make_from_class

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

#: The interfaces of the phases of a plugin.
_PHASES: Final = {"admit": IMutatingAdmission, "validate": IValidatingAdmission}


class DeferredPlugin:
    """
    A plugin that creates the real one at the first request.

    It provides the interfaces of its phases.
    """

    def __init__(self, factory: DeferredPluginFactory, make: Callable[[], IAdmissionPlugin]) -> None:
        """
        @param factory: Describes the plugin.
        @param make: Creates the real plugin.
        """
        self.name = factory.name
        self.resources = factory.resources
        self._operations = factory.operations
        self._make = make
        self._plugin: Any = None
        self._handled: frozenset[str] = frozenset()
        alsoProvides(self, *(_PHASES[phase] for phase in factory.phases))

    def handles(self, operation: str) -> bool:
        """See L{IAdmissionPlugin.handles}."""
        return operation in self._operations

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        plugin = self._plugin or self._load()
        result: Awaitable[None] | None = plugin.admit(attributes) if attributes.operation in self._handled else None
        return result

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        plugin = self._plugin or self._load()
        result: Awaitable[None] | None = plugin.validate(attributes) if attributes.operation in self._handled else None
        return result

    def _load(self) -> Any:
        plugin = self._plugin = self._make()
        # A plugin whose feature gate is disabled handles nothing.
        self._handled = frozenset(operation for operation in OPERATIONS if plugin.handles(operation))
        return plugin


@implementer(IPlugin, IAdmissionPluginFactory)
@frozen
class DeferredPluginFactory:
    """
    Creates an admission plugin at the first request that it handles; at once if it has a configuration.

    The plugin has the default timeout and failure policy, and no metrics.

    @ivar place: As L{kubetwist.admission.factory.AdmissionPluginFactory.place}; a module of kubetwist.
    @ivar resources: As L{kubetwist.interfaces.IAdmissionPluginLimits.resources}.
    @ivar operations: The operations that it handles, unless a feature gate disables it.
    @ivar phases: C{admit} and C{validate}, or one of them.
    @ivar default: Whether the plugin is enabled by default.
    @ivar when: The releases that have the plugin, as a condition (L{FeatureGates.meets}); C{""} for all.
    """

    name: str
    place: str
    resources: tuple[str, ...]
    operations: tuple[str, ...]
    phases: tuple[str, ...]
    default: bool = True
    when: str = ""

    def make(self, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """@see: L{IAdmissionPluginFactory.make}."""
        if configuration is not None:
            return self.make_now(server, configuration)
        plugin: Any = DeferredPlugin(self, lambda: self.make_now(server, None))
        return plugin  # type: ignore[no-any-return] # it provides the interfaces of its phases

    def make_now(self, server: AdmissionContext, configuration: JSONValue) -> IAdmissionPlugin:
        """Import the module, and create the plugin."""
        module, _, name = self.place.partition(":")
        return make_from_class(getattr(import_module(module), name), server, configuration)

"""Names a built-in admission plugin without importing it: Twisted imports every drop-in merely to list it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from attrs import frozen

from twisted.plugin import IPlugin
from zope.interface import implementer

from ..interfaces import IAdmissionPlugin, IAdmissionPluginFactory


@implementer(IPlugin, IAdmissionPluginFactory)
@frozen
class AdmissionPluginFactory:
    """
    Makes a plugin that needs no configuration.

    @ivar place: C{"module:class"}.
    @ivar default: Whether it is on unless switched off.
    """

    name: str
    place: str
    default: bool = True

    def make(self, server: Any, configuration: Any) -> IAdmissionPlugin:
        """@see: L{IAdmissionPluginFactory.make}."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)()  # type: ignore[no-any-return]

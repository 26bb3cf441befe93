"""Authenticators and authorizers without a server: their context and construction, and checks of their results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.plugin import getPlugins

from ..cli.kubeapi import Options
from ..server.context import PluginContext
from ..server.datadir import DataDirectory
from ..server.plugins import named
from .memory import MemoryServer


def make_context(flags: Sequence[str], server: MemoryServer) -> PluginContext:
    """
    Return the context that C{make(options, server)} of a factory gets.

    @param flags: Flags of C{twist kubeapi}.
    @param server: The objects that the plugin can read.
    """
    options = Options()
    options.parseOptions(["--data-dir=kubetwist-data", *flags])
    reactor: Any = server.clock
    context = PluginContext(options, reactor, DataDirectory(Path(options["data-dir"])), "127.0.0.1:6443")
    context.stores = server.stores
    context.grants = server.registry.grants
    return context


def make_plugin(plugin: Any, factory: Any, plugin_kind: str, context: PluginContext) -> Any:
    """
    Return a plugin.

    @param plugin: The plugin, its factory, the function C{make(options, server)}, or the name of an installed plugin.
    @param factory: The interface of factories.
    @param plugin_kind: The kind of plugin, for errors: C{"authorizer"}.
    @param context: The arguments of C{make}.
    @raise ValueError: No such plugin is installed, or C{make} rejects the options.
    """
    if isinstance(plugin, str):
        factories = named(getPlugins(factory), factory, plugin_kind)
        if plugin not in factories:
            raise ValueError(f"no {plugin_kind} {plugin} is installed")
        plugin = factories[plugin]
    if factory.providedBy(plugin):
        return plugin.make(context.options, context)
    return plugin(context.options, context) if callable(plugin) else plugin


def check_type(result: Any, expected: tuple[type, ...], method: str) -> Any:
    """
    Check what a method of a plugin returned; the server answers a wrong type with an internal error.

    @param result: The result, or a Deferred of it.
    @param expected: The allowed types.
    @param method: The name of the method.
    @raise TypeError: The type is wrong. A Deferred fails with it.
    """
    if isinstance(result, Deferred):
        return result.addCallback(check_type, expected, method)
    if not isinstance(result, expected):
        names = " or ".join("None" if one is type(None) else one.__name__ for one in expected)
        raise TypeError(f"{method} returned {result!r} instead of {names}")
    return result

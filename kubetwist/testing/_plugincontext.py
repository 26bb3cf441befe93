"""The context of authenticators and authorizers for a plugin without a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from ..cli.kubeapi import Options
from ..server.context import PluginContext
from ..server.datadir import DataDirectory
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

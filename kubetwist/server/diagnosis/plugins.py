"""Checks of installed plugins: whether their drop-in modules can be imported, and their factories be used."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from twisted.plugin import getCache, getPlugins
from zope.interface.interface import InterfaceClass

from ...admission.plugins import PluginInitError, installed
from ...interfaces import IAuthenticatorFactory, IAuthorizerFactory, IControllerFactory, IStorageBackendFactory
from ..errors import StartError
from ..plugins import named
from .findings import Finding, error, ok, warning

#: For each kind of plugin: the function that finds the factories, their interface, and the name of the kind.
_KINDS: Final[tuple[tuple[Callable[[], Iterable[Any]], InterfaceClass, str], ...]] = (
    (lambda: getPlugins(IStorageBackendFactory), IStorageBackendFactory, "storage backend"),
    (lambda: getPlugins(IAuthenticatorFactory), IAuthenticatorFactory, "authenticator"),
    (lambda: getPlugins(IAuthorizerFactory), IAuthorizerFactory, "authorizer"),
    (lambda: getPlugins(IControllerFactory), IControllerFactory, "controller"),
)


def broken_modules(package: ModuleType) -> dict[str, str]:
    """
    Return the drop-in modules that cannot be imported, with the reasons.

    Twisted logs such modules, and leaves them out.

    @param package: The package of drop-ins.
    """
    usable = set(getCache(package))
    broken = {}
    for one in pkgutil.iter_modules(package.__path__):
        if one.name in usable:
            continue
        try:
            import_module(f"{package.__name__}.{one.name}")
        except Exception as failure:
            broken[one.name] = f"{type(failure).__name__}: {failure}"
    return broken


def read_factories() -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the names of factories by kind of plugin, and the problems by kind."""
    names: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for find, interface, kind in _KINDS:
        try:
            names[kind] = sorted(named(find(), interface, kind))
        except StartError as failure:
            problems[kind] = str(failure)
    try:
        names["admission plugin"] = sorted(installed())
    except PluginInitError as failure:
        problems["admission plugin"] = str(failure)
    return names, problems


def judge_plugins(
    broken: Mapping[str, str], names: Mapping[str, Iterable[str]], problems: Mapping[str, str], backend: str
) -> Iterator[Finding]:
    """
    Judge plugins.

    @param broken: Modules that cannot be imported, with the reasons.
    @param names: The names of factories, by kind.
    @param problems: Why the factories of a kind cannot be used.
    @param backend: C{--storage-backend}.
    """
    for name, reason in sorted(broken.items()):
        yield warning(
            "plugins/import",
            f"the module twisted/plugins/{name} cannot be imported: {reason}",
            "update or remove the package that installed it",
        )
    for reason in problems.values():
        yield error("plugins/factories", reason, "update or remove the package that installed it")
    backends = set(names.get("storage backend", ()))
    if not backends and "storage backend" not in problems:
        yield error("plugins/factories", "there are no plugins: twisted/plugins is missing", "install kubetwist again")
    elif backend not in backends and "storage backend" not in problems:
        yield error(
            "plugins/storage",
            f"there is no storage backend {backend}",
            f"use one of {', '.join(sorted(backends))}, or install the package that has it",
        )
    elif not broken and not problems:
        total = sum(len(list(one)) for one in names.values())
        yield ok("plugins", f"{total} plugins can be used")


def check_plugins(backend: str) -> Iterator[Finding]:
    """Check the installed plugins."""
    import twisted.plugins

    names, problems = read_factories()
    yield from judge_plugins(broken_modules(twisted.plugins), names, problems, backend)

"""
Select installed plugins by name, and define the factories of the built-in ones.

Twisted imports every drop-in merely to list it, so the factories here name a module and import it when it is chosen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence, Set
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from attrs import frozen

from twisted.plugin import IPlugin, getPlugins
from zope.interface import implementer
from zope.interface.interface import InterfaceClass

from ..api.go.quote import quoted
from ..api.providers import interface_error
from ..api.rbacrules import quoted_list
from ..interfaces import (
    IAuthenticator,
    IAuthenticatorFactory,
    IAuthorizer,
    IAuthorizerFactory,
    IControllerFactory,
    IConversionPlugin,
    IServerReactor,
    IStorageBackend,
    IStorageBackendFactory,
)
from .errors import StartError

if TYPE_CHECKING:
    from ..api.flagvalues import FlagValues
    from ..api.jsontypes import JSONObject
    from ..audit.auditor import Auditor
    from ..authentication.union import AuthenticatorUnion
    from .context import PluginContext

#: Authenticators from this rank on are called only if no other has found credentials.
LAST_RANK = 1000
_MAX_FAKE_NODES = 1000
#: The controllers that --fake-nodes enables.
_NODE_CONTROLLERS = ("pretend-nodes", "kube-scheduler", "node-lifecycle-controller", "taint-eviction-controller")


class Named(Protocol):
    """A factory of plugins."""

    @property
    def name(self) -> str:
        """The name by which the factory is chosen."""


Factory = TypeVar("Factory", bound=Named)
Plugin = TypeVar("Plugin")


def _load(import_path: str) -> Callable[..., Any]:
    module, _, name = import_path.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(module), name)
    return loaded


@implementer(IPlugin, IAuthenticatorFactory)
@frozen
class AuthenticatorFactory:
    """
    A lazily imported factory of authenticators.

    @ivar import_path: C{"module:function"}, called like L{IAuthenticatorFactory.make}.
    @ivar needs: Options, one of which must be set; otherwise the module is not imported.
    """

    name: str
    rank: int
    import_path: str
    needs: tuple[str, ...] = ()

    def make(self, options: FlagValues, server: PluginContext) -> IAuthenticator | None:
        """@see: L{IAuthenticatorFactory.make}."""
        if self.needs and not any(options[name] for name in self.needs):
            return None
        return _load(self.import_path)(options, server)  # type: ignore[no-any-return] # imported by name


@implementer(IPlugin, IAuthorizerFactory)
@frozen
class AuthorizerFactory:
    """Like L{AuthenticatorFactory}, for L{IAuthorizerFactory.make}."""

    name: str
    import_path: str

    def make(self, options: FlagValues, server: PluginContext) -> IAuthorizer:
        """@see: L{IAuthorizerFactory.make}."""
        return _load(self.import_path)(options, server)  # type: ignore[no-any-return] # imported by name


@implementer(IPlugin, IStorageBackendFactory)
@frozen
class StorageBackendFactory:
    """Like L{AuthenticatorFactory}, for L{IStorageBackendFactory.make}."""

    name: str
    import_path: str

    def make(self, options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
        """@see: L{IStorageBackendFactory.make}."""
        return _load(self.import_path)(options, reactor)  # type: ignore[no-any-return] # imported by name


@implementer(IPlugin, IConversionPlugin)
@frozen
class ConversionPlugin:
    """
    A conversion of custom resources whose module is imported by its first call.

    @ivar import_path: C{"module:function"}, called like L{IConversionPlugin.convert}.
    """

    name: str
    import_path: str

    def convert(self, objects: list[JSONObject], api_version: str) -> list[JSONObject] | Awaitable[list[JSONObject]]:
        """@see: L{IConversionPlugin.convert}."""
        return _load(self.import_path)(objects, api_version)  # type: ignore[no-any-return] # imported by name


def make_sqlite(options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
    """Create the embedded store in the data directory."""
    from ..storage.sqlite import SQLiteStorage

    path = Path(options["data-dir"]).absolute() / "store.sqlite"
    return SQLiteStorage(
        path, reactor, allow_lost_writes=options["allow-lost-writes"], synced=not options["unsafe-no-fsync"]
    )


def make_memory(options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
    """Create a store in the memory of the process."""
    from ..storage.memory import MemoryStorage

    return MemoryStorage(reactor)


def named(factories: Iterable[Factory], interface: InterfaceClass, plugin_kind: str) -> dict[str, Factory]:
    """
    Return factories by their names.

    @param interface: The interface of the factories.
    @param plugin_kind: The kind of plugin, for errors.
    @raise StartError: Two have the same name, or one does not provide C{interface}.
    """
    by_name: dict[str, Factory] = {}
    for factory in factories:
        problem = interface_error(factory, interface)
        if problem:
            raise StartError(f"an installed {plugin_kind} factory cannot be used: {problem}")
        if factory.name in by_name:
            raise StartError(f"two {plugin_kind} plugins are called {factory.name}")
        by_name[factory.name] = factory
    return by_name


def checked(plugin: Plugin, interface: InterfaceClass, plugin_kind: str, name: str) -> Plugin:
    """
    Return a plugin that a factory made, if it provides C{interface}.

    @raise StartError: It does not provide the interface.
    """
    problem = interface_error(plugin, interface)
    if problem:
        raise StartError(f"the {plugin_kind} {name} cannot be used: {problem}")
    return plugin


def make_backend(options: FlagValues, reactor: IServerReactor) -> IStorageBackend:
    """
    Create the backend of --storage-backend.

    @raise StartError: The backend is unknown.
    """
    factories = named(getPlugins(IStorageBackendFactory), IStorageBackendFactory, "storage backend")
    factory = factories.get(options["storage-backend"])
    if factory is None:
        raise StartError(
            f"--storage-backend must be one of {', '.join(sorted(factories))}, not {options['storage-backend']}"
        )
    backend: IStorageBackend = checked(factory.make(options, reactor), IStorageBackend, "storage backend", factory.name)
    return backend


def make_authenticator(options: FlagValues, server: PluginContext) -> AuthenticatorUnion:
    """
    Create all enabled authenticators, combined into one.

    @raise StartError: An authenticator cannot be created.
    """
    from ..authentication.union import AuthenticatorUnion

    factories = named(getPlugins(IAuthenticatorFactory), IAuthenticatorFactory, "authenticator")
    authenticators = []
    last = None
    for factory in sorted(factories.values(), key=lambda one: (one.rank, one.name)):
        try:
            authenticator = factory.make(options, server)
        except ValueError as error:
            raise StartError(str(error)) from error
        if authenticator is None:
            continue
        checked(authenticator, IAuthenticator, "authenticator", factory.name)
        if factory.rank < LAST_RANK:
            authenticators.append(authenticator)
        else:
            last = authenticator
    return AuthenticatorUnion(authenticators, last)


def choose_controllers(options: FlagValues) -> Sequence[IControllerFactory]:
    """
    Return the factories of the controllers that --controllers enables, without importing the controllers.

    @raise StartError: A controller is unknown.
    """
    from ..controllers.machinery.selection import UnknownControllers, select_controllers

    if options["fake-nodes"] > _MAX_FAKE_NODES:
        raise StartError(f"--fake-nodes: the limit is {_MAX_FAKE_NODES}")
    try:
        # The first entry for a name wins: the user's entries precede these.
        implied = _NODE_CONTROLLERS if options["fake-nodes"] else ()
        return select_controllers((*options["controllers"], *implied))
    except UnknownControllers as error:
        raise StartError(str(error)) from error


def make_auditor(options: FlagValues, server: PluginContext) -> Auditor | None:
    """
    Create the L{kubetwist.audit.auditor.Auditor} that the options configure; L{None} without audit.

    @raise StartError: It cannot be created.
    """
    if not (options["audit-policy-file"] or options["audit-log-path"] or options["audit-webhook-config-file"]):
        return None
    from ..audit.make import make_auditor

    try:
        return make_auditor(options, server)
    except ValueError as error:
        raise StartError(str(error)) from error


def make_authorizer(
    options: FlagValues, server: PluginContext, installed: Iterable[IAuthorizerFactory] | None = None
) -> IAuthorizer:
    """
    Create the authorizers of --authorization-mode or --authorization-config in their order, combined into one.

    @param installed: Factories to choose from instead of the installed plugins.
    @raise StartError: The flags are inconsistent, or an authorizer cannot be created.
    """
    available = getPlugins(IAuthorizerFactory) if installed is None else installed
    factories = named(available, IAuthorizerFactory, "authorizer")

    def make(mode: str) -> IAuthorizer:
        authorizer: IAuthorizer = checked(factories[mode].make(options, server), IAuthorizer, "authorizer", mode)
        return authorizer

    try:
        path = options.get("authorization-config")
        if path:
            return _configured_authorizer(path, options, server, set(factories), make)
        modes = options["authorization-mode"] or ("Node", "RBAC")
        problems = list(_mode_problems(modes, options, set(factories)))
        if problems:
            raise StartError("; ".join(problems))
        from ..authorization.union import AuthorizerUnion, PrivilegedGroup

        # Metrics name authorizers as a configuration file would.
        names = [(mode, "default" if mode == "Webhook" else mode.lower()) for mode in modes]
        return AuthorizerUnion([PrivilegedGroup(), *map(make, modes)], names)
    except ValueError as error:
        raise StartError(str(error)) from error


def _configured_authorizer(
    path: str, options: FlagValues, server: PluginContext, available: Set[str], make: Callable[[str], IAuthorizer]
) -> IAuthorizer:
    if any(name == "authorization-mode" or name.startswith("authorization-webhook-") for name in options.changed):
        raise StartError(
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags"
            " are defined"
        )
    from ..authorization.reload import ReloadableAuthorizer

    authorizer = ReloadableAuthorizer(server.reactor, server.outgoing, available, make, server.authorization_webhooks)
    authorizer.read(server.files, path)
    return authorizer


def _mode_problems(modes: Sequence[str], options: FlagValues, available: Set[str]) -> Iterator[str]:
    for mode in dict.fromkeys(modes):
        if mode not in available:
            yield f"authorization-mode {quoted(mode)} is not a valid mode"
    if options.get("authorization-policy-file") and "ABAC" not in modes:
        yield "cannot specify --authorization-policy-file without mode ABAC"
    if options.get("authorization-webhook-config-file") and "Webhook" not in modes:
        yield "cannot specify --authorization-webhook-config-file without mode Webhook"
    if len(set(modes)) < len(modes):
        yield f"authorization-mode {quoted_list(modes)} has mode specified more than once"

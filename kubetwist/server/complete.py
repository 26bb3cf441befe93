"""
Complete the configuration of a server: read all files, create all plugins, bind the address.

Nothing is served and no storage is opened before L{kubetwist.server.lifecycle.PreparedAPIServer} runs.

@see: kubernetes, C{cmd/kube-apiserver/app}: C{CreateConfig} and C{Complete}.
"""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from ..admission.configuration import AdmissionConfigError
from ..flowcontrol.scheduler import CooperativeScheduler
from ..registry.runtimeconfig import BadRuntimeConfig
from ..storage.errors import StorageError
from .config import ServerConfig
from .context import PluginContext
from .credentials.kubelet import KubeletCredentials
from .credentials.serviceaccounttokens import make_token_issuer, read_token_keys
from .datadir import Credentials, DataDirectory
from .encryption import encrypt
from .errors import StartError
from .hardenedfiles import prepare_files
from .hostaddress import advertised_address
from .listening import BoundAddress, ServedAddress
from .plugins import choose_controllers, make_auditor, make_authenticator, make_authorizer, make_backend
from .tracing import make_tracing
from .workerrole import WorkerRole

if TYPE_CHECKING:
    from ..audit.auditor import Auditor
    from ..authentication.union import AuthenticatorUnion
    from ..interfaces import IAuthorizer, IControllerFactory, IServerReactor, IStorageBackend
    from .options import ServerOptions
    from .peers import Peers


@frozen
class Access:
    """
    Authentication and authorization of a server.

    @ivar authenticator: All authenticators, as one.
    @ivar authorizer: All authorizers, as one.
    """

    authenticator: AuthenticatorUnion
    authorizer: IAuthorizer


class Completion:
    """
    Completion of the configuration of a Kubernetes API server.

    Subclasses complete other kinds of servers, with other certificates, authenticators and authorizers.
    """

    def __init__(self, options: ServerOptions, reactor: IServerReactor) -> None:
        self.options = options
        self.reactor = reactor
        self.workers = WorkerRole()
        self.peers: Peers | None = None

    async def complete(self) -> ServerConfig:
        """
        Return the complete configuration.

        @raise StartError: A flag or a file cannot be used; everything that was opened is closed.
        """
        cleanup = ExitStack()
        context: list[PluginContext] = []
        try:
            return await self._complete(cleanup, context)
        except BaseException as error:
            for one in context:
                await one.close()
            cleanup.close()
            readable = start_error(error)
            if readable is None:
                raise
            raise readable from error

    async def _complete(self, cleanup: ExitStack, opened: list[PluginContext]) -> ServerConfig:
        options, reactor = self.options, self.reactor
        started_at = reactor.seconds()
        if options["workers"] != self.workers.count:
            raise StartError("--workers is only possible in a process of twist kubeapi")
        data = self.open_data(cleanup)
        prepare_files(options, data)
        bound = self.bind()
        cleanup.callback(bound.close)
        credentials = self.make_credentials(data)
        unencrypted = self.make_backend(data)
        context = PluginContext(options, reactor, data, f"{_advertised_host(options)}:{bound.port}")
        opened.append(context)
        tracing = make_tracing(options)
        if tracing is not None:
            unencrypted = tracing.trace_storage(unencrypted)
        backend, encryption = encrypt(unencrypted, context)
        context.outgoing.traced = tracing is not None
        controllers = self.choose_controllers()
        context.watch_images()
        access = await self.make_access(context)
        context.authenticator = access.authenticator
        context.kubelet_credentials = self.make_kubelet_credentials(context)
        return ServerConfig(
            context=context,
            started_at=started_at,
            bound=bound,
            endpoint=(advertised_address(options["bind-address"], options["advertise-address"]), bound.port),
            credentials=credentials,
            backend=backend,
            encryption=encryption,
            tracing=tracing,
            authenticator=access.authenticator,
            authorizer=access.authorizer,
            controllers=controllers,
            auditor=self.make_auditor(context),
            held=cleanup,
            scheduler=CooperativeScheduler(reactor),
            workers=self.workers,
            peers=self.peers,
        )

    def open_data(self, cleanup: ExitStack) -> DataDirectory:
        """Open the data directory; a server in memory without C{--data-dir} has a temporary one."""
        options = self.options
        in_memory = options["in-memory"]
        if in_memory and "data-dir" not in options.changed:
            folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="kubetwist-"))
            options["data-dir"] = f"{folder}/data"
        data = DataDirectory(Path(options["data-dir"]), durable=not in_memory and not options["unsafe-no-fsync"])
        cleanup.callback(data.close)
        data.open()
        return data

    # The parts of a Kubernetes API server.

    def bind(self) -> ServedAddress:
        """
        Bind the address.

        @raise StartError: It cannot be bound.
        """
        options = self.options
        return BoundAddress(options["bind-address"], options["secure-port"], shared=options["permit-port-sharing"])

    def make_backend(self, data: DataDirectory) -> IStorageBackend:
        """
        Create the storage backend, which is not open yet.

        @raise StartError: The backend is unknown.
        """
        return make_backend(self.options, self.reactor)

    def make_auditor(self, context: PluginContext) -> Auditor | None:
        """
        Create the audit, not started yet; L{None} without one.

        @raise StartError: A flag or a file cannot be used.
        """
        return make_auditor(self.options, context)

    def make_credentials(self, data: DataDirectory) -> Credentials:
        """
        Read the certificates and keys of the server, and make those that are missing.

        @raise StartError: One cannot be read, used or written.
        """
        return Credentials(data, self.options)

    def choose_controllers(self) -> Sequence[IControllerFactory]:
        """
        Return the factories of the controllers that run.

        @raise StartError: C{--controllers} has an unknown name.
        """
        return choose_controllers(self.options)

    async def make_access(self, context: PluginContext) -> Access:
        """
        Make the authenticators and authorizers.

        @raise StartError: A flag or a file cannot be used.
        """
        options = self.options
        context.token_issuer = make_token_issuer(options, context.data, context.files)
        context.token_keys = read_token_keys(options, context.data, context.files, context.token_key_listeners)
        authorizer = make_authorizer(options, context)
        authenticator = make_authenticator(options, context)
        context.check_configs_used()
        return Access(authenticator, authorizer)

    def make_kubelet_credentials(self, context: PluginContext) -> KubeletCredentials | None:
        """
        Read the client certificate for kubelets; L{None} in a server that does not call kubelets.

        @raise StartError: A file cannot be used.
        """
        return KubeletCredentials(self.options, self.reactor, context.data, context.files)


async def complete(options: ServerOptions, reactor: IServerReactor) -> ServerConfig:
    """
    Return the complete configuration of a Kubernetes API server.

    @raise StartError: A flag or a file cannot be used; everything that was opened is closed.
    """
    return await Completion(options, reactor).complete()


def start_error(error: BaseException) -> StartError | None:
    """Return an error of configuration or storage as a L{StartError}; L{None} for any other error."""
    if isinstance(error, AdmissionConfigError):
        return StartError(str(error))
    if isinstance(error, BadRuntimeConfig):
        return StartError(f"--runtime-config: {error}")
    if isinstance(error, StorageError):
        return StartError(f"cannot use the store: {error}")
    return None


def _advertised_host(options: ServerOptions) -> str:
    """Return the host of the URL of the server: loopback if it listens on all addresses."""
    address = ipaddress.ip_address(options["advertise-address"] or options["bind-address"])
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"[{address}]" if address.version == 6 else str(address)

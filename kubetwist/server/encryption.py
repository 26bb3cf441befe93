"""Encryption at rest: C{--encryption-provider-config}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interfaces import IStorageBackend
from ..registry.storagekeys import resource_of_key
from .config import ServerConfig
from .context import PluginContext
from .endpoints.health import HealthCheck, Unhealthy
from .errors import StartError
from .generic import HEALTHZ, READYZ, GenericServer

if TYPE_CHECKING:
    from ..storage.encryption.reloading import FileEncryption

ENCRYPTING = "kubetwist/encrypt-stored-secrets"
RELOADING = "start-encryption-provider-config-automatic-reload"


def encrypt(backend: IStorageBackend, context: PluginContext) -> tuple[IStorageBackend, FileEncryption | None]:
    """
    Put the encryption of C{--encryption-provider-config} in front of a storage backend.

    @return: The backend of the server, and its encryption; C{backend} and L{None} without the flag.
    @raise StartError: The file cannot be used.
    """
    options = context.options
    path = options["encryption-provider-config"]
    if not path:
        return backend, None
    from ..storage.encryption.reloading import FileEncryption
    from ..storage.encryption.storage import EncryptedStorage

    places = resource_of_key(f"{options['etcd-prefix'].rstrip('/')}/")
    encryption = FileEncryption(path, places, context.reactor)
    try:
        if options["encryption-provider-config-automatic-reload"]:
            encryption.follow(context.files)
        else:
            encryption.read()
    except ValueError as error:
        encryption.stop()
        raise StartError(f"--encryption-provider-config: {error}") from error
    storage = EncryptedStorage(backend, encryption, context.reactor)
    encryption.changed = storage.changed
    # A store that was never opened must not be closed.
    context.closers.append(encryption.stop)
    return storage, encryption


def register_encryption_checks(config: ServerConfig, server: GenericServer) -> None:
    """Register the health checks of key management services and of the reload of the file."""
    encryption = config.encryption
    if encryption is None:
        return
    config.metrics.register_collector(encryption.collect)
    if config.options["hardened"]:
        # The storage process does this before the fronts start, which have the name of the hook only.
        server.add_post_start_hook(ENCRYPTING, lambda: None if config.is_front else _encrypt_secrets(config))
    reloading = config.options["encryption-provider-config-automatic-reload"]

    async def check() -> None:
        problem = await encryption.problem()
        if problem is not None:
            raise Unhealthy(problem)

    if reloading or encryption.has_services:
        server.add_health_check(HealthCheck("kms-providers", check), (HEALTHZ, READYZ))
    if reloading:
        # Nothing to start: L{FileReloader} polls the file.
        server.add_post_start_hook(RELOADING, lambda: None)


async def _encrypt_secrets(config: ServerConfig) -> None:
    from .hardenedfiles import encrypt_stored

    await encrypt_stored(config.backend, f"{config.options['etcd-prefix']}/secrets/")

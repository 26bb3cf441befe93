"""--encryption-provider-config: what is between the store and everybody else."""

from __future__ import annotations

from ..interfaces import IStorageBackend
from ..registry.storagekeys import resource_places
from .config import ServerConfig
from .endpoints.health import HealthCheck, Unhealthy
from .errors import StartError
from .generic import HEALTHZ, READYZ, GenericServer

RELOADING = "start-encryption-provider-config-automatic-reload"


def encrypted(config: ServerConfig) -> IStorageBackend:
    """
    The store of a server; where encryption is configured, it encrypts.

    @raise StartError: The file can not be used.
    """
    options = config.options
    path = options["encryption-provider-config"]
    if not path:
        return config.backend
    from ..storage.encryption.reloading import FileEncryption
    from ..storage.encryption.storage import EncryptedStorage

    places = resource_places(f"{options['etcd-prefix'].rstrip('/')}/")
    encryption = FileEncryption(path, places, config.reactor)
    try:
        if options["encryption-provider-config-automatic-reload"]:
            encryption.follow(config.files)
        else:
            encryption.read()
    except ValueError as error:
        encryption.stop()
        raise StartError(f"--encryption-provider-config: {error}") from error
    config.backend = storage = EncryptedStorage(config.backend, encryption, config.reactor)
    encryption.changed = storage.changed
    config.encryption = encryption
    # A store that was never opened is not closed.
    config.closers.append(encryption.stop)
    return storage


def show_encryption(config: ServerConfig, server: GenericServer) -> None:
    """Add what is to be seen of it: the health of key management services, and that their file is followed."""
    encryption = config.encryption
    if encryption is None:
        return
    config.metrics.read(encryption.readings)
    reloading = config.options["encryption-provider-config-automatic-reload"]

    async def check() -> None:
        problem = await encryption.problem()
        if problem is not None:
            raise Unhealthy(problem)

    if reloading or encryption.has_services:
        server.add_health_check(HealthCheck("kms-providers", check), (HEALTHZ, READYZ))
    if reloading:
        # The file is looked at as all others are.
        server.add_post_start_hook(RELOADING, lambda: None)

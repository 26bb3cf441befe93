"""C{--storage-backend=etcd3}: the etcd store, configured by flags."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..storage.wrappers import unwrap_backend
from .errors import StartError

if TYPE_CHECKING:
    from ..interfaces import IServerReactor, IStorageBackend
    from .config import ServerConfig
    from .generic import GenericServer
    from .options import ServerOptions


#: Seconds for a connection to a member, less than the timeout of a request.
DIAL_TIMEOUT: Final = 2.0


def _read(options: ServerOptions, flag: str) -> bytes:
    path = options[flag]
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StartError(f"--{flag}: {error.strerror}: {path}") from error


def make_etcd(options: ServerOptions, reactor: IServerReactor) -> IStorageBackend:
    """
    Create the store of --etcd-servers.

    @raise StartError: The servers or their certificates cannot be used.
    """
    try:
        from ..storage.etcd import EtcdStorage
        from ..storage.etcd.client import EtcdClient, grpc_members
    except ImportError as error:
        raise StartError(f"--storage-backend=etcd3 needs the extra kubetwist[etcd]: {error}") from error
    from ..client.errors import InvalidRESTConfig
    from ..client.restconfig import RESTConfig
    from ..client.tls import ClientTLS
    from ..storage.etcd.address import Address

    if not options["etcd-servers"]:
        raise StartError("--etcd-servers must be specified")
    if bool(options["etcd-certfile"]) != bool(options["etcd-keyfile"]):
        raise StartError("--etcd-certfile and --etcd-keyfile must be set together")
    settings = RESTConfig(
        url="",
        ca=_read(options, "etcd-cafile"),
        certificate=_read(options, "etcd-certfile"),
        key=_read(options, "etcd-keyfile"),
        dial_timeout=DIAL_TIMEOUT,
    )
    try:
        addresses = [Address.parse(url) for url in options["etcd-servers"]]
        if options["etcd-transport"] == "gateway":
            from ..storage.etcd.gateway import gateway_members
            from .etcdgateway import gateway_transports

            make_member = gateway_members(reactor, gateway_transports(reactor, settings))
        else:
            make_member = grpc_members(reactor, lambda host: ClientTLS(settings, host, (b"h2",)))
        client = EtcdClient(reactor, addresses, make_member)
    except (ValueError, InvalidRESTConfig) as error:
        raise StartError(f"cannot use etcd: {error}") from error
    return EtcdStorage(
        client,
        reactor,
        start_timeout=options["storage-initialization-timeout"],
        lease_reuse=options["lease-reuse-duration-seconds"],
    )


def register_etcd_metrics(config: ServerConfig, server: GenericServer) -> None:
    """Register the metrics of etcd, if the server uses etcd."""
    storage = unwrap_backend(config.backend)
    client = getattr(storage, "client", None)
    metrics = getattr(client, "metrics", None)
    if client is None or metrics is None:
        return
    config.metrics.register_collector(client.collect)
    interval = config.options["etcd-db-metric-poll-interval"]
    if interval:
        from ..storage.etcd.sizes import EtcdSizes

        sizes = EtcdSizes(client.members, config.reactor, interval, metrics)
        server.add_ready_hook("sizes of etcd", sizes.start)
        server.register_destroy_func("sizes of etcd", sizes.stop)

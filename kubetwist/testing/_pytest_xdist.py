"""Part of the pytest plugin: one server for each worker of pytest-xdist, or one that all workers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ._sharedservers import SharedServer, SharedServers
    from .manifests import Manifest

_SETTING: Final = "kubetwist_xdist"
#: The servers of the controller.
_SERVERS: pytest.StashKey[SharedServers] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting."""
    text = "servers with pytest-xdist: worker (each worker has its servers), or shared (all workers use the same ones)"
    parser.addini(_SETTING, text, default="worker")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker the address of the shared servers."""
    config: pytest.Config = node.config
    if _is_shared(config):
        servers = config.stash.get(_SERVERS, None)
        if servers is None:
            from ._sharedservers import SharedServers

            servers = config.stash[_SERVERS] = SharedServers()
        node.workerinput[_SETTING] = servers.address


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the shared servers, after all workers have ended."""
    servers = config.stash.get(_SERVERS, None)
    if servers is not None:
        servers.stop()


def shared_server(
    config: pytest.Config,
    mode: str,
    arguments: Sequence[str],
    manifests: Sequence[Manifest] = (),
    prepare: Callable[[Any], object] | None = None,
) -> SharedServer | None:
    """
    Return a server of the controller; L{None} if this process starts its servers itself.

    @param mode: Where servers run: C{"process"}, or in a child process of the controller.
    @param arguments: Flags of C{twist kubeapi}.
    @param manifests: What the first worker loads.
    @param prepare: What the first worker calls afterwards.
    @raise kubetwist.testing.manifests.LoadError: The server rejected an object.
    """
    address: str = getattr(config, "workerinput", {}).get(_SETTING, "")
    if not address:
        return None
    from ._loading import load_manifests
    from ._sharedservers import SharedServer

    def prepare_first(server: SharedServer) -> None:
        if manifests:
            load_manifests(server.connection, manifests)
        if prepare is not None:
            prepare(server)

    kind = mode if mode == "process" else "child"
    return SharedServer(address, kind, *arguments).prepared(prepare_first)


def _is_shared(config: pytest.Config) -> bool:
    setting: str = config.getini(_SETTING)
    if setting not in ("worker", "shared"):
        raise pytest.UsageError(f"{_SETTING} is {setting!r}, must be worker or shared")
    return setting == "shared"

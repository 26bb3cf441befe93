"""
Let client libraries find a test server by themselves: by a kubeconfig, or as in a pod.

Both are for code that calls C{load_kube_config()}, C{load_incluster_config()}, C{kr8s.api()} and the like.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ._redirectedpaths import redirected_paths

_KUBECONFIG: Final = "KUBECONFIG"
_DEFAULT_KUBECONFIG: Final = "~/.kube/config"
#: The directory of a pod's service account: F{/var/run} is a link to F{/run}.
ACCOUNT_FOLDERS: Final = (
    "/var/run/secrets/kubernetes.io/serviceaccount",
    "/run/secrets/kubernetes.io/serviceaccount",
)
_HOST, _PORT, _HTTPS_PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"
#: Variables of pykube that take precedence.
_PYKUBE: Final = (
    "PYKUBE_KUBERNETES_SERVICE_HOST",
    "PYKUBE_KUBERNETES_SERVICE_PORT",
    "PYKUBE_SSL_CERTIFICATE_AUTHORITY",
)
#: The names of the API server in a cluster, where its port is 443.
_SERVER_NAMES: Final = ("kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")

#: Modules that store $KUBECONFIG in this constant at import.
_LOCATION: Final = "KUBE_CONFIG_DEFAULT_LOCATION"
_KUBECONFIG_AT_IMPORT: Final = tuple(
    f"{library}.{module}"
    for library in ("kubernetes", "kubernetes.aio", "kubernetes_asyncio")
    for module in ("config", "config.kube_config")
)
#: Classes with a default that C{load_kube_config()} and the like set, with the name of the attribute.
_DEFAULTS: Final = (
    ("kubernetes.client.configuration", "Configuration", "_default"),
    ("kubernetes.aio.client.configuration", "Configuration", "_default"),
    ("kubernetes_asyncio.client.configuration", "Configuration", "_default"),
)


@contextmanager
def found_by_kubeconfig(kubeconfig: Path) -> Iterator[None]:
    """
    Make a kubeconfig the default of client libraries: C{$KUBECONFIG} and F{~/.kube/config}.

    The tests may run in a pod: its service account is hidden.
    """
    path = str(kubeconfig.absolute())
    environment = {_KUBECONFIG: path, **dict.fromkeys((_HOST, _PORT, _HTTPS_PORT, *_PYKUBE))}
    paths = {os.path.expanduser(_DEFAULT_KUBECONFIG): path, **dict.fromkeys(ACCOUNT_FOLDERS)}
    with _libraries_restored(), _default_location(path), _environment(environment), redirected_paths(paths):
        yield


@contextmanager
def found_in_cluster(host: str, port: int, account_folder: Path) -> Iterator[None]:
    """
    Make a server the one that client libraries find in a pod, and hide kubeconfigs.

    @param host: The address of the server.
    @param port: Its port.
    @param account_folder: The directory with F{token}, F{ca.crt} and F{namespace}.
    """
    variables = {_HOST: host, _PORT: str(port), _HTTPS_PORT: str(port)}
    environment = {**variables, _KUBECONFIG: None, **dict.fromkeys(_PYKUBE)}
    account = str(account_folder.absolute())
    paths = {os.path.expanduser(_DEFAULT_KUBECONFIG): None, **dict.fromkeys(ACCOUNT_FOLDERS, account)}
    with (
        _libraries_restored(),
        _default_location(_DEFAULT_KUBECONFIG),
        _environment(environment),
        _server_names(host, port),
        redirected_paths(paths),
    ):
        yield


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables, or remove them if the value is L{None}."""
    before = {name: os.environ.get(name) for name in variables}
    _set_variables(variables)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _default_location(location: str) -> Iterator[None]:
    """Set the constants of modules that have read C{$KUBECONFIG} at their import; enter before L{_environment}."""
    before = {name: getattr(sys.modules.get(name), _LOCATION, None) for name in _KUBECONFIG_AT_IMPORT}
    _set_locations(dict.fromkeys(before, location))
    outside = os.environ.get(_KUBECONFIG, _DEFAULT_KUBECONFIG)
    try:
        yield
    finally:
        # A module that was imported in the context has read the variable of the context.
        _set_locations({name: outside if value is None else value for name, value in before.items()})


def _set_locations(locations: Mapping[str, str]) -> None:
    for name, location in locations.items():
        module = sys.modules.get(name)
        if hasattr(module, _LOCATION):
            setattr(module, _LOCATION, location)


@contextmanager
def _libraries_restored() -> Iterator[None]:
    """Restore the default configurations of libraries afterwards; kr8s uses no client from before or after."""
    before = [_get_default(*place) for place in _DEFAULTS]
    kr8s: Any = sys.modules.get("kr8s._api")
    clients = None if kr8s is None else kr8s.Api._instances
    if kr8s is not None:
        kr8s.Api._instances = {}
    try:
        yield
    finally:
        for (module, cls, attribute), value in zip(_DEFAULTS, before, strict=True):
            if module in sys.modules:
                setattr(getattr(sys.modules[module], cls), attribute, value)
        kr8s = sys.modules.get("kr8s._api")
        if kr8s is not None:
            kr8s.Api._instances = {} if clients is None else clients


def _get_default(module: str, cls: str, attribute: str) -> Any:
    """Return the default configuration of a library; L{None} if there is none, or it is not imported."""
    return getattr(getattr(sys.modules.get(module), cls, None), attribute, None)


@contextmanager
def _server_names(host: str, port: int) -> Iterator[None]:
    """Resolve the names of the API server in a cluster to an address and port, for Python code."""
    original = socket.getaddrinfo

    def getaddrinfo(name: Any, service: Any, *more: Any, **keywords: Any) -> Any:
        text = name.decode("ascii", "replace") if isinstance(name, bytes) else name
        if text in _SERVER_NAMES and service in (443, "443", "https"):
            name, service = host, port
        return original(name, service, *more, **keywords)

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment] # same parameters, less precise types
    try:
        yield
    finally:
        socket.getaddrinfo = original

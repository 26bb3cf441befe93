"""
Client credentials for webhooks, from the kubeconfig that a C{WebhookAdmissionConfiguration} names.

@see: kubernetes/apiserver, C{pkg/util/webhook/authentication.go}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from ...admission.configuration import check_kind
from ...api.go.quote import quoted
from ...api.jsontypes import JSONValue
from ...client.kubeconfig import read_users
from ...client.restconfig import RESTConfig

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1")
_SCHEME: Final = "pkg/runtime/scheme.go:110"
_FIELDS: Final = ("kind", "apiVersion", "kubeConfigFile")


@frozen
class AuthenticationInfoResolver:
    """
    Client credentials by server: names of kubeconfig users are names of servers.

    A name is a host and port, C{*.} and a suffix, or C{*}; the port 443 can be omitted.

    @ivar users: Client settings by name.
    @ivar default: The user of the current context.
    """

    users: Mapping[str, RESTConfig]
    default: str = ""

    def client_config_for(self, settings: RESTConfig, target: str) -> RESTConfig:
        """
        Return client settings with the credentials for a server.

        @param target: The host and port of the server.
        """
        for name in _names(target):
            user = self.users.get(name)
            if user is not None:
                break
        else:
            user = self.users.get("*") or self.users.get(self.default)
        if user is None:
            return settings
        return evolve(
            settings, certificate=user.certificate, key=user.key, token=user.token, basic_auth=user.basic_auth
        )


def _names(target: str) -> Iterator[str]:
    host, _, port = target.rpartition(":")
    for name in (target, host.strip("[]")) if port == "443" else (target,):
        yield name
        steps = name.split(".")
        for start in range(1, len(steps)):
            yield f"*.{'.'.join(steps[start:])}"


def read_credentials(configuration: JSONValue) -> AuthenticationInfoResolver:
    """
    Read the kubeconfig that a plugin's configuration names. Blocks.

    @param configuration: A C{WebhookAdmissionConfiguration}; L{None} for none.
    @raise ValueError: The configuration is invalid, or the kubeconfig cannot be used.
    """
    if configuration is None:
        return AuthenticationInfoResolver({})
    kind = "WebhookAdmission" if _is_old(configuration) else "WebhookAdmissionConfiguration"
    check_kind(configuration, b"", kind, _VERSIONS, _SCHEME)
    unknown = [
        f'unknown field "{name}"' for name in configuration if name not in ("kind", "apiVersion", "kubeConfigFile")
    ]
    if unknown:
        raise ValueError(f"strict decoding error: {', '.join(unknown)}")
    path = configuration.get("kubeConfigFile") or ""
    if not isinstance(path, str):
        raise ValueError("kubeConfigFile must be a string")
    if not path:
        return AuthenticationInfoResolver({})
    if not Path(path).is_absolute():
        raise ValueError(f"kubeConfigFile: Invalid value: {quoted(path)}: must be an absolute file path")
    return AuthenticationInfoResolver(*read_users(path))


def _is_old(configuration: JSONValue) -> bool:
    return isinstance(configuration, dict) and configuration.get("apiVersion") == _VERSIONS[1]

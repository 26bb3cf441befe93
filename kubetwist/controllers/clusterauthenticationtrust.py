"""
Publishes the CAs and request headers with which this server authenticates users, for aggregated API servers.

Several servers share the ConfigMap: each adds its values and removes none.

@see: kubernetes, C{pkg/controlplane/controller/clusterauthenticationtrust}.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ..api import times
from ..api.errors import APIStatusError
from ..api.featuregates import FeatureGates
from ..api.flagvalues import FlagValues
from ..api.options import UpdateOptions
from ..api.requestscope import RequestScope
from ..api.resource import JSONObject
from ..registry.generic.bootstrap import SERVER, ensure
from .machinery.singleton import SingletonReconciler

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from ..registry.generic.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
_USERS: Final = "client-ca-file"
_PROXIES: Final = "requestheader-client-ca-file"
_LISTS: Final = tuple(
    f"requestheader-{what}"
    for what in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix", "allowed-names")
)
_ALLOWED: Final = "requestheader-allowed-names"
_UIDS: Final = "requestheader-uid-headers"
#: Names of the request headers with the user in requests to aggregated API servers.
_DEFAULT_HEADERS: Final = {
    "requestheader-username-headers": "X-Remote-User",
    _UIDS: "X-Remote-Uid",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
}
#: The common name of this server's client certificate for aggregated API servers.
FRONT_PROXY: Final = "front-proxy-client"


class ClusterAuthenticationTrustController(SingletonReconciler):
    """Creates the ConfigMap and adds the values of this server."""

    namespace = NAMESPACE
    name = NAME

    def __init__(self, store: Store, reactor: IReactorTime, desired: Callable[[], Mapping[str, str]]) -> None:
        """
        @param store: The store of ConfigMaps.
        @param desired: Returns the values that the ConfigMap must contain.
        """
        super().__init__(store, reactor)
        self._desired = desired

    async def check(self) -> None:
        """Create the ConfigMap, or add missing values."""
        desired = self._desired()
        existing = await self.read()
        if existing is None:
            await ensure(
                self.store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": merge_info({}, desired)}
            )
        elif merge_info(existing.get("data") or {}, desired) != existing.get("data"):
            await self.store.cache.on_demand.ensure()
            try:
                await self.store.update(
                    RequestScope(NAMESPACE), NAME, self._with_desired_values, UpdateOptions(), patching=True
                )
            except APIStatusError as error:
                if error.code != 404:
                    raise

    def _with_desired_values(self, obj: JSONObject | None) -> JSONObject:
        assert obj is not None, "an update creates no objects"
        data = merge_info(obj.get("data") or {}, self._desired())
        new = {**obj, "metadata": {**obj["metadata"]}, "data": data}
        self.store.update_managed_fields(obj, new, "", SERVER)
        return new


def cluster_authentication_info(
    options: FlagValues, users: Iterable[Certificate], proxies: Iterable[Certificate], own: str = ""
) -> dict[str, str]:
    """
    Return the CAs and lists that this server adds to the ConfigMap.

    @param options: The flag values.
    @param users: CAs of client certificates of users.
    @param proxies: CAs of client certificates of proxies. Without them, proxy headers are ignored.
    @param own: The CA of this server's proxy certificate, PEM; C{""} if it is in C{proxies}.
    """
    info = {_USERS: "".join(map(_pem, users))}
    authorities = "".join(map(_pem, proxies))
    if authorities or own:
        has_uids = FeatureGates.from_options(options).enabled("RemoteRequestHeaderUID")
        lists = {name: list(options[name]) for name in _LISTS if has_uids or name != _UIDS}
        if own:
            for name, header in _DEFAULT_HEADERS.items():
                if name in lists and header.lower() not in (value.lower() for value in lists[name]):
                    lists[name].append(header)
            # An empty list allows all names, including the name of this server.
            if not authorities or lists[_ALLOWED]:
                lists[_ALLOWED].append(FRONT_PROXY)
        info[_PROXIES] = authorities + own
        info.update((name, json.dumps(values, separators=(",", ":"))) for name, values in lists.items())
    return info


def merge_info(existing: Mapping[str, str], desired: Mapping[str, str]) -> dict[str, str]:
    """Return the union of the known and the desired values, in that order and without expired certificates."""
    merged = {**existing}
    for name in (_USERS, _PROXIES):
        if name in desired:
            merged[name] = _certificates(existing.get(name, ""), desired[name])
    for name in _LISTS:
        if name in desired:
            values = dict.fromkeys((*_string_list(existing.get(name, "")), *_string_list(desired[name])))
            merged[name] = json.dumps(list(values), separators=(",", ":"))
    return merged


def _certificates(*lists: str) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    now = times.utc_now()
    certificates_by_pem: dict[bytes, None] = {}
    for one in lists:
        try:
            certificates = load_pem_x509_certificates(one.encode()) if one else []
        except ValueError:
            # The stored value is invalid.
            continue
        for certificate in certificates:
            if certificate.not_valid_after_utc > now:
                certificates_by_pem[certificate.public_bytes(Encoding.PEM)] = None
    return b"".join(certificates_by_pem).decode()


def _string_list(value: str) -> list[str]:
    try:
        parsed = json.loads(value) if value else []
    except ValueError:
        return []
    return [one for one in parsed if isinstance(one, str)] if isinstance(parsed, list) else []


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()

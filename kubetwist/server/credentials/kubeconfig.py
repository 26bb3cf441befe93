"""The kubeconfig of the admin."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from ...api.jsontypes import JSONObject
from .certificates import CertKeyPair

#: The names of the server's entries; entries with other names belong to users.
_ENTRIES: Final = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))

# Formatted without a YAML library, whose import would slow down every start.
_TEMPLATE = """\
apiVersion: v1
kind: Config
clusters:
- name: kubetwist
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: kubernetes-admin@kubetwist
  context:
    cluster: kubetwist
    user: kubernetes-admin
current-context: kubernetes-admin@kubetwist
"""


def kubeconfig(server: str, authority: bytes, user: CertKeyPair) -> bytes:
    """
    Return a kubeconfig for one user of one server.

    @param server: The URL.
    @param authority: The certificate authorities of the server, PEM.
    """
    return _TEMPLATE.format(
        server=server,
        authority=b64encode(authority).decode(),
        certificate=b64encode(user.certificate).decode(),
        key=b64encode(user.key).decode(),
    ).encode()


def refresh(existing: bytes, fresh: bytes) -> bytes:
    """
    Update an existing kubeconfig with the current server and admin.

    Changes by C{kubectl config} are kept: the namespace of the server's context, users' entries, the current context.

    @param existing: The existing content; replaced if it is not a kubeconfig.
    @param fresh: The result of L{kubeconfig}.
    """
    from ...api.decoding import BodyError, decode_yaml

    try:
        config = decode_yaml(existing).value
        current = decode_yaml(fresh).value
        changed = [_put(config, entries, kind, current[entries][0]) for entries, kind in _ENTRIES]
    except (BodyError, TypeError, KeyError, AttributeError):
        return fresh
    if not config.get("current-context"):
        config["current-context"] = current["current-context"]
    elif not any(changed):
        return existing
    # Imported late: only needed if a user has changed the file and it is outdated.
    import yaml

    return yaml.safe_dump(config, sort_keys=False).encode()


def _put(config: JSONObject, entries: str, kind: str, entry: JSONObject) -> bool:
    """Replace the server's entry; return whether it was different."""
    config[entries] = listed = config.get(entries) or []
    for one in listed:
        if one.get("name") == entry["name"]:
            before = one.get(kind) or {}
            # The namespace of the context is kept; its cluster and user are replaced together.
            one[kind] = {**before, **entry[kind]} if kind == "context" else entry[kind]
            return bool(one[kind] != before)
    listed.append(entry)
    return True

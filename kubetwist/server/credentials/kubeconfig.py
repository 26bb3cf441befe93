"""The kubeconfig of the admin."""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from ...api.jsontypes import JSONObject
from .certificates import CertKeyPair

#: What our entries are called; those of other names are the users'.
_ENTRIES: Final = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))

# Written out rather than dumped: a YAML library is not worth its import for this at every start.
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
    A kubeconfig for one user of one server.

    @param server: The URL.
    @param authority: The certificates that the server's is trusted by, PEM.
    """
    return _TEMPLATE.format(
        server=server,
        authority=b64encode(authority).decode(),
        certificate=b64encode(user.certificate).decode(),
        key=b64encode(user.key).decode(),
    ).encode()


def refreshed(found: bytes, fresh: bytes) -> bytes:
    """
    A kubeconfig that already exists, with what is true now of the server and its admin.

    What C{kubectl config} has put there stays: our context's namespace, entries of users' own, the current context.

    @param found: What is there; if that is no kubeconfig, nothing of it stays.
    @param fresh: What L{kubeconfig} gives.
    """
    from ...api.decoding import BodyError, decode_yaml

    try:
        config = decode_yaml(found).value
        current = decode_yaml(fresh).value
        changed = [_put(config, entries, kind, current[entries][0]) for entries, kind in _ENTRIES]
    except (BodyError, TypeError, KeyError, AttributeError):
        return fresh
    if not config.get("current-context"):
        config["current-context"] = current["current-context"]
    elif not any(changed):
        return found
    # Nobody comes here who did not change the file, and had it go out of date as well.
    import yaml

    return yaml.safe_dump(config, sort_keys=False).encode()


def _put(config: JSONObject, entries: str, kind: str, own: JSONObject) -> bool:
    """Have what is ours among the entries as it should be; tell whether it was not."""
    config[entries] = known = config.get(entries) or []
    for one in known:
        if one.get("name") == own["name"]:
            before = one.get(kind) or {}
            # Of a context the namespace stays; another authority or user beside ours would not go together with it.
            one[kind] = {**before, **own[kind]} if kind == "context" else own[kind]
            return bool(one[kind] != before)
    known.append(own)
    return True

"""The kubeconfig of the admin."""

from __future__ import annotations

from base64 import b64encode

from .certificates import Pair

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


def kubeconfig(server: str, authority: bytes, user: Pair) -> bytes:
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

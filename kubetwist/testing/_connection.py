"""The connection of a test to a server: the content of a kubeconfig, a token, clients, and further identities."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from ..api.jsontypes import JSONObject, JSONValue
from ._clients import ClientFactories
from ._credentials import (
    MAX_COMMON_NAME,
    CredentialError,
    account_token,
    client_certificate,
    credentials_folder,
    encode,
    user_token,
    write_account_folder,
    write_kubeconfig,
)

#: The user of the test server's token; the F{--token-auth-file} columns after the token.
ADMIN = 'kubetwist-test-admin,kubetwist-test-admin,"system:masters"'


@frozen
class Connection(ClientFactories):
    """
    The data that a client needs, and clients. The identity of a server's connection is the admin.

    Secrets are not part of C{repr}, which appears in the output of failed tests.

    @ivar url: C{https://127.0.0.1:<port>}, without a trailing slash.
    @ivar kubeconfig: A kubeconfig with this identity, for clients that read files.
    @ivar token: A bearer token; C{""} for users with a certificate, and for the admin of a server with another token
        file.
    @ivar ca: The certificate of the server's authority, PEM.
    @ivar client_certificate: A client certificate, PEM; C{""} for service accounts.
    @ivar client_key: Its key, PEM.
    @ivar namespace: The default namespace of clients; C{""} for C{default}.
    @ivar folder: The temporary directory of the server, for files of other identities; L{None} if there is none.
    @ivar admin: The connection that this one was derived from; L{None} for the admin's.
    @ivar user_key: The key for tokens of users; C{""} if the server accepts no such tokens.
    """

    url: str
    kubeconfig: Path
    token: str = field(repr=False)
    ca: str = field(repr=False)
    client_certificate: str = field(repr=False)
    client_key: str = field(repr=False)
    namespace: str = ""
    folder: Path | None = field(default=None, repr=False)
    admin: Connection | None = field(default=None, repr=False)
    user_key: str = field(default="", repr=False)

    @classmethod
    def from_kubeconfig(
        cls, kubeconfig: Path, token: str = "", folder: Path | None = None, user_key: str = ""
    ) -> Connection:
        """
        Read the current context of C{kubeconfig}; certificates may be inline or in files beside it.

        @param token: A token of the same user; by default the one in the file.
        @param folder: See the attribute.
        @param user_key: See the attribute.
        """
        import yaml

        document = yaml.safe_load(kubeconfig.read_bytes())

        def find_entry(section: str, name: str) -> JSONObject:
            found: JSONObject = next(entry for entry in document[f"{section}s"] if entry["name"] == name)[section]
            return found

        def pem(entry: JSONObject, field: str) -> str:
            if f"{field}-data" in entry:
                return base64.b64decode(entry[f"{field}-data"]).decode()
            if field not in entry:
                return ""
            path: Path = kubeconfig.parent / entry[field]
            return path.read_text()

        context = find_entry("context", document["current-context"])
        cluster, user = find_entry("cluster", context["cluster"]), find_entry("user", context["user"])
        return cls(
            url=cluster["server"].rstrip("/"),
            kubeconfig=kubeconfig,
            token=token or user.get("token", ""),
            ca=pem(cluster, "certificate-authority"),
            client_certificate=pem(user, "client-certificate"),
            client_key=pem(user, "client-key"),
            namespace=context.get("namespace", ""),
            folder=folder,
            user_key=user_key,
        )

    @property
    def port(self) -> int:
        """Return the port that the server listens on."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def ssl_context(self) -> ssl.SSLContext:
        """
        Return a TLS context that trusts this server only.

        It has no client certificate: send the token with requests. The context of a user from L{as_user} has the
        user's certificate if the connection has no token.
        """
        return self.credentials_context() if self.admin is not None else ssl.create_default_context(cadata=self.ca)

    def credentials_context(self) -> ssl.SSLContext:
        """Return a TLS context that trusts this server only, with the client certificate if there is no token."""
        context = ssl.create_default_context(cadata=self.ca)
        if not self.token and self.client_certificate:
            # The module ssl reads certificates from files only.
            with NamedTemporaryFile("w", suffix=".pem") as file:
                file.write(self.client_certificate + self.client_key)
                file.flush()
                context.load_cert_chain(file.name)
        return context

    # --- other identities

    def with_token(self, token: str) -> Connection:
        """
        Return a connection with another token and without a client certificate; its kubeconfig is the same.

        @param token: A bearer token; C{""} for requests of anonymous users.
        """
        return evolve(self, token=token, client_certificate="", client_key="")

    def as_user(
        self,
        user: str,
        groups: Sequence[str] = (),
        *,
        uid: str = "",
        extra: Mapping[str, Sequence[str]] | None = None,
        namespace: str = "",
    ) -> Connection:
        """
        Return a connection of a user, with a new client certificate or token, and a new kubeconfig.

        A token is used for what certificates cannot have: a uid, extra values, and a name of more than 64 characters.
        All authenticated users are also in C{system:authenticated}. The kubeconfig exists until the server stops.

        @param user: The user name.
        @param groups: Further groups.
        @param uid: The uid of the user.
        @param extra: Extra values by their keys.
        @param namespace: The default namespace of clients; C{""} for C{default}.
        @raise CredentialError: A name is empty, or the server's key for certificates or tokens is unknown.
        """
        admin = self.admin or self
        if uid or extra or len(user) > MAX_COMMON_NAME:
            token = user_token(self.user_key, user, groups, uid, extra or {})
            return self._with_credentials(user, token=token, namespace=namespace)
        certificate, key = client_certificate(admin.kubeconfig.parent / "pki", user, groups)
        return self._with_credentials(user, certificate=certificate, key=key, namespace=namespace)

    def as_service_account(
        self,
        namespace: str,
        name: str,
        *,
        create: bool = False,
        expiration_seconds: int = 3600,
        audiences: Sequence[str] = (),
    ) -> Connection:
        """
        Return a connection of a service account, with a token from the API server and a new kubeconfig. Blocking.

        In the thread of the reactor, await L{kubetwist.testing.InProcessServer.as_service_account} instead.

        @param create: Whether to create a missing account, and its namespace.
        @param expiration_seconds: Lifetime of the token, at least 600.
        @param audiences: The audiences of the token; by default the API server's.
        @raise CredentialError: The account does not exist, or the server refuses.
        """
        token = account_token(self.admin or self, namespace, name, create, expiration_seconds, audiences)
        user = f"system:serviceaccount:{namespace}:{name}"
        return self._with_credentials(user, token=token, namespace=namespace)

    def _with_credentials(
        self, user: str, *, token: str = "", certificate: str = "", key: str = "", namespace: str
    ) -> Connection:
        """
        Return a connection with other credentials, and its kubeconfig.

        @param user: The name of the entry in the kubeconfig.
        @param token: A bearer token, or C{""} for a certificate.
        @param certificate: A client certificate, PEM.
        @param key: Its key, PEM.
        @param namespace: The default namespace.
        """
        entry: JSONObject = {"token": token}
        if certificate:
            entry = {"client-certificate-data": encode(certificate), "client-key-data": encode(key)}
        return evolve(
            self,
            kubeconfig=write_kubeconfig(credentials_folder(self.folder), self.url, self.ca, user, entry, namespace),
            token=token,
            client_certificate=certificate,
            client_key=key,
            namespace=namespace,
            admin=self.admin or self,
        )

    # --- clients that find the server by themselves

    @contextmanager
    def use_kubeconfig(self) -> Iterator[Path]:
        """
        In this context, C{$KUBECONFIG} and F{~/.kube/config} are the kubeconfig of this connection.

        That is true for clients in Python, also for those that have read C{$KUBECONFIG} at their import. Other
        processes get C{$KUBECONFIG}.
        """
        from ._clusterdiscovery import found_by_kubeconfig

        with found_by_kubeconfig(self.kubeconfig):
            yield self.kubeconfig

    @contextmanager
    def use_in_cluster(self) -> Iterator[Path]:
        """
        In this context, clients in Python find the server as in a pod: by variables and files of a service account.

        The files appear in F{/var/run/secrets/kubernetes.io/serviceaccount} to Python code, and there is no kubeconfig.
        The context returns the directory that contains them.

        @raise CredentialError: The connection has no token.
        """
        from ._clusterdiscovery import found_in_cluster

        if not self.token:
            raise CredentialError("clients in a cluster need a token: use the connection of a service account")
        parts = urlsplit(self.url)
        folder = write_account_folder(credentials_folder(self.folder), self.token, self.ca, self.namespace or "default")
        with found_in_cluster(parts.hostname or "", self.port, folder):
            yield folder

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = 30,
    ) -> tuple[int, Any]:
        """
        Send one request on a new connection. Blocking.

        @param body: Bytes are sent unchanged, other values as JSON.
        @return: The HTTP status, and the decoded body if it is JSON, otherwise its text.
        """
        parts = urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=self.credentials_context(), timeout=timeout
        )
        headers = {"Accept": accept, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        if body is not None:
            headers["Content-Type"] = content_type
            if not isinstance(body, bytes):
                body = json.dumps(body).encode()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            content = response.read()
            if content and "json" in response.headers.get("Content-Type", ""):
                return response.status, json.loads(content)
            return response.status, content.decode("utf-8", "replace")
        finally:
            connection.close()


class ServerHandle:
    """Base class of started servers: their connection data, and a request function."""

    _connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Return the connection data."""
        assert self._connection is not None, "the server was not started"
        return self._connection

    @property
    def url(self) -> str:
        """Return C{https://127.0.0.1:<port>}."""
        return self.connection.url

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the admin's kubeconfig."""
        return self.connection.kubeconfig

    @property
    def token(self) -> str:
        """Return a bearer token of an administrator."""
        return self.connection.token

    def request(self, method: str, path: str, body: JSONValue = None, **more: Any) -> tuple[int, JSONValue]:
        """As L{Connection.request}."""
        return self.connection.request(method, path, body, **more)


def write_token_file(folder: Path) -> tuple[str, Path]:
    """Create a token of an administrator; return it and the file for C{--token-auth-file}."""
    token = secrets.token_hex(16)
    path = folder / "tokens.csv"
    path.touch(mode=0o600)
    path.write_text(f"{token},{ADMIN}\n")
    return token, path

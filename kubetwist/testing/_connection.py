"""The connection of a test to a server: the content of its kubeconfig, a token, and a simple request function."""

from __future__ import annotations

import base64
import http.client
import json
import secrets
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import field, frozen

from ..api.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from treq.client import HTTPClient

#: The user of the test server's token; the F{--token-auth-file} columns after the token.
ADMIN = 'kubetwist-test-admin,kubetwist-test-admin,"system:masters"'


@frozen
class Connection:
    """
    The data that a client needs. Secrets are not part of C{repr}, which appears in the output of failed tests.

    @ivar url: C{https://127.0.0.1:<port>}, without a trailing slash.
    @ivar kubeconfig: The admin's kubeconfig, for clients that read files.
    @ivar token: A bearer token of a member of C{system:masters}; C{""} if the server was given another token file.
    @ivar ca: The certificate of the server's authority, PEM.
    @ivar client_certificate: The admin's certificate, PEM.
    @ivar client_key: Its key, PEM.
    """

    url: str
    kubeconfig: Path
    token: str = field(repr=False)
    ca: str = field(repr=False)
    client_certificate: str = field(repr=False)
    client_key: str = field(repr=False)

    @classmethod
    def from_kubeconfig(cls, kubeconfig: Path, token: str = "") -> Connection:
        """Read the current context of C{kubeconfig}; certificates may be inline or in files beside it."""
        import yaml

        document = yaml.safe_load(kubeconfig.read_bytes())

        def find_entry(section: str, name: str) -> JSONObject:
            found: JSONObject = next(entry for entry in document[f"{section}s"] if entry["name"] == name)[section]
            return found

        def pem(entry: JSONObject, field: str) -> str:
            if f"{field}-data" in entry:
                return base64.b64decode(entry[f"{field}-data"]).decode()
            path: Path = kubeconfig.parent / entry[field]
            return path.read_text()

        context = find_entry("context", document["current-context"])
        cluster, user = find_entry("cluster", context["cluster"]), find_entry("user", context["user"])
        return cls(
            url=cluster["server"].rstrip("/"),
            kubeconfig=kubeconfig,
            token=token,
            ca=pem(cluster, "certificate-authority"),
            client_certificate=pem(user, "client-certificate"),
            client_key=pem(user, "client-key"),
        )

    @property
    def port(self) -> int:
        """Return the port that the server listens on."""
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def ssl_context(self) -> ssl.SSLContext:
        """
        Return a TLS context that trusts this server only and has no client certificate: send the token with requests.
        """
        return ssl.create_default_context(cadata=self.ca)

    # --- configurations of client libraries, which are imported at first use

    def kubernetes(self) -> Any:
        """Return a new C{kubernetes.client.ApiClient}, which the caller closes."""
        from kubernetes import config

        return config.new_client_from_config(str(self.kubeconfig))  # type: ignore[no-untyped-call]

    def kr8s(self) -> Any:
        """Return a C{kr8s} API object; C{kr8s.asyncio.api(kubeconfig=...)} is the equivalent for asyncio."""
        import kr8s

        return kr8s.api(kubeconfig=str(self.kubeconfig))

    def lightkube(self) -> Any:
        """Return a new C{lightkube.Client}."""
        from importlib import import_module

        lightkube = import_module("lightkube")
        return lightkube.Client(config=lightkube.KubeConfig.from_file(str(self.kubeconfig)))

    def kopf(self) -> Any:
        """Return a C{kopf.ConnectionInfo}, for an operator's C{@kopf.on.login()} handler."""
        import kopf

        return kopf.ConnectionInfo(
            server=self.url,
            ca_data=self.ca.encode(),
            certificate_data=self.client_certificate.encode(),
            private_key_data=self.client_key.encode(),
        )

    def treq(self, reactor: Any = None) -> HTTPClient:
        """
        Return a new treq client: it sends the token, trusts this server only, and URLs may be paths of the server.

        @param reactor: L{None} for the global one.
        """
        from ._treqclient import treq_client

        return treq_client(self.url, self.token, self.ca, reactor)

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
        Send one request as the admin on a new connection. Blocking.

        @param body: Bytes are sent unchanged, other values as JSON.
        @return: The HTTP status, and the decoded body if it is JSON, otherwise its text.
        """
        parts = urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, context=self.ssl_context(), timeout=timeout
        )
        headers = {"Accept": accept, "Authorization": f"Bearer {self.token}"}
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

"""Addresses of members of etcd, from C{--etcd-servers}."""

from __future__ import annotations

from urllib.parse import urlsplit

from attrs import frozen


@frozen
class Address:
    """
    The address of a member.

    @ivar url: The URL, unchanged.
    @ivar tls: Whether the connection uses TLS.
    """

    url: str
    host: str
    port: int
    tls: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        """
        Parse one URL of --etcd-servers.

        @raise ValueError: The URL is invalid; the text has the reason.
        """
        full = url if "://" in url else f"http://{url}"
        try:
            parts = urlsplit(full)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"{url!r} is not the URL of an etcd server: {error}") from None
        if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/") or parts.query:
            raise ValueError(f"{url!r} is not the URL of an etcd server: http://host:port or https://host:port is")
        return cls(full.rstrip("/"), host, port or 2379, parts.scheme == "https")

    @property
    def authority(self) -> str:
        """Return host and port in the form of the C{:authority} header."""
        host = self.host if self.host.isascii() else self.host.encode("idna").decode("ascii")
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

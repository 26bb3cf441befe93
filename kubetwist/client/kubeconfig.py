"""
Kubeconfig files as settings of clients, for example of webhooks.

@see: kubernetes/client-go, C{tools/clientcmd}.
"""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Final

from ..api.go.quote import quoted
from ..api.jsontypes import JSONObject
from .errors import InvalidRESTConfig
from .restconfig import RESTConfig

#: Maximum size in bytes of a kubeconfig, and of each referenced file.
_MAX_SIZE: Final = 1024 * 1024
#: Unsupported fields of a user; ignoring them would change the identity of the client.
_UNSUPPORTED: Final = ("exec", "auth-provider", "as", "as-uid", "as-groups", "as-user-extra")
#: Fields that name other files.
_FILE_FIELDS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class InvalidKubeconfig(InvalidRESTConfig):
    """A kubeconfig is invalid; the text is the reason."""


def read_kubeconfig(path: str | Path) -> RESTConfig:
    """
    Read a kubeconfig and the files that it names. Blocks.

    @raise InvalidKubeconfig: It cannot be read, or is invalid.
    """
    path = Path(path)
    return parse_kubeconfig(_read(path), path.parent, str(path))


def read_users(path: str | Path) -> tuple[dict[str, RESTConfig], str]:
    """
    Read the credentials of the users in a kubeconfig, without the servers. Blocks.

    @return: The credentials by user name; and the user of the current context, C{""} without one.
    @raise InvalidKubeconfig: It cannot be read, or is invalid.
    """
    path = Path(path)
    config = _decoded(_read(path), str(path))
    users: dict[str, RESTConfig] = {}
    try:
        entries = config.get("users")
        for entry in entries if isinstance(entries, list) else ():
            name = _text(entry, "name") if isinstance(entry, dict) else ""
            user = _entry(config, "users", "user", name)
            if user is not None:
                users[name] = RESTConfig(url="", **_credentials_of(user, name, path.parent))
        context = _entry(config, "contexts", "context", _text(config, "current-context")) or {}
        return users, _text(context, "user")
    except InvalidRESTConfig as error:
        raise InvalidKubeconfig(f"{path}: {error}") from None


def parse_kubeconfig(content: bytes, folder: Path, name: str) -> RESTConfig:
    """
    Parse a kubeconfig. Blocks, as it reads the files that the kubeconfig names.

    @param folder: The folder that relative paths refer to.
    @param name: The name of the kubeconfig in errors.
    @raise InvalidKubeconfig: It is invalid.
    """
    config = _decoded(content, name)
    try:
        return _settings(config, folder)
    except InvalidRESTConfig as error:
        raise InvalidKubeconfig(f"{name}: {error}") from None


def _decoded(content: bytes, name: str) -> JSONObject:
    from ..api.decoding import (
        BodyError,
        decode_yaml,
    )

    try:
        config = decode_yaml(content).value
    except BodyError as error:
        raise InvalidKubeconfig(f'error loading config file "{name}": {error}') from None
    if not isinstance(config, dict):
        raise InvalidKubeconfig(f'error loading config file "{name}": it is no kubeconfig')
    return config


def _settings(config: JSONObject, folder: Path) -> RESTConfig:
    context_name = _text(config, "current-context")
    if not context_name:
        raise InvalidKubeconfig("invalid configuration: no configuration has been provided")
    context = _entry(config, "contexts", "context", context_name)
    if context is None:
        raise InvalidKubeconfig(f"context was not found for specified context: {context_name}")
    cluster_name = _text(context, "cluster")
    cluster = _entry(config, "clusters", "cluster", cluster_name)
    if cluster is None:
        raise InvalidKubeconfig(f"invalid configuration: cluster {quoted(cluster_name)} does not exist")
    user_name = _text(context, "user")
    user = _entry(config, "users", "user", user_name) if user_name else {}
    if user is None:
        raise InvalidKubeconfig(f"invalid configuration: user {quoted(user_name)} does not exist")
    credentials = _credentials_of(user, user_name, folder)
    if _text(cluster, "proxy-url"):
        raise InvalidKubeconfig(f"proxy-url of cluster {quoted(cluster_name)} is not supported here")
    server = _text(cluster, "server")
    if not server:
        raise InvalidKubeconfig(f"invalid configuration: no server found for cluster {quoted(cluster_name)}")
    insecure = cluster.get("insecure-skip-tls-verify") is True
    ca = _data(cluster, "certificate-authority", folder)
    if "://" not in server:
        secure = ca or insecure or credentials["certificate"]
        server = f"{'https' if secure else 'http'}://{server}"
    if insecure and ca:
        raise InvalidKubeconfig("specifying a root certificates file with the insecure flag is not allowed")
    return RESTConfig(
        url=server,
        ca=ca,
        server_name=_text(cluster, "tls-server-name"),
        insecure=insecure,
        **credentials,
    )


def _credentials_of(user: JSONObject, name: str, folder: Path) -> JSONObject:
    """Return the credentials of a user, as fields of L{RESTConfig}."""
    for field in _UNSUPPORTED:
        if user.get(field):
            raise InvalidKubeconfig(f"{field} of user {quoted(name)} is not supported here")
    return {
        "certificate": _data(user, "client-certificate", folder),
        "key": _data(user, "client-key", folder),
        "token": _token(user, folder),
        "basic_auth": _basic_auth(user),
    }


def _entry(config: JSONObject, list_name: str, field: str, name: str) -> JSONObject | None:
    entries = config.get(list_name)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name:
            value = entry.get(field)
            return value if isinstance(value, dict) else {}
    return None


def _text(fields: JSONObject, name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidKubeconfig(f"{name} must be a string")
    return value


def _data(fields: JSONObject, name: str, folder: Path) -> bytes:
    """Return the data in a field, or in the file that another field names; the former wins."""
    inline = _text(fields, f"{name}-data")
    if inline:
        try:
            return b64decode("".join(inline.split()), validate=True)
        except ValueError:
            raise InvalidKubeconfig(f"{name}-data is not base64") from None
    path = _text(fields, name)
    return _read(folder / path) if path else b""


def _token(user: JSONObject, folder: Path) -> str:
    path = _text(user, "tokenFile")
    if path:
        try:
            return _read(folder / path).decode("utf-8").strip()
        except UnicodeDecodeError:
            raise InvalidKubeconfig(f"the token in {path} is no text") from None
    return _text(user, "token")


def _basic_auth(user: JSONObject) -> tuple[str, str] | None:
    name = _text(user, "username")
    return (name, _text(user, "password")) if name else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SIZE + 1)
    except OSError as error:
        raise InvalidKubeconfig(f"cannot read {path}: {error.strerror}") from error
    if len(content) > _MAX_SIZE:
        raise InvalidKubeconfig(f"{path} is longer than {_MAX_SIZE} bytes")
    return content


def named_files(content: bytes, folder: Path) -> list[Path]:
    """Return the files that a kubeconfig names; it must be valid."""
    config = _decoded(content, "")
    files: list[Path] = []
    for list_name, field in (("clusters", "cluster"), ("users", "user")):
        entries = config.get(list_name)
        for entry in entries if isinstance(entries, list) else ():
            fields = entry.get(field) if isinstance(entry, dict) else None
            for name in _FILE_FIELDS:
                path = fields.get(name) if isinstance(fields, dict) else None
                if isinstance(path, str) and path:
                    files.append(folder / path)
    return files

"""
The cluster that is recorded: its kubeconfig, and the credentials that a command returns.

@see: kubernetes/client-go, C{tools/clientcmd}, C{plugin/pkg/client/auth/exec}.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from attrs import evolve, field, frozen

from ...api.decoding import BodyError, decode_yaml
from ...api.jsontypes import JSONObject
from ...client.kubeconfig import InvalidKubeconfig, parse_kubeconfig
from ...client.restconfig import RESTConfig

#: Maximum size of a kubeconfig in bytes.
_MAX_SIZE: Final = 1024 * 1024
#: Seconds that a command may take to return credentials.
EXEC_TIMEOUT: Final = 60.0
#: Credentials are renewed before they expire.
_RENEW_BEFORE: Final = timedelta(seconds=30)
_SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}
_FILE_FIELDS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@frozen
class ExecCommand:
    """
    A command that returns credentials.

    @ivar cluster: The cluster as C{KUBERNETES_EXEC_INFO} describes it; L{None} if the command does not want it.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    install_hint: str = ""
    cluster: JSONObject | None = None


@frozen
class Upstream:
    """
    A cluster, and how to authenticate there.

    @ivar config: The settings of clients; without credentials if C{command} returns them.
    @ivar command: L{None} if the kubeconfig has the credentials.
    @ivar impersonation: Header fields with the user that the kubeconfig impersonates.
    """

    config: RESTConfig
    command: ExecCommand | None = None
    impersonation: tuple[tuple[bytes, bytes], ...] = ()


@frozen
class ExecCredential:
    """
    The credentials that a command has returned.

    @ivar expires: The time of expiry; L{None} without one.
    """

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None

    def is_current(self, now: datetime) -> bool:
        """Return whether it can be used."""
        return self.expires is None or now < self.expires - _RENEW_BEFORE

    def applied(self, config: RESTConfig) -> RESTConfig:
        """Return the settings with these credentials."""
        return evolve(config, token=self.token, certificate=self.certificate, key=self.key)


def kubeconfig_paths(setting: str) -> list[Path]:
    """
    Return the files of a kubeconfig.

    @param setting: Paths as in C{$KUBECONFIG}; C{""} for that variable, and without it for C{~/.kube/config}.
    """
    setting = setting or os.environ.get("KUBECONFIG", "")
    names = [name for name in setting.split(os.pathsep) if name]
    return [Path(name).expanduser() for name in names] or [Path.home() / ".kube" / "config"]


def read_upstream(paths: Sequence[Path], context: str = "") -> Upstream:
    """
    Read a kubeconfig of one or several files. Blocks.

    @param context: The name of the context; C{""} for the current one.
    @raise InvalidKubeconfig: It cannot be read, or is invalid.
    """
    merged = _merged(paths)
    name = os.pathsep.join(map(str, paths))
    if context:
        if not any(entry["name"] == context for entry in merged["contexts"]):
            raise InvalidKubeconfig(f"{name}: no context {context!r}")
        merged["current-context"] = context
    user = _current_user(merged)
    command = user.pop("exec", None)
    impersonation = _impersonation(user)
    config = parse_kubeconfig(json.dumps(merged).encode(), paths[0].parent, name)
    return Upstream(config, _exec_command(command, config, paths[0].parent, name), impersonation)


def _merged(paths: Sequence[Path]) -> JSONObject:
    """Return one kubeconfig; the first file with a name, or with a current context, wins."""
    merged: JSONObject = {"apiVersion": "v1", "kind": "Config", **{section: [] for section in _SECTIONS}}
    found = False
    for path in paths:
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_SIZE + 1)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InvalidKubeconfig(f"cannot read {path}: {error.strerror}") from error
        if len(content) > _MAX_SIZE:
            raise InvalidKubeconfig(f"{path} is longer than {_MAX_SIZE} bytes")
        found = True
        try:
            document = decode_yaml(content).value
        except BodyError as error:
            raise InvalidKubeconfig(f"{path}: {error}") from None
        if not isinstance(document, dict):
            raise InvalidKubeconfig(f"{path}: not a kubeconfig")
        for section, kind in _SECTIONS.items():
            names = {entry["name"] for entry in merged[section]}
            for entry in document.get(section) or ():
                if isinstance(entry, dict) and isinstance(entry.get(kind), dict) and entry.get("name") not in names:
                    merged[section].append({"name": entry.get("name"), kind: _absolute(entry[kind], path.parent)})
        if document.get("current-context"):
            merged.setdefault("current-context", document["current-context"])
    if not found:
        raise InvalidKubeconfig(f"no kubeconfig: {os.pathsep.join(map(str, paths))} does not exist")
    return merged


def _absolute(fields: JSONObject, folder: Path) -> JSONObject:
    return {
        name: str((folder / value).absolute()) if name in _FILE_FIELDS and isinstance(value, str) and value else value
        for name, value in fields.items()
    }


def _current_user(config: JSONObject) -> JSONObject:
    """Return the user of the current context; an empty one if there is none, which the parser reports."""
    for context in config["contexts"]:
        if context["name"] == config.get("current-context"):
            for user in config["users"]:
                if user["name"] == context["context"].get("user"):
                    return user["user"]  # type: ignore[no-any-return] # decoded JSON
    return {}


def _impersonation(user: JSONObject) -> tuple[tuple[bytes, bytes], ...]:
    """Remove the impersonated user from a kubeconfig's user, and return it as header fields."""
    fields: list[tuple[str, str]] = []
    for name, header in (("as", "impersonate-user"), ("as-uid", "impersonate-uid")):
        value = user.pop(name, None)
        if value:
            fields.append((header, str(value)))
    fields += [("impersonate-group", str(group)) for group in user.pop("as-groups", None) or ()]
    extra = user.pop("as-user-extra", None) or {}
    fields += [(f"impersonate-extra-{name}".lower(), str(value)) for name, values in extra.items() for value in values]
    return tuple((name.encode(), value.encode()) for name, value in fields)


def _exec_command(command: Any, config: RESTConfig, folder: Path, name: str) -> ExecCommand | None:
    if command is None:
        return None
    if not isinstance(command, dict) or not isinstance(command.get("command"), str) or not command["command"]:
        raise InvalidKubeconfig(f"{name}: exec needs a command")
    version = str(command.get("apiVersion") or "")
    if version not in _EXEC_VERSIONS:
        raise InvalidKubeconfig(
            f"{name}: exec has the apiVersion {version!r}, must be one of {', '.join(_EXEC_VERSIONS)}"
        )
    program = command["command"]
    if os.sep in program:
        # As in client-go, a path is relative to the kubeconfig.
        program = str((folder / program).absolute())
    cluster: JSONObject | None = None
    if command.get("provideClusterInfo"):
        cluster = {"server": config.url, "insecure-skip-tls-verify": config.insecure}
        if config.ca:
            from base64 import b64encode

            cluster["certificate-authority-data"] = b64encode(config.ca).decode()
    environment = {str(entry.get("name")): str(entry.get("value", "")) for entry in command.get("env") or ()}
    arguments = (str(argument) for argument in command.get("args") or ())
    return ExecCommand((program, *arguments), environment, version, str(command.get("installHint") or ""), cluster)


def run_exec_command(command: ExecCommand) -> ExecCredential:
    """
    Run a command that returns credentials. Blocks.

    @raise InvalidKubeconfig: It fails, or returns something else.
    """
    program = command.command[0]
    spec: JSONObject = {"interactive": False}
    if command.cluster is not None:
        spec["cluster"] = command.cluster
    info = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info), **command.environment}
    try:
        done = subprocess.run(
            command.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            timeout=EXEC_TIMEOUT,
        )
    except FileNotFoundError:
        hint = f": {command.install_hint}" if command.install_hint else ""
        raise InvalidKubeconfig(f"exec: executable {program} not found{hint}") from None
    except subprocess.TimeoutExpired:
        raise InvalidKubeconfig(f"exec: {program} did not end within {EXEC_TIMEOUT:.0f} s") from None
    except OSError as error:
        raise InvalidKubeconfig(f"exec: cannot run {program}: {error.strerror}") from None
    if done.returncode:
        text = done.stderr[-2000:].decode("utf-8", "replace").strip()
        raise InvalidKubeconfig(f"exec: {program} failed with exit code {done.returncode}: {text}")
    return parse_exec_credential(done.stdout, command.api_version)


def parse_exec_credential(output: bytes, api_version: str) -> ExecCredential:
    """
    Return the credentials in the output of a command.

    @param api_version: The version that the kubeconfig requests.
    @raise InvalidKubeconfig: They are malformed.
    """
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        raise InvalidKubeconfig("exec: the output is not JSON") from None
    if not isinstance(document, dict) or document.get("kind") != "ExecCredential":
        raise InvalidKubeconfig("exec: the output is not an ExecCredential")
    if document.get("apiVersion") != api_version:
        raise InvalidKubeconfig(
            f"exec: the output has the apiVersion {document.get('apiVersion')!r}, not {api_version!r}"
        )
    status = document.get("status")
    if not isinstance(status, dict):
        raise InvalidKubeconfig("exec: the output has no status")
    texts: dict[str, str] = {}
    for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp"):
        value = status.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidKubeconfig(f"exec: {name} must be a string")
        texts[name] = value or ""
    if not texts["token"] and not (texts["clientCertificateData"] and texts["clientKeyData"]):
        raise InvalidKubeconfig("exec: the output has neither a token nor a client certificate with its key")
    expires: datetime | None = None
    if texts["expirationTimestamp"]:
        try:
            expires = datetime.fromisoformat(texts["expirationTimestamp"])
        except ValueError:
            raise InvalidKubeconfig("exec: expirationTimestamp is not a time of RFC 3339") from None
        if expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
    return ExecCredential(
        texts["token"], texts["clientCertificateData"].encode(), texts["clientKeyData"].encode(), expires
    )

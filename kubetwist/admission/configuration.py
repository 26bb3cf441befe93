"""
Reads C{--admission-control-config-file}: an C{AdmissionConfiguration} with the configurations of plugins.

@see: kubernetes/apiserver, C{pkg/admission/config.go}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from ..api.decoding import BodyError, decode_yaml, json_type
from ..api.jsontypes import JSONValue
from ..api.resource import GroupVersion, JSONObject

_SCHEME: Final = "k8s.io/apiserver/pkg/server/options/admission.go:48"
_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")
#: Top-level fields of the legacy format, in which the file is the configuration of one plugin, and that plugin.
_LEGACY: Final = {"imagePolicy": "ImagePolicyWebhook", "podNodeSelectorPluginConfig": "PodNodeSelector"}
#: The configuration of PodSecurity that --hardened implies.
_BASELINE: Final[JSONObject] = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline", "enforce-version": "latest"},
}
#: Maximum size of a configuration file, in bytes.
_MAX_FILE_BYTES: Final = 4 << 20


class AdmissionConfigError(Exception):
    """The admission flags or configuration files cannot be used; the text is one line."""


def read_configurations(path: str) -> dict[str, JSONValue]:
    """
    Return the decoded configurations of admission plugins by plugin name. Blocks on file I/O.

    @param path: The path of the C{AdmissionConfiguration}; C{""} for none.
    @raise AdmissionConfigError: The file, or a file that it names, cannot be read or is invalid.
    """
    if not path:
        return {}
    file = Path(path)
    try:
        data = read(file)
    except OSError as error:
        cause = reason(error, path)
        raise AdmissionConfigError(
            f'failed to read plugin config: unable to read admission control configuration from "{path}" [{cause}]'
        ) from error
    try:
        value = decode_configuration(data)
        if _is_legacy(value):
            return dict.fromkeys(_LEGACY.values(), value)
        return plugin_configurations(value, data, file.parent)
    except ValueError as error:
        raise AdmissionConfigError(f"failed to read plugin config: {error}") from error


def require_baseline(configurations: dict[str, JSONValue]) -> None:
    """
    Set the baseline policy as the default of the plugin PodSecurity if it has no configuration.

    @param configurations: The configurations by plugin name, which are changed.
    @raise AdmissionConfigError: The configuration of the plugin has a weaker default.
    """
    configuration = configurations.setdefault("PodSecurity", dict(_BASELINE))
    defaults = configuration.get("defaults") if isinstance(configuration, dict) else None
    if not isinstance(defaults, dict) or defaults.get("enforce") not in ("baseline", "restricted"):
        raise AdmissionConfigError(
            "--hardened needs the default enforce: baseline, or restricted, in the configuration of PodSecurity"
        )


def read(file: Path) -> bytes:
    """
    Return the content of a configuration file.

    @raise OSError: The file cannot be read or is too large.
    """
    with file.open("rb") as stream:
        data = stream.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise OSError(27, "file too large")
    return data


def reason(error: OSError, path: str) -> str:
    """Return the text of Go's C{fs.PathError} for an error of a file."""
    return f"open {path}: {(error.strerror or str(error)).lower()}"


def decode_configuration(data: bytes) -> JSONValue:
    """
    Return a configuration in YAML or JSON as a value.

    @raise ValueError: It is malformed, or has repeated keys.
    """
    try:
        document = decode_yaml(data)
    except BodyError as error:
        raise ValueError(" ".join(str(error).split())) from error
    if document.duplicates:
        raise ValueError(f"strict decoding error: {', '.join(' '.join(one.split()) for one in document.duplicates)}")
    return document.value


def _is_legacy(value: JSONValue) -> bool:
    return isinstance(value, dict) and "kind" not in value and any(name in value for name in _LEGACY)


def plugin_configurations(value: JSONValue, data: bytes, folder: Path) -> dict[str, JSONValue]:
    """
    Return the configurations in an C{AdmissionConfiguration}, by the name of the plugin.

    @param value: The decoded configuration.
    @param data: Its text, for errors.
    @param folder: The folder of relative paths.
    @raise ValueError: The configuration is invalid, or a file that it names.
    """
    check_kind(value, data, "AdmissionConfiguration", _VERSIONS, _SCHEME)
    problems = [f'unknown field "{name}"' for name in value if name not in ("kind", "apiVersion", "plugins")]
    plugins = value.get("plugins") or []
    if not isinstance(plugins, list):
        raise ValueError(f"json: cannot unmarshal {json_type(plugins)} into Go struct field .plugins of type []")
    configurations: dict[str, Any] = {}
    for index, one in enumerate(plugins):
        if not isinstance(one, dict):
            raise ValueError(f"json: cannot unmarshal {json_type(one)} into Go struct field .plugins of type struct")
        problems += [
            f'unknown field "plugins[{index}].{name}"' for name in one if name not in ("name", "path", "configuration")
        ]
        for name in ("name", "path"):
            if not isinstance(one.get(name) or "", str):
                raise ValueError(
                    f"json: cannot unmarshal {json_type(one[name])} into Go struct field .plugins.{name} of type string"
                )
    if problems:
        raise ValueError(f"strict decoding error: {', '.join(problems)}")
    for one in plugins:
        # With several entries for one plugin, the first one is used, as in the reference.
        configurations.setdefault(one.get("name") or "", _configuration(one, folder))
    return configurations


def _configuration(plugin: JSONObject, folder: Path) -> JSONValue:
    """Return the configuration of one plugin: the inline value, or the content of the file that it names."""
    inline, path = plugin.get("configuration"), plugin.get("path")
    if inline is not None or not path:
        return inline
    file = folder / path
    try:
        return decode_configuration(read(file))
    except OSError as error:
        cause = reason(error, str(file))
        raise ValueError(f"Couldn't open admission plugin configuration {file}: {cause}") from error
    except ValueError as error:
        raise ValueError(f"admission plugin configuration {file}: {error}") from error


def check_kind(value: JSONValue, data: bytes, kind: str, versions: tuple[str, ...], scheme: str) -> None:
    """
    Check the kind and apiVersion of a configuration.

    @param value: The decoded configuration.
    @param data: The file content for the error text; C{b""} to use C{value} as JSON.
    @param kind: The expected kind.
    @param versions: The accepted apiVersions.
    @param scheme: The location of the Go scheme in the error text.
    @raise ValueError: The kind or apiVersion is different; the text is the reference's.
    """
    if not isinstance(value, dict):
        raise ValueError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_type(value)} into Go value of "
            'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    kind_value, api_version = value.get("kind"), value.get("apiVersion")
    for name, text in (("Kind", kind_value), ("apiVersion", api_version)):
        if not text or not isinstance(text, str):
            content = " ".join((data or orjson.dumps(value)).decode("utf-8", "replace").split())
            raise ValueError(f"Object '{name}' is missing in '{content}'")
    if kind_value != kind or api_version not in versions:
        GroupVersion.parse(str(api_version))
        raise ValueError(f'no kind "{kind_value}" is registered for version "{api_version}" in scheme "{scheme}"')

"""
The file of a recording: a C{v1} List in YAML, in a fixed order.

C{kubectl apply} and C{kubetwist_load} accept it as well, as the further fields are not part of a List.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, Final

import yaml
from attrs import field, frozen

from ...api.jsontypes import JSONObject
from ...http.yamlencoding import YAMLDumper

#: Maximum size of a cassette that is read, in bytes.
MAX_FILE_SIZE: Final = 256 * 1024 * 1024
#: Metadata that differs from server to server, or has no meaning in a test.
_DROPPED_METADATA: Final = ("resourceVersion", "managedFields", "selfLink", "creationTimestamp", "generation")
#: Loaded before all other kinds.
_FIRST_KINDS: Final = ("Namespace", "CustomResourceDefinition")
_HEADER: Final = """\
# What tests have read from a cluster, recorded by kubetwist. Secrets are masked.
# To record again: pytest --kubetwist-record=all
"""
_VERSION: Final = re.compile(r"v?1\.(\d+)")


class CassetteError(ValueError):
    """A cassette cannot be read, or not be written; the text is the reason."""


@frozen
class Cassette:
    """
    A recording.

    @ivar version: The release of the cluster, such as C{"v1.36.2"}; C{""} if it is unknown.
    @ivar objects: The objects as they were before the first write of the tests, in the order of L{object_key}.
    @ivar writes: The writes of the tests, in order: C{"POST /api/v1/namespaces: 201"}.
    @ivar later: Names of objects that the cluster created after the first write, and that are not replayed.
    @ivar omitted: Reasons by names of objects that cannot be replayed.
    """

    version: str = ""
    objects: tuple[JSONObject, ...] = ()
    writes: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    omitted: Mapping[str, str] = field(factory=dict)

    @property
    def release(self) -> str:
        """Return the release as C{--kubernetes-version} takes it, such as C{"1.36"}; C{""} if it is unknown."""
        match = _VERSION.match(self.version)
        return f"1.{match[1]}" if match else ""


def object_key(obj: JSONObject) -> tuple[int, str, str, str, str]:
    """Return the position of an object in a cassette: namespaces and definitions first, the rest by group and name."""
    meta = obj.get("metadata") or {}
    kind = str(obj.get("kind", ""))
    rank = _FIRST_KINDS.index(kind) if kind in _FIRST_KINDS else len(_FIRST_KINDS)
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    return rank, group, kind, str(meta.get("namespace") or ""), str(meta.get("name") or "")


def object_name(obj: JSONObject) -> str:
    """Return the name of an object in texts, such as C{"apps/v1 Deployment default/web"}."""
    meta = obj.get("metadata") or {}
    name = f"{meta['namespace']}/{meta.get('name')}" if meta.get("namespace") else str(meta.get("name"))
    return f"{obj.get('apiVersion')} {obj.get('kind')} {name}"


def ordered_objects(objects: Iterable[JSONObject]) -> tuple[JSONObject, ...]:
    """
    Return objects in the order of a cassette, without metadata that only the recorded cluster has.

    UIDs remain where other objects refer to them: the loader replaces both.
    """
    objects = list(objects)
    owners = {owner.get("uid") for obj in objects for owner in (obj.get("metadata") or {}).get("ownerReferences") or ()}
    return tuple(sorted((_without_volatile(obj, owners) for obj in objects), key=object_key))


def _without_volatile(obj: JSONObject, owners: set[Any]) -> JSONObject:
    meta = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _DROPPED_METADATA}
    if meta.get("uid") not in owners:
        meta.pop("uid", None)
    return {**obj, "metadata": meta}


def render(cassette: Cassette) -> str:
    """Return the text of a cassette; equal cassettes have equal texts."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "List"}
    if cassette.version:
        document["version"] = cassette.version
    for name in ("writes", "later"):
        if getattr(cassette, name):
            document[name] = list(getattr(cassette, name))
    if cassette.omitted:
        document["omitted"] = dict(sorted(cassette.omitted.items()))
    document["items"] = [_sorted(obj) for obj in cassette.objects]
    stream = StringIO()
    stream.write(_HEADER)
    yaml.dump(document, stream, YAMLDumper, sort_keys=False, allow_unicode=True, width=120)
    return stream.getvalue()


def _sorted(obj: JSONObject) -> JSONObject:
    """Return an object whose first fields are apiVersion, kind and metadata."""
    first = [name for name in ("apiVersion", "kind", "metadata") if name in obj]
    return {name: _sorted_value(obj[name]) for name in [*first, *sorted(obj.keys() - set(first))]}


def _sorted_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_value(value[name]) for name in sorted(value)}
    return [_sorted_value(item) for item in value] if isinstance(value, list) else value


def parse(text: str) -> Cassette:
    """
    Return the cassette of a text.

    @raise CassetteError: It is not one.
    """
    try:
        (document,) = yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CassetteError(f"not YAML: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "List":
        raise CassetteError("not a cassette: the kind is not List")
    items = document.get("items") or []
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and item.get("kind") and item.get("apiVersion") for item in items
    ):
        raise CassetteError("not a cassette: items must be objects with kind and apiVersion")
    omitted = document.get("omitted") or {}
    if not isinstance(omitted, dict):
        raise CassetteError("not a cassette: omitted must be a mapping")
    return Cassette(
        version=str(document.get("version") or ""),
        objects=tuple(items),
        writes=_texts(document, "writes"),
        later=_texts(document, "later"),
        omitted={str(name): str(reason) for name, reason in omitted.items()},
    )


def _texts(document: dict[str, Any], name: str) -> tuple[str, ...]:
    texts = document.get(name) or []
    if not isinstance(texts, list):
        raise CassetteError(f"not a cassette: {name} must be a list")
    return tuple(str(text) for text in texts)


def read(path: Path) -> Cassette:
    """
    Read a cassette.

    @raise CassetteError: It cannot be read.
    """
    try:
        if path.stat().st_size > MAX_FILE_SIZE:
            raise CassetteError(f"{path}: larger than {MAX_FILE_SIZE >> 20} MiB")
        return parse(path.read_text("utf-8"))
    except OSError as error:
        raise CassetteError(f"cannot read {path}: {error.strerror}") from None
    except CassetteError as error:
        raise CassetteError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise CassetteError(f"{path}: not UTF-8") from None


def write(path: Path, cassette: Cassette) -> None:
    """
    Replace a file.

    @raise CassetteError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(render(cassette), "utf-8")
        part.replace(path)
    except OSError as error:
        raise CassetteError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)

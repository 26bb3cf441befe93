"""
Read manifests: YAML or JSON text, files, folders, glob patterns, Kustomize directories, rendered Helm charts, dumps.

L{kubetwist.testing._loading} creates the objects in a server.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from attrs import frozen

from ..api.decoding import BodyError, decode_yaml
from ..api.jsontypes import JSONObject, JSONValue

#: The names of files that make a folder a Kustomize directory.
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
#: The suffixes of manifests in folders; files that are named themselves may have any suffix.
SUFFIXES: Final = (".yaml", ".yml", ".json")
#: Maximum size of a file, and of the output of Kustomize, in bytes.
MAX_BYTES: Final = 64 << 20
#: Maximum number of values and keys of a document with expanded aliases.
MAX_NODES: Final = 8_000_000

#: A line that begins a document, as in Go's C{util/yaml} C{YAMLReader}.
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_COMMENTS_ONLY: Final = re.compile(r"(?:\s|^---|#.*$)*", re.MULTILINE)
_NOT_SPACE: Final = re.compile(r"[^ \t\r\n]")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

_HOOK: Final = "helm.sh/hook"
_HOOK_DELETE_POLICY: Final = "helm.sh/hook-delete-policy"
#: Hooks whose objects exist after C{helm install}.
_INSTALLED_HOOKS: Final = frozenset(("pre-install", "post-install", "crd-install"))


class LoadError(ValueError):
    """An object is malformed, or the server rejected it; the text names it and the reason."""


@frozen
class Manifest:
    """
    An object to load.

    @ivar where: The file and the number of the document, for errors.
    """

    obj: JSONObject
    where: str


#: What C{load=} of servers accepts: paths, patterns and objects. A string is a path.
Sources: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Mapping[str, JSONValue] | Manifest]"
#: What the method C{load} accepts: a string is text.
Objects: TypeAlias = "str | Path | Iterable[Path | Mapping[str, JSONValue] | Manifest]"


def objects_of(source: Objects) -> list[JSONObject]:
    """Return the objects of L{manifests_of}."""
    return [manifest.obj for manifest in manifests_of(source)]


def manifests_of(source: Objects) -> list[Manifest]:
    """
    Return the objects of YAML or JSON text, of a path, or of a list of paths and objects.

    Lists are split into their items; empty documents are ignored. L{read_path} describes paths. This function blocks.

    @raise LoadError: A source cannot be read; the text names the file and the document.
    """
    if isinstance(source, str):
        return list(_parse(source, ""))
    return read_sources(source)


def read_sources(sources: Sources) -> list[Manifest]:
    """
    Return the objects of C{load=}; see L{manifests_of}. A string is a path or a glob pattern.

    @raise LoadError: A source cannot be read; the text names the file and the document.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = (sources,)
    found: list[Manifest] = []
    for number, source in enumerate(sources, 1):
        if isinstance(source, Manifest):
            found.append(source)
        elif isinstance(source, (str, os.PathLike)):
            found += read_path(os.fspath(source))
        else:
            # The copy is not affected when the loader or the test changes the object.
            found += _flatten(json.loads(json.dumps(source, default=str)), f"object {number}")
    return found


def read_path(path: str) -> list[Manifest]:
    """
    Return the objects of a file, a folder, a Kustomize directory, or what a glob pattern matches.

    Folders are read with all their subfolders, as C{kubectl apply -R} does; names that begin with a dot are skipped. A
    folder with a F{kustomization.yaml} is built by C{kustomize} or C{kubectl}.

    @raise LoadError: The path does not exist, or a file cannot be read.
    """
    if "\n" in path:
        raise LoadError(f"not a path: {path[:60]!r}; load(text) of a server loads text")
    if _URL.match(path):
        raise LoadError(f"{path}: URLs are not loaded; download the file")
    if os.path.lexists(path) or not glob.has_magic(path):
        return list(_read(path))
    found = [Path(one) for one in sorted(glob.glob(path, recursive=True))]
    matched = [one for one in found if one.is_dir() or one.suffix in SUFFIXES]
    if not matched:
        raise LoadError(f"{path}: matches no folder and no {', '.join(SUFFIXES)} file")
    return [manifest for one in matched for manifest in _read(os.fspath(one))]


def _read(path: str) -> Iterator[Manifest]:
    """Read one file or folder."""
    if os.path.isdir(path):
        yield from _read_folder(path)
    elif os.path.basename(path) in KUSTOMIZATIONS:
        yield from _build(os.path.dirname(path) or ".")
    else:
        yield from _parse(_read_text(path), _shown(path))


def _read_folder(folder: str) -> Iterator[Manifest]:
    if _kustomization(os.listdir(folder)):
        yield from _build(folder)
        return
    files: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        shown = _shown(parent)
        if "Chart.yaml" in names:
            raise LoadError(f"{shown} is a Helm chart; load the output of `helm template`")
        kustomization = _kustomization(names)
        if kustomization:
            # Which of several overlays is wanted is unknown, and patches are not objects.
            raise LoadError(
                f"{_shown(folder)} has the Kustomize directory {shown} ({kustomization}); name the Kustomize"
                " directories to load instead of their parent"
            )
        files += [
            os.path.join(parent, name) for name in sorted(names) if name.endswith(SUFFIXES) and not name.startswith(".")
        ]
    if not files:
        raise LoadError(f"{_shown(folder)}: has no {', '.join(SUFFIXES)} file")
    for file in files:
        yield from _parse(_read_text(file), _shown(file))


def _kustomization(names: Iterable[str]) -> str | None:
    return next((name for name in KUSTOMIZATIONS if name in names), None)


def _build(folder: str) -> Iterator[Manifest]:
    from ._kustomize import build

    yield from _parse(build(folder), f"kustomize build {_shown(folder)}")


def _read_text(path: str) -> str:
    shown = _shown(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise LoadError(f"{shown}: has more than {MAX_BYTES >> 20} MiB")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise LoadError(f"{shown}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise LoadError(f"{shown}: not UTF-8: {error}") from None


def _shown(path: str) -> str:
    """Return a path for errors: relative to the current directory if it is below it."""
    below = os.path.relpath(path)
    return path if below.startswith("..") else below


# --- documents


def _parse(text: str, where: str) -> Iterator[Manifest]:
    """
    Parse the documents of a stream.

    Objects of Helm hooks that do not exist after an installation are left out.

    @param where: The file; C{""} for text without a name.
    """
    for number, document in _documents(text, where):
        for manifest in _flatten(document, _place(where, number)):
            if _is_installed(manifest.obj):
                yield manifest


def _documents(text: str, where: str) -> Iterator[tuple[int, JSONValue]]:
    """Yield the documents of a stream with their numbers, which count empty documents, too."""
    documents = _json_documents(text)
    if documents is not None:
        yield from enumerate(documents, 1)
        return
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    if not starts or not _COMMENTS_ONLY.fullmatch(text, 0, starts[0]):
        starts.insert(0, 0)
    for number, (begin, end) in enumerate(pairwise([*starts, len(text)]), 1):
        if _COMMENTS_ONLY.fullmatch(text, begin, end):
            continue
        document = text[begin:end]
        values = _json_documents(document.removeprefix("---"))
        if values is not None and len(values) == 1:
            yield number, values[0]
            continue
        try:
            decoded = decode_yaml(document.encode(), MAX_NODES)
        except BodyError as error:
            raise LoadError(f"{_place(where, number)}: {error}") from None
        if decoded.duplicates:
            raise LoadError(f"{_place(where, number)}: {decoded.duplicates[0]}")
        yield number, decoded.value


def _place(where: str, number: int) -> str:
    return f"{where}, document {number}" if where else f"document {number}"


def _json_documents(text: str) -> list[JSONValue] | None:
    """Return a sequence of JSON objects and arrays; L{None} if it is not JSON, or has duplicate keys."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_reject)
    documents: list[JSONValue] = []
    position = 0
    try:
        while match := _NOT_SPACE.search(text, position):
            value, position = decoder.raw_decode(text, match.start())
            documents.append(value)
    except (ValueError, RecursionError):
        # The parser of YAML accepts the flow style of YAML, or has the message.
        return None
    return documents


def _unique(pairs: list[tuple[str, Any]]) -> JSONObject:
    values = dict(pairs)
    if len(values) != len(pairs):
        _reject("")
    return values


def _reject(text: str) -> NoReturn:
    raise ValueError(text)


def _flatten(document: JSONValue, where: str) -> Iterator[Manifest]:
    """Return the object of a document, or the items of a list."""
    if document is None:
        return
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise LoadError(f"{where}: not an object with kind and apiVersion: {str(document)[:100]!r}")
    items = document.get("items")
    if str(document["kind"]).endswith("List") and isinstance(items, list):
        kind = str(document["kind"]).removesuffix("List")
        for number, item in enumerate(items, 1):
            inner = {"apiVersion": document["apiVersion"], "kind": kind, **item} if isinstance(item, dict) else item
            yield from _flatten(inner, f"{where}, item {number}")
    elif not isinstance(document.get("metadata", {}), dict):
        raise LoadError(f"{where}: metadata is not an object: {str(document['metadata'])[:100]!r}")
    else:
        yield Manifest(document, where)


def _is_installed(obj: JSONObject) -> bool:
    """
    Return whether an object exists after C{helm install}.

    Hooks of tests, upgrades, rollbacks and deletions do not, and neither do hooks that are deleted when they succeed.
    An object with a UID is from a dump: it existed.
    """
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or _HOOK not in annotations or metadata.get("uid"):
        return True
    hooks = {hook.strip() for hook in str(annotations[_HOOK]).split(",")}
    policies = {policy.strip() for policy in str(annotations.get(_HOOK_DELETE_POLICY, "")).split(",")}
    return bool(hooks & _INSTALLED_HOOKS) and "hook-succeeded" not in policies

"""Load objects from YAML into a server: written manifests, and dumps of clusters with server-set fields."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import yaml

from ..api.jsontypes import JSONObject, JSONValue
from ._connection import Connection

#: Metadata that servers set and do not accept from clients.
_SERVER_SET_METADATA: Final = (
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "selfLink",
)
_FURTHER_SERVER_SET_METADATA: Final = ("deletionGracePeriodSeconds", "managedFields")
#: The order of kinds: dependencies come first.
_ORDER: Final = {
    "Namespace": 0,
    "CustomResourceDefinition": 1,
    "PriorityClass": 2,
    "StorageClass": 2,
    "RuntimeClass": 2,
    "IngressClass": 2,
    "ServiceAccount": 3,
    "ClusterRole": 3,
    "Role": 3,
    "ConfigMap": 4,
    "Secret": 4,
    "Node": 4,
}
_DEFAULT_RANK: Final = 9
#: Seconds to wait until a custom resource definition is served.
_ESTABLISH_TIMEOUT: Final = 10.0

#: Objects that every server creates itself, and that are not loaded from dumps.
_SERVER_CREATED: Final = frozenset(
    (kind, "default", "kubernetes") for kind in ("Service", "Endpoints", "EndpointSlice")
)


class LoadError(ValueError):
    """An object is malformed, or the server rejected it; the text names it and the reason."""


def objects_of(source: str | Path | Iterable[Mapping[str, JSONValue]]) -> list[JSONObject]:
    """
    Return the objects of YAML or JSON text, of a file, or of all F{.yaml}, F{.yml} and F{.json} files of a folder.

    Lists are split into their items; empty documents are ignored.
    """
    documents: list[JSONValue] = []
    if isinstance(source, Path):
        files = [source]
        if source.is_dir():
            files = sorted(file for file in source.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
        for file in files:
            documents += _documents(file.read_text("utf-8"))
    elif isinstance(source, str):
        documents += _documents(source)
    else:
        documents += source
    return list(_flatten(documents))


def _documents(text: str) -> Iterator[JSONValue]:
    yield from yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _flatten(documents: Iterable[JSONValue]) -> Iterator[JSONObject]:
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, Mapping) or not document.get("kind") or not document.get("apiVersion"):
            raise LoadError(f"not an object with kind and apiVersion: {str(document)[:100]!r}")
        if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
            kind = str(document["kind"]).removesuffix("List")
            for item in document["items"]:
                yield from _flatten([{"apiVersion": document["apiVersion"], "kind": kind, **item}])
        else:
            yield json.loads(json.dumps(document, default=str))


class Loader:
    """Loads objects into one server, over HTTP as its administrator."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = http.client.HTTPSConnection(
            "127.0.0.1", connection.port, context=connection.ssl_context(), timeout=60
        )
        self._resources: dict[str, JSONObject] = {}
        self._uids: dict[str, str] = {}

    def load(self, objects: Iterable[JSONObject], namespace: str = "default") -> list[JSONObject]:
        """
        Create the objects, or update existing ones, with their status.

        Owners are created before their dependents, whose owner references get the new UIDs; references to owners that
        are not among the objects are dropped.

        @param namespace: The default for objects without one.
        @return: The objects as stored by the server.
        @raise LoadError: The server rejected an object; the objects before it were created.
        """
        try:
            pending = sorted(objects, key=lambda obj: _ORDER.get(obj["kind"], _DEFAULT_RANK))
            uids = {uid for obj in pending if (uid := obj.get("metadata", {}).get("uid"))}
            created = []
            while pending:
                # Owners that depend on each other are created without these references.
                ready = [obj for obj in pending if not self._missing(obj, uids)] or pending
                batch = [obj for obj in ready if _rank(obj) == _rank(ready[0])]
                for obj in batch:
                    if (found := self._put(obj, namespace)) is not None:
                        created.append(found)
                ids = {id(obj) for obj in batch}
                pending = [obj for obj in pending if id(obj) not in ids]
            return created
        finally:
            self._http.close()

    def _missing(self, obj: JSONObject, uids: set[str]) -> bool:
        owners = obj.get("metadata", {}).get("ownerReferences") or ()
        return any(owner.get("uid") in uids and owner.get("uid") not in self._uids for owner in owners)

    def _put(self, obj: JSONObject, default_namespace: str) -> JSONObject | None:
        meta = dict(obj.get("metadata") or {})
        uid, status = meta.get("uid"), obj.get("status")
        for name in (*_SERVER_SET_METADATA, *_FURTHER_SERVER_SET_METADATA):
            meta.pop(name, None)
        owners = meta.pop("ownerReferences", None) or ()
        known = [{**owner, "uid": self._uids[owner["uid"]]} for owner in owners if owner.get("uid") in self._uids]
        if known:
            meta["ownerReferences"] = known
        name = meta.get("name", "")
        if (obj["kind"], meta.get("namespace", ""), name) in _SERVER_CREATED:
            return None
        resource = self._resource(obj["apiVersion"], obj["kind"])
        folder = resource["root"]
        if resource["namespaced"]:
            folder += f"/namespaces/{quote(meta.get('namespace') or default_namespace)}"
        folder += f"/{resource['name']}"
        body = {**obj, "metadata": meta}
        body.pop("status", None)
        code, created = self._request("POST", folder, body)
        if code == 409 and name:
            code, existing = self._request("GET", f"{folder}/{quote(name)}")
            if code == 200:
                meta["resourceVersion"] = existing["metadata"]["resourceVersion"]
                code, created = self._request("PUT", f"{folder}/{quote(name)}", body)
        if code not in (200, 201):
            raise LoadError(
                f"{obj['kind']} {meta.get('namespace', '')}/{name}: {code}: {created.get('message', created)}"
            )
        if status and resource["status"]:
            with_status = {**created, "status": status}
            code, answer = self._request("PUT", f"{folder}/{quote(created['metadata']['name'])}/status", with_status)
            # The server rejects a status that only it can write; the current one is kept.
            created = answer if code == 200 else created
        if uid:
            self._uids[uid] = created["metadata"]["uid"]
        if obj["kind"] == "CustomResourceDefinition":
            self._await_served(created)
        return created  # type: ignore[no-any-return] # decoded JSON

    def _await_served(self, definition: JSONObject) -> None:
        spec = definition["spec"]
        versions = [version["name"] for version in spec["versions"] if version.get("served")]
        deadline = time.monotonic() + _ESTABLISH_TIMEOUT
        for version in versions:
            path = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?{urlencode({'limit': 1})}"
            while self._request("GET", path)[0] != 200:
                if time.monotonic() > deadline:
                    raise LoadError(f"{definition['metadata']['name']} is not served after {_ESTABLISH_TIMEOUT:.0f} s")
                time.sleep(0.01)

    def _resource(self, api_version: str, kind: str) -> JSONObject:
        key = f"{api_version}/{kind}"
        found = self._resources.get(key)
        if found is None:
            root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
            code, listed = self._request("GET", root)
            if code != 200:
                raise LoadError(f"{kind}: the server has no {api_version}")
            for resource in listed["resources"]:
                name, _, part = resource["name"].partition("/")
                entry = self._resources.setdefault(
                    f"{api_version}/{resource['kind']}" if not part else f"{api_version}//{name}/{part}",
                    {"root": root, "name": name, "namespaced": resource["namespaced"], "status": False},
                )
                if not part:
                    entry["status"] = any(one["name"] == f"{name}/status" for one in listed["resources"])
            found = self._resources.get(key)
            if found is None:
                raise LoadError(f"the server has no {kind} in {api_version}")
        return found

    def _request(self, method: str, path: str, body: JSONValue = None) -> tuple[int, JSONValue]:
        headers = {"Authorization": f"Bearer {self._connection.token}", "Content-Type": "application/json"}
        self._http.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._http.getresponse()
        content = response.read()
        try:
            return response.status, json.loads(content)
        except ValueError:
            return response.status, {"message": content.decode("utf-8", "replace")}


def _rank(obj: JSONObject) -> int:
    return _ORDER.get(obj["kind"], _DEFAULT_RANK)

"""Create the objects of manifests in a server, in the order of their dependencies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

from ..api.jsontypes import JSONObject
from ._adminclient import AdminClient
from ._connection import Connection
from .manifests import LoadError, Manifest, Objects, Sources, manifests_of, read_sources

#: Metadata that servers set and do not accept from clients.
_SERVER_SET_METADATA: Final = (
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "selfLink",
    "deletionGracePeriodSeconds",
    "managedFields",
)
_CRDS: Final = "apiextensions.k8s.io"
#: Ranks of kinds by group: lower ones are created first.
_RANKS: Final[Mapping[str, Mapping[str, int]]] = {
    "": {
        "Namespace": 0,
        "ServiceAccount": 3,
        "ConfigMap": 4,
        "Secret": 4,
        "Node": 4,
        "LimitRange": 4,
        "ResourceQuota": 4,
        "PersistentVolume": 4,
        "PersistentVolumeClaim": 4,
    },
    _CRDS: {"CustomResourceDefinition": 1},
    "scheduling.k8s.io": {"PriorityClass": 2},
    "storage.k8s.io": {"StorageClass": 2, "CSIDriver": 2},
    "node.k8s.io": {"RuntimeClass": 2},
    "networking.k8s.io": {"IngressClass": 2},
    "rbac.authorization.k8s.io": {"ClusterRole": 3, "Role": 3, "ClusterRoleBinding": 4, "RoleBinding": 4},
    # They affect the creation of other objects, and what they call may not run yet.
    "admissionregistration.k8s.io": dict.fromkeys(
        (
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ),
        9,
    ),
    "apiregistration.k8s.io": {"APIService": 9},
}
#: The rank of workloads and custom resources.
_DEFAULT_RANK: Final = 5

#: Seconds to wait until custom resource definitions are served.
ESTABLISH_TIMEOUT: Final = 10.0
#: Seconds to wait for what controllers create, such as default service accounts, while no object can be created.
PATIENCE: Final = 5.0
#: Seconds between two attempts to create an object, and between two reads of a definition.
_INTERVAL: Final = 0.02
#: Codes after which a request may succeed later without any other object of the manifests.
_TRANSIENT: Final = frozenset((403, 409, 429, 500, 502, 503, 504))
_NOT_FOUND: Final = 404
#: Maximum number of objects in an error.
_MAX_ERRORS: Final = 10

#: Objects that every server creates itself, and that are not loaded from dumps.
_SERVER_CREATED: Final = frozenset(
    (kind, "default", "kubernetes") for kind in ("Service", "Endpoints", "EndpointSlice")
)


def load_objects(connection: Connection, objects: Objects, namespace: str = "default") -> list[JSONObject]:
    """
    Create objects, or update existing ones. This function blocks.

    @param connection: The server.
    @param objects: Text, a path, or a list of paths and objects; see L{manifests_of}.
    @param namespace: The default for objects without one.
    @return: The objects as stored by the server.
    @raise LoadError: A source cannot be read, or the server rejected an object.
    """
    return load_manifests(connection, manifests_of(objects), namespace)


def load_sources(connection: Connection, sources: Sources) -> None:
    """
    Create the objects of C{load=}. This function blocks.

    @raise LoadError: A source cannot be read, or the server rejected an object.
    """
    load_manifests(connection, read_sources(sources))


def load_manifests(
    connection: Connection, manifests: Iterable[Manifest], namespace: str = "default"
) -> list[JSONObject]:
    """As L{load_objects}, for objects that have been read."""
    with AdminClient(connection) as client:
        return Loader(client.request).load(manifests, namespace)


def rank(obj: JSONObject) -> int:
    """Return the place of an object's kind in the order of creation."""
    group, slash, _ = str(obj["apiVersion"]).partition("/")
    return _RANKS.get(group if slash else "", {}).get(obj["kind"], _DEFAULT_RANK)


class _Rejected(Exception):
    """
    The server rejected an object.

    @ivar code: The HTTP status.
    """

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Loader:
    """Creates the objects of one load."""

    def __init__(
        self,
        request: Callable[..., tuple[int, Any]],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """
        @param request: Sends a request: method, path and body; returns the HTTP status and the decoded response.
        @param now: Returns the time in seconds.
        @param sleep: Waits some seconds.
        """
        self._request = request
        self._now = now
        self._sleep = sleep
        self._resources: dict[str, JSONObject] = {}
        self._uids: dict[str, str] = {}

    def load(self, manifests: Iterable[Manifest], namespace: str = "default") -> list[JSONObject]:
        """
        Create the objects, or update existing ones, with their status.

        Objects whose dependencies are missing are tried again, as long as other objects could be created in between,
        or controllers may create what is missing. Owners are created before their dependents, whose owner references
        get the new UIDs; references to owners that are not among the objects are dropped.

        @param namespace: The default for objects without one.
        @return: The objects as stored by the server.
        @raise LoadError: The server rejected objects; the rest was created.
        """
        pending = sorted(manifests, key=lambda manifest: rank(manifest.obj))
        uids = {uid for one in pending if (uid := (one.obj.get("metadata") or {}).get("uid"))}
        created: list[JSONObject] = []
        deadline = self._now() + PATIENCE
        while pending:
            before = len(created)
            failures = self._pass(pending, uids, namespace, created)
            pending = [manifest for manifest, _ in failures]
            errors = [error for _, error in failures]
            if any(error.code not in _TRANSIENT and error.code != _NOT_FOUND for error in errors):
                raise _load_error(failures)
            if len(created) > before:
                deadline = self._now() + PATIENCE
            elif errors:
                if self._now() > deadline or not any(error.code in _TRANSIENT for error in errors):
                    raise _load_error(failures)
                self._sleep(_INTERVAL)
        return created

    def _pass(
        self, pending: Sequence[Manifest], uids: set[str], namespace: str, created: list[JSONObject]
    ) -> list[tuple[Manifest, _Rejected]]:
        """
        Try to create each object once.

        @param uids: The UIDs that the manifests have.
        @param created: Gets the created objects.
        @return: The other objects, with the reasons.
        """
        failures: list[tuple[Manifest, _Rejected]] = []
        while pending:
            # Owners that depend on each other are created without these references.
            ready = [one for one in pending if not self._waits_for_owner(one.obj, uids)] or pending
            batch = [one for one in ready if rank(one.obj) == rank(ready[0].obj)]
            definitions: list[tuple[Manifest, JSONObject]] = []
            for manifest in batch:
                try:
                    obj = self._put(manifest.obj, namespace)
                except _Rejected as error:
                    failures.append((manifest, error))
                    continue
                if obj is not None:
                    created.append(obj)
                    if obj["kind"] == "CustomResourceDefinition":
                        definitions.append((manifest, obj))
            self._await_served(definitions)
            done = {id(one) for one in batch}
            pending = [one for one in pending if id(one) not in done]
        return failures

    def _waits_for_owner(self, obj: JSONObject, uids: set[str]) -> bool:
        owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
        return any(owner.get("uid") in uids and owner.get("uid") not in self._uids for owner in owners)

    def _put(self, obj: JSONObject, default_namespace: str) -> JSONObject | None:
        """
        Create or update an object; skip the ones that the server creates itself.

        @raise _Rejected: The server rejected it.
        """
        meta = dict(obj.get("metadata") or {})
        uid, status = meta.get("uid"), obj.get("status")
        for name in _SERVER_SET_METADATA:
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
        # As kubectl and Helm, reject unknown fields; dumps may be from another release.
        options = "" if uid else "?fieldValidation=Strict"
        code, created = self._request("POST", folder + options, body)
        if code == 409 and name:
            path = f"{folder}/{quote(name)}"
            code, existing = self._request("GET", path)
            if code == 200:
                meta["resourceVersion"] = existing["metadata"]["resourceVersion"]
                code, created = self._request("PUT", path + options, body)
        if code not in (200, 201):
            raise _Rejected(f"{code}: {created.get('message', created)}", code)
        if status and resource["status"]:
            with_status = {**created, "status": status}
            code, answer = self._request("PUT", f"{folder}/{quote(created['metadata']['name'])}/status", with_status)
            # The server rejects a status that only it can write; the current one is kept.
            created = answer if code == 200 else created
        if uid:
            self._uids[uid] = created["metadata"]["uid"]
        return created  # type: ignore[no-any-return] # decoded JSON

    def _resource(self, api_version: str, kind: str) -> JSONObject:
        """
        Return the resource of a kind.

        @raise _Rejected: The server does not serve it.
        """
        key = f"{api_version}/{kind}"
        found = self._resources.get(key)
        if found is None:
            root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
            code, listed = self._request("GET", root)
            if code != 200:
                raise _Rejected(f"the server has no {api_version}", code)
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
                raise _Rejected(f"the server has no {kind} in {api_version}", _NOT_FOUND)
        return found

    def _await_served(self, definitions: Sequence[tuple[Manifest, JSONObject]]) -> None:
        """
        Wait until definitions are established, and their resources are in discovery and have paths.

        @raise LoadError: The names of one conflict with another definition, or the wait times out.
        """
        deadline = self._now() + ESTABLISH_TIMEOUT
        for manifest, definition in definitions:
            while not self._is_served(manifest, definition):
                if self._now() > deadline:
                    raise LoadError(f"{_described(manifest)}: is not served after {ESTABLISH_TIMEOUT:.0f} s")
                self._sleep(_INTERVAL)

    def _is_served(self, manifest: Manifest, definition: JSONObject) -> bool:
        spec = definition["spec"]
        root = f"/apis/{spec['group']}"
        path = f"/apis/{_CRDS}/v1/customresourcedefinitions/{quote(definition['metadata']['name'])}"
        code, current = self._request("GET", path)
        conditions = {one["type"]: one for one in current.get("status", {}).get("conditions") or ()}
        accepted = conditions.get("NamesAccepted", {})
        if accepted.get("status") == "False":
            raise LoadError(f"{_described(manifest)}: {accepted.get('message')}")
        if code != 200 or conditions.get("Established", {}).get("status") != "True":
            return False
        for version in spec["versions"]:
            if not version.get("served"):
                continue
            folder, plural = f"{root}/{version['name']}", spec["names"]["plural"]
            code, listed = self._request("GET", folder)
            if code != 200 or not any(one["name"] == plural for one in listed["resources"]):
                return False
            if self._request("GET", f"{folder}/{plural}?{urlencode({'limit': 1})}")[0] != 200:
                return False
        return True


def _described(manifest: Manifest) -> str:
    meta = manifest.obj.get("metadata") or {}
    name = meta.get("name") or f"{meta.get('generateName', '')}*"
    full = f"{meta['namespace']}/{name}" if meta.get("namespace") else name
    return f"{manifest.where}: {manifest.obj['kind']} {full}"


def _load_error(failures: Sequence[tuple[Manifest, _Rejected]]) -> LoadError:
    """Return the error of a load: rejections that do not depend on other objects first."""
    ordered = sorted(failures, key=lambda failure: failure[1].code == _NOT_FOUND)
    lines = [f"{_described(manifest)}: {error}" for manifest, error in ordered[:_MAX_ERRORS]]
    if len(ordered) > _MAX_ERRORS:
        lines.append(f"... and {len(ordered) - _MAX_ERRORS} more objects")
    return LoadError("\n".join(lines))

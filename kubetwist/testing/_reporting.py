"""
The text of reports about failed tests: the objects and events of namespaces, log lines and requests.

It is read over HTTP by a client that is not recorded, so that it works with servers in all processes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..api.jsontypes import JSONObject
from ._describing import cut_lines, events_table, table, to_yaml
from ._objectwatch import DeadlineError, ObjectClient, RequestRefusedError
from ._references import Resource, ResourceTable

if TYPE_CHECKING:
    from ._activity import RecentActivity, ServedRequest
    from ._connection import Connection

#: Seconds for all requests of a report.
TIMEOUT: Final = 5.0
#: Numbers of objects in the table, of objects as YAML, of their lines, and of log lines.
MAX_OBJECTS: Final = 60
MAX_SHOWN: Final = 8
MAX_OBJECT_LINES: Final = 40
MAX_LOG_LINES: Final = 100
MAX_NAMESPACES: Final = 3
_MAX_LOG_BYTES: Final = 64 * 1024
#: Requests are listed with this many items.
_PAGE: Final = 200

#: Objects that controllers create in each namespace, and objects of the server in C{default}.
_CREATED_EVERYWHERE: Final = frozenset(
    {
        ("ConfigMap", "kube-root-ca.crt"),
        ("ServiceAccount", "default"),
        ("Service", "kubernetes"),
        ("Endpoints", "kubernetes"),
        ("EndpointSlice", "kubernetes"),
    }
)
#: URLs with a query or a fragment, which may be a token.
_URL: Final = re.compile(r"(https?://[^\s?#]+)[?#][^\s]+")
#: Namespaces of the server itself.
_SYSTEM: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})

#: A title, and its lines.
Section = tuple[str, list[str]]


class Reporter:
    """Reads the state of one server."""

    def __init__(self, connection: Connection) -> None:
        self._client = ObjectClient(connection, time.monotonic() + TIMEOUT)

    def sections(self, namespaces: Sequence[str], since: float | None = None) -> list[Section]:
        """
        Return the events and objects of namespaces.

        @param namespaces: The namespaces.
        @param since: If there are no C{namespaces}: report those with objects created since, in POSIX seconds; L{None}
            reports none.
        """
        found: list[Section] = []
        try:
            resources = list(_listed(ResourceTable.fetch(self._client.discover)))
            if not namespaces and since is not None:
                namespaces = self._written(resources, since)
            for namespace in namespaces[:MAX_NAMESPACES]:
                found += self._namespace(namespace, resources)
        except DeadlineError:
            found.append(("objects", [f"the server did not answer within {TIMEOUT:g} s"]))
        finally:
            self._client.disconnect()
        return found

    def _list(self, resource: Resource, namespace: str) -> list[JSONObject]:
        try:
            listed = self._client.get(f"{resource.path(namespace)}?limit={_PAGE}")
        except RequestRefusedError:
            return []
        return [
            {"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in listed.get("items") or ()
        ]

    def _written(self, resources: Iterable[Resource], since: float) -> list[str]:
        """Return the namespaces with objects that were created since a time."""
        # Creation times have no fractions of seconds.
        start = datetime.fromtimestamp(int(since), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        found: dict[str, None] = {}
        for resource in resources:
            for obj in self._list(resource, ""):
                meta = obj["metadata"]
                if meta.get("creationTimestamp", "") >= start and meta["namespace"] not in _SYSTEM:
                    found[meta["namespace"]] = None
        return list(found)

    def _namespace(self, namespace: str, resources: Iterable[Resource]) -> Iterator[Section]:
        events: list[JSONObject] = []
        objects: list[JSONObject] = []
        for resource in resources:
            listed = self._list(resource, namespace)
            if resource.kind == "Event":
                events += listed
            else:
                objects += [one for one in listed if (one["kind"], one["metadata"]["name"]) not in _CREATED_EVERYWHERE]
        yield f"events in namespace {namespace}", events_table(events) or ["none"]
        yield f"objects in namespace {namespace}", _objects(objects) or ["none"]


def _listed(resources: ResourceTable) -> Iterator[Resource]:
    """Yield the namespaced resources that can be listed, each once."""
    seen = set()
    for resource in resources.resources:
        # Events are served by two groups.
        key = resource.kind if resource.kind == "Event" else (resource.group, resource.plural)
        if resource.namespaced and "list" in resource.verbs and key not in seen:
            seen.add(key)
            yield resource


def _objects(objects: Sequence[JSONObject]) -> list[str]:
    """Return a table of objects, and the newest ones as YAML."""
    newest = sorted(objects, key=_revision, reverse=True)
    lines = table((f"{one['kind'].lower()}/{one['metadata']['name']}", _state(one)) for one in objects[:MAX_OBJECTS])
    if len(objects) > MAX_OBJECTS:
        lines.append(f"... ({len(objects) - MAX_OBJECTS} more objects)")
    for obj in newest[:MAX_SHOWN]:
        lines += ["---", *to_yaml(obj, MAX_OBJECT_LINES).splitlines()]
    return lines


def _revision(obj: JSONObject) -> int:
    try:
        return int(obj["metadata"]["resourceVersion"])
    except (KeyError, ValueError):
        return 0


def _state(obj: JSONObject) -> str:
    """Return the phase, the conditions and the deletion of an object."""
    status = obj.get("status")
    parts = []
    if isinstance(status, dict):
        parts += [str(status["phase"])] if status.get("phase") else []
        for one in status.get("conditions") or ():
            if isinstance(one, dict):
                parts.append(f"{one.get('type')}={one.get('status')}")
    if obj["metadata"].get("deletionTimestamp"):
        parts.append("(is being deleted)")
    return " ".join(parts)


def activity_sections(activity: RecentActivity) -> list[Section]:
    """Return the log lines and the requests of a server."""
    found: list[Section] = []
    if activity.lines:
        found.append(("server log", last_lines(activity.lines)))
    if activity.requests:
        found.append((f"last {len(activity.requests)} requests", cut_lines(table(map(_request, activity.requests)))))
    return found


def namespaces_of(activity: RecentActivity) -> list[str]:
    """Return the namespaces that a report shows, the last written one first."""
    written = [one for one in activity.namespaces if one not in _SYSTEM]
    return written[::-1]


def _request(request: ServedRequest) -> tuple[str, ...]:
    at = datetime.fromtimestamp(request.time, UTC).strftime("%H:%M:%S.%f")[:-3]
    milliseconds = f"{request.duration * 1000:.1f}"
    return at, request.user or "-", request.verb, str(request.code or "-"), f"{milliseconds} ms", request.path


def last_lines(lines: Sequence[str]) -> list[str]:
    """Return the last lines of a log, with the queries and fragments of URLs removed, which may be tokens."""
    text = [_URL.sub(r"\1", line) for one in lines for line in one.splitlines()]
    shown = cut_lines(text[-MAX_LOG_LINES:], MAX_LOG_LINES)
    return shown if len(text) <= MAX_LOG_LINES else [f"... ({len(text) - MAX_LOG_LINES} earlier lines)", *shown]


def log_section(path: Path, offset: int) -> list[Section]:
    """
    Return the lines of a log file from an offset on.

    @param path: The file.
    @param offset: In bytes.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(offset, size - _MAX_LOG_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [("server log", last_lines(lines))] if lines else []

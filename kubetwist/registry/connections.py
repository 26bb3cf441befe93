"""
Subresources that lead to another process: a pod's logs and streams, the proxies of pods, services and nodes.

What is decided here is whether there is anything to lead to. Nothing leads on from here yet: where a node or endpoint
is there, the answer is that it can not be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from zope.interface import implementer

from ..api.errors import APIStatusError, Cause, invalid
from ..api.resource import GroupKind, JSONObject
from ..interfaces import IConnecter
from .kinds import ResourceInfo, SubresourceInfo
from .scope import RequestScope

if TYPE_CHECKING:
    from .stores import Stores

ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
#: What C{log} takes of its query as numbers, with the least each may be.
LOG_LIMITS = (("sinceSeconds", 1), ("tailLines", 0), ("limitBytes", 1))


@implementer(IConnecter)
class Connection:
    """One of these subresources."""

    def __init__(
        self, info: ResourceInfo, name: str, methods: Sequence[str], stores: Stores, *, subpaths: bool
    ) -> None:
        self.info = info
        self.name = name
        self.methods = methods
        self.subpaths = subpaths
        self._stores = stores

    async def connect(self, scope: RequestScope, name: str, path: str, request: Any) -> Any:
        """See L{IConnecter.connect}."""
        if self.name == "proxy":
            name = self._behind(name)
        if self.info.resource == "services":
            self._service(scope, name)
        store = self._stores.get(self.info.group, self.info.resource)
        obj = orjson.loads(store.existing(scope, name).item)
        if self.info.resource == "pods" and self.name != "proxy":
            query = {key: values[0] for key, values in request.query.items()}
            if self.name == "log":
                check_log_options(name, query)
            container = chosen_container(obj, query.get("container", ""))
            if not (obj.get("spec") or {}).get("nodeName"):
                if self.name == "log":
                    request.respond(200, b"", b"text/plain")
                    return
                raise APIStatusError.bad_request(f"pod {name} does not have a host assigned")
            raise APIStatusError.service_unavailable(f"the node of container {container} can not be reached")
        raise APIStatusError.service_unavailable(f'{self.info.resource} "{name}" can not be reached')

    def _behind(self, text: str) -> str:
        """
        The name in C{name}, C{name:port} or C{scheme:name:port}.

        @raise APIStatusError: It is none of these (400).
        """
        parts = text.split(":")
        scheme, name = parts[0] if len(parts) == 3 else "", parts[len(parts) // 3]
        if len(parts) > 3 or scheme not in ("", "http", "https") or not name:
            raise APIStatusError.bad_request(f'invalid {self.info.singular} request "{text}"')
        return name

    def _service(self, scope: RequestScope, name: str) -> None:
        endpoints = self._stores.lookup("", "endpoints", scope.namespace, name)
        if endpoints is None:
            raise self._stores.get("", "services").not_found(name)
        if not any(subset.get("addresses") for subset in endpoints.get("subsets") or []):
            raise APIStatusError.service_unavailable(f'no endpoints available for service "{name}"')


def chosen_container(pod: JSONObject, name: str) -> str:
    """
    The container that is meant.

    @raise APIStatusError: There is none of that name, or it has to be chosen among several (400).
    """
    spec = pod.get("spec") or {}
    names = [one["name"] for one in spec.get("containers") or []]
    others = [one["name"] for field in ("initContainers", "ephemeralContainers") for one in spec.get(field) or []]
    pod_name = pod["metadata"]["name"]
    if name:
        if name not in (*names, *others):
            raise APIStatusError.bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(names) == 1:
        return str(names[0])
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if default in names:
        return str(default)
    text = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
    init = [one["name"] for one in spec.get("initContainers") or []]
    if init:
        text += f" or one of the init containers: [{' '.join(init)}]"
    raise APIStatusError.bad_request(text)


def check_log_options(name: str, query: dict[str, str]) -> None:
    """
    Refuse impossible limits.

    @raise APIStatusError: One is no number (400) or too small (422).
    """
    causes: list[Cause] = []
    for field, least in LOG_LIMITS:
        text = query.get(field)
        if text is None:
            continue
        try:
            number = int(text)
        except ValueError:
            shown = orjson.dumps(text).decode()
            raise APIStatusError.bad_request(f"strconv.ParseInt: parsing {shown}: invalid syntax") from None
        if number < least:
            rule = "must be greater than or equal to 0" if least == 0 else "must be greater than 0"
            causes.append(invalid(field, number, rule))
    if causes:
        raise APIStatusError.invalid(GroupKind("", "PodLogOptions"), name, causes)


def connection_storage(info: ResourceInfo, subresource: SubresourceInfo, stores: Stores, context: Any) -> Any:
    """The storage object of such a subresource."""
    if subresource.name == "proxy":
        return Connection(info, "proxy", ALL_METHODS, stores, subpaths=True)
    methods = ("GET",) if subresource.name == "log" else ("GET", "POST")
    return Connection(info, subresource.name, methods, stores, subpaths=False)

"""
What tests request of simulated nodes: C{fail_probe}, C{pass_probe} and C{set_metric} of the servers.

A request is an annotation of the pod, or a ConfigMap, so that it works with servers in all processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..api.jsontypes import JSONObject
from ._waiting import run_in_thread

if TYPE_CHECKING:
    from ._connection import Connection

_MERGE_PATCH: Final = "application/merge-patch+json"


class SimulationError(Exception):
    """The server refused a request for a simulated pod; the text is its message."""


class SimulationMixin:
    """Adds methods for simulated pods to servers whose methods block."""

    if TYPE_CHECKING:  # the servers have it

        @property
        def connection(self) -> Connection:
            """Return the connection data."""
            raise NotImplementedError

    def fail_probe(self, pod: object, probe: str, *, container: str = "", namespace: str = "") -> None:
        """
        Let a probe of a simulated pod fail until L{pass_probe}.

        @param pod: The name of the pod, or the pod.
        @param probe: C{"liveness"}, C{"readiness"} or C{"startup"}.
        @param container: The container; by default all that have the probe.
        @param namespace: The namespace; by default the one of C{pod}, or C{"default"}.
        @raise ValueError: The pod has no such probe.
        @raise SimulationError: The server refuses, since the pod does not exist for example.
        """
        set_probe(self.connection, pod, probe, container, namespace, failing=True)

    def pass_probe(self, pod: object, probe: str, *, container: str = "", namespace: str = "") -> None:
        """
        Let a probe of a simulated pod succeed again.

        @param pod: The name of the pod, or the pod.
        @param probe: As for L{fail_probe}.
        @param container: The container, if L{fail_probe} was called with it.
        @param namespace: The namespace; by default the one of C{pod}, or C{"default"}.
        @raise ValueError: The pod has no such probe.
        @raise SimulationError: The server refuses.
        """
        set_probe(self.connection, pod, probe, container, namespace, failing=False)

    def set_metric(
        self,
        metric: str,
        value: str | float | Decimal | None,
        *,
        object: object = None,
        pods: str | None = None,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """
        Set a custom metric of an object or of pods, or otherwise an external metric, until C{reset}.

        @param metric: The name of the metric.
        @param value: A quantity, such as C{250} or C{"500m"}; L{None} removes the metric.
        @param object: The object that is described: C{"services/web"}, C{"pods/web-0"}, or an object of any client
            library.
        @param pods: A label selector of the pods that are described, which all have this value; C{""} for all pods.
        @param namespace: The namespace; by default the one of C{object}, or C{"default"}. An external metric is
            without it for all namespaces.
        @param labels: The labels of the metric, which C{metric.selector} of an autoscaler selects.
        @raise ValueError: An argument is invalid.
        @raise LookupError: The server does not have the resource of C{object}.
        @raise SimulationError: The server refuses.
        """
        from ._metrics import set_metric

        set_metric(self.connection, metric, value, object, pods, namespace, labels or {})


class AsyncSimulationMixin:
    """Adds methods for simulated pods to servers on the reactor, where they are awaited."""

    _reactor: Any

    if TYPE_CHECKING:  # the servers have it

        @property
        def connection(self) -> Connection:
            """Return the connection data."""
            raise NotImplementedError

    async def _simulate(self, method: str, *arguments: Any, **more: Any) -> Any:
        """Call a method of L{SimulationMixin} in another thread."""
        handle = _Handle(self.connection)
        return await run_in_thread(self._reactor, lambda: getattr(handle, method)(*arguments, **more), lambda: None)

    async def fail_probe(self, pod: object, probe: str, *, container: str = "", namespace: str = "") -> None:
        """As L{SimulationMixin.fail_probe}."""
        await self._simulate("fail_probe", pod, probe, container=container, namespace=namespace)

    async def pass_probe(self, pod: object, probe: str, *, container: str = "", namespace: str = "") -> None:
        """As L{SimulationMixin.pass_probe}."""
        await self._simulate("pass_probe", pod, probe, container=container, namespace=namespace)

    async def set_metric(self, metric: str, value: str | float | Decimal | None, **target: Any) -> None:
        """As L{SimulationMixin.set_metric}."""
        await self._simulate("set_metric", metric, value, **target)


class _Handle(SimulationMixin):
    """The methods of L{SimulationMixin} over a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def connection(self) -> Connection:
        """Return the connection data."""
        return self._connection


def set_probe(
    connection: Connection, pod: object, probe: str, container: str, namespace: str, *, failing: bool
) -> None:
    """
    Add a probe to the failing ones of a pod, or remove it. See L{SimulationMixin.fail_probe}.

    @param connection: The connection of the admin.
    @param pod: The name of the pod, or the pod.
    @param probe: The kind of the probe.
    @param container: The container; C{""} for all.
    @param namespace: The namespace; C{""} for the default.
    @param failing: Whether the probe fails.
    """
    from ..controllers.fakeimages import PROBES
    from ..controllers.fakekubelet.containerbehavior import FAIL_PROBES

    if probe not in PROBES:
        raise ValueError(f"unknown probe {probe!r}: must be one of {', '.join(PROBES)}")
    path = _pod_path(connection, pod, namespace)
    found = send(connection, "GET", path)
    _check_probe(found, probe, container)
    name = f"{FAIL_PROBES}.{container}" if container else FAIL_PROBES
    present = (found["metadata"].get("annotations") or {}).get(name) or ""
    kinds = [one for one in (part.strip() for part in present.split(",")) if one and one != probe]
    if failing:
        kinds.append(probe)
    body = {"metadata": {"annotations": {name: ",".join(kinds) or None}}}
    send(connection, "PATCH", path, body, _MERGE_PATCH)


def _check_probe(pod: JSONObject, probe: str, container: str) -> None:
    """
    Check that containers of a pod have a probe.

    @raise ValueError: They have not.
    """
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    if container:
        containers = [one for one in containers if one["name"] == container]
        if not containers:
            raise ValueError(f"pod {name!r} has no container {container!r}")
    if not any(f"{probe}Probe" in one for one in containers):
        where = f"container {container!r} of pod {name!r}" if container else f"pod {name!r}"
        raise ValueError(f"{where} has no {probe} probe")


def _pod_path(connection: Connection, pod: object, namespace: str) -> str:
    """Return the path of a pod that is named, or given as an object of any client library."""
    from ._references import object_of

    name = pod
    found = object_of(pod)
    if found is not None:
        name = found["metadata"]["name"]
        namespace = namespace or found["metadata"].get("namespace") or ""
    if not isinstance(name, str):
        raise TypeError(f"{pod!r} is no pod: use its name, or an object with metadata")
    name = name.removeprefix("pods/").removeprefix("pod/")
    return f"/api/v1/namespaces/{quote(namespace or connection.namespace or 'default')}/pods/{quote(name)}"


def send(
    connection: Connection, method: str, path: str, body: Any = None, content_type: str = "application/json"
) -> JSONObject:
    """
    Send a request, and return the object in the response.

    @raise SimulationError: The server refuses it.
    """
    code, content = connection.request(method, path, body, content_type=content_type)
    if not 200 <= code < 300:
        message = content.get("message") if isinstance(content, dict) else str(content)
        raise SimulationError(f"{message} ({code})")
    return content  # type: ignore[no-any-return] # decoded JSON

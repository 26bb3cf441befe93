"""
The HTTP server of simulated kubelets: logs, commands and forwarded ports of the pods of all simulated nodes.

It keeps files of containers only. Everything else follows from the stored pods, the images, and the time.

@see: kubernetes, C{pkg/kubelet/server/server.go}.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import orjson

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ...api.podspecs import containers
from ...api.resource import JSONObject
from ...http.request import KubeRequest
from ...registry.stores import Stores
from ...streams.kubeletserver import Session, serve_command, serve_port_forward
from ..fakeimages import FakeImages, ImageBehavior, PortAnswer
from .commands import CommandRunner
from .containerlogs import ContainerLog, LogRequest, NoLog, Run, container_status, find_run
from .filesystem import FileSystem
from .ports import connect_stream
from .programs import Container

#: Maximum number of containers whose files are kept; the least recently used go first.
MAX_CONTAINERS: Final = 1000
#: Maximum number of lines of a log that are sent at once.
_LINES: Final = 500
#: Seconds between two checks of the state of a container whose log is followed, or which runs a command.
_FOLLOW_INTERVAL: Final = 0.5
#: The exit code of a process that was killed.
_KILLED: Final = 137


class SimulatedKubelet:
    """The kubelet of all simulated nodes."""

    _log = Logger()

    def __init__(self, reactor: IReactorTime, stores: Stores, images: FakeImages) -> None:
        """
        @param reactor: The server's reactor and clock.
        @param stores: The stores of the server.
        @param images: The behavior of images.
        """
        self._reactor = reactor
        self._stores = stores
        self._images = images
        self._files: OrderedDict[tuple[str, str, int], FileSystem] = OrderedDict()

    def handle(self, request: KubeRequest, node: str) -> None:
        """
        Handle a request to the kubelet of a node.

        @param request: The request.
        @param node: The name of the node.
        """
        parts = request.path.decode("utf-8", "replace").strip("/").split("/")
        match parts:
            case ["healthz"]:
                request.respond_text(200, "ok")
            case ["pods"]:
                self._list_pods(request, node)
            case ["containerLogs", namespace, name, container]:
                self._with_container(request, namespace, name, container, self._send_log)
            case ["exec", namespace, name, container]:
                self._with_container(request, namespace, name, container, self._exec)
            case ["attach", namespace, name, container]:
                self._with_container(request, namespace, name, container, self._attach)
            case ["portForward", namespace, name]:
                self._forward(request, namespace, name)
            case _:
                request.respond_text(404, "404 page not found\n")

    def _list_pods(self, request: KubeRequest, node: str) -> None:
        """Send the pods of a node."""
        pods = [pod for pod in self._stores.list_decoded("", "pods") if (pod.get("spec") or {}).get("nodeName") == node]
        body = orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods})
        request.respond(200, body, b"application/json")

    def _with_container(self, request: KubeRequest, namespace: str, name: str, container: str, answer: Any) -> None:
        pod = self._stores.get_decoded("", "pods", namespace, name)
        if pod is None:
            request.respond_text(404, f'pod "{name}" does not exist\n')
            return
        spec = next((one for one, _, _ in containers(pod["spec"]) if one["name"] == container), None)
        if spec is None:
            request.respond_text(404, f'container "{container}" not found in pod "{name}"\n')
            return
        answer(request, pod, spec)

    def _behavior(self, spec: JSONObject) -> ImageBehavior:
        return self._images.find(spec.get("image") or "")

    # --- logs

    def _send_log(self, request: KubeRequest, pod: JSONObject, spec: JSONObject) -> None:
        now = self._reactor.seconds()
        try:
            options = LogRequest.parse(request.query, now)
            run = find_run(pod, spec["name"], previous=options.previous)
        except (NoLog, ValueError) as error:
            request.respond_text(400, str(error))
            return
        request.setHeader(b"Content-Type", b"text/plain")
        # A client that follows a log needs the response head at once.
        request.write(b"")
        sender = _LogSender(self, request, pod, spec, run, options)
        request.notifyFinish().addErrback(lambda failure: sender.stopProducing())
        request.registerProducer(sender, True)
        sender.resumeProducing()

    def current_log(self, pod: JSONObject, spec: JSONObject, run: Run) -> tuple[ContainerLog, bool]:
        """
        Return the log of a run, and whether it may get more lines.

        @param pod: The pod, as at the start of a request.
        @param spec: The container.
        @param run: The run.
        """
        meta = pod["metadata"]
        current = self._stores.get_decoded("", "pods", meta["namespace"], meta["name"])
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            run = Run(run.number, run.started, self._reactor.seconds() if run.finished is None else run.finished)
        elif run.finished is None:
            for previous in (False, True):
                try:
                    found = find_run(current, spec["name"], previous=previous)
                except NoLog:
                    continue
                if found.number == run.number:
                    run = found
                    break
            else:
                run = Run(run.number, run.started, self._reactor.seconds())
        return ContainerLog(self._behavior(spec).logs, run), run.finished is None

    def seconds(self) -> float:
        """Return the time of the server."""
        return self._reactor.seconds()

    def call_later(self, seconds: float, call: Any) -> IDelayedCall:
        """Schedule a call."""
        return self._reactor.callLater(seconds, call)

    # --- commands

    def _exec(self, request: KubeRequest, pod: JSONObject, spec: JSONObject) -> None:
        name = spec["name"]
        status = container_status(pod, name)
        if "running" not in (status.get("state") or {}):
            request.respond_text(500, f'container not found ("{name}")')
            return
        behavior = self._behavior(spec)
        key = (pod["metadata"]["uid"], name, status.get("restartCount") or 0)
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOSTNAME": pod["metadata"]["name"],
            **{one["name"]: one.get("value") or "" for one in spec.get("env") or () if "valueFrom" not in one},
            "HOME": "/root",
        }
        container = Container(
            self._container_files(key, behavior),
            (pod["spec"].get("hostname") or pod["metadata"]["name"]),
            environment,
            self._reactor.seconds,
        )
        runner = CommandRunner(self._reactor, container, behavior.exec, pod, name)
        command = request.query.get("command") or []

        def start(session: Session) -> None:
            runner.start(session, command)
            self._end_with_container(session, key, pod["metadata"]["namespace"], pod["metadata"]["name"])

        serve_command(request, start, reactor=self._reactor)

    def _end_with_container(self, session: Session, key: tuple[str, str, int], namespace: str, name: str) -> None:
        """
        End a command when its container does, as by SIGKILL.

        @param key: The pod's uid, the container's name, and how often it had restarted.
        """
        if session.ended:
            return
        pod = self._stores.get_decoded("", "pods", namespace, name)
        status = {} if pod is None or pod["metadata"]["uid"] != key[0] else container_status(pod, key[1])
        if "running" in (status.get("state") or {}) and (status.get("restartCount") or 0) == key[2]:
            self._reactor.callLater(_FOLLOW_INTERVAL, self._end_with_container, session, key, namespace, name)
        else:
            session.exit(_KILLED)

    def _container_files(self, key: tuple[str, str, int], behavior: ImageBehavior) -> FileSystem:
        files = self._files.get(key)
        if files is None:
            files = self._files[key] = FileSystem(behavior.files)
            if len(self._files) > MAX_CONTAINERS:
                self._files.popitem(last=False)
        self._files.move_to_end(key)
        return files

    def _attach(self, request: KubeRequest, pod: JSONObject, spec: JSONObject) -> None:
        """Send the lines that a container writes from now on, until it terminates."""
        try:
            run = find_run(pod, spec["name"], previous=False)
        except NoLog:
            run = Run(0, 0.0, 0.0)
        if run.finished is not None:
            request.respond_text(500, f'container not found ("{spec["name"]}")')
            return
        serve_command(request, lambda session: _Attachment(self, session, pod, spec, run).send(), reactor=self._reactor)

    def exit_code(self, pod: JSONObject, container: str) -> int:
        """Return the exit code of the last finished run of a container; 0 without one."""
        meta = pod["metadata"]
        current = self._stores.get_decoded("", "pods", meta["namespace"], meta["name"]) or {}
        status = container_status(current, container)
        for state in (status.get("state") or {}, status.get("lastState") or {}):
            if "terminated" in state:
                return int(state["terminated"].get("exitCode") or 0)
        return 0

    # --- ports

    def _forward(self, request: KubeRequest, namespace: str, name: str) -> None:
        pod = self._stores.get_decoded("", "pods", namespace, name)
        if pod is None or (pod.get("status") or {}).get("phase") != "Running":
            request.respond_text(404, f'pod "{name}" does not exist or is not running\n')
            return
        uid = pod["metadata"]["uid"]

        def dial(port: int, write: Any, end: Any) -> Any:
            answer = self.port_answer(pod, port)
            if answer is None:
                raise ConnectionRefusedError(
                    f"error forwarding port {port} to pod {uid}, uid : failed to execute portforward in network"
                    f" namespace: failed to connect to localhost:{port} inside namespace: dial tcp4"
                    f" 127.0.0.1:{port}: connect: connection refused"
                )
            return connect_stream(self._reactor, answer, write, end)

        serve_port_forward(request, dial, reactor=self._reactor)

    def port_answer(self, pod: JSONObject, port: int) -> PortAnswer | None:
        """Return what answers on a port of a running pod; L{None} if nothing listens."""
        for spec, _, _ in containers(pod["spec"]):
            if "running" in (container_status(pod, spec["name"]).get("state") or {}):
                answer = self._behavior(spec).ports.get(port)
                if answer is not None:
                    return answer
        return None


@implementer(IPushProducer)
class _LogSender:
    """Sends the lines of a log as fast as its client reads them, and new lines if the log is followed."""

    def __init__(
        self,
        kubelet: SimulatedKubelet,
        request: KubeRequest,
        pod: JSONObject,
        spec: JSONObject,
        run: Run,
        options: LogRequest,
    ) -> None:
        self._kubelet = kubelet
        self._request = request
        self._pod = pod
        self._spec = spec
        self._run = run
        self._options = options
        self._limit = options.limit
        self._paused = True
        self._stopped = False
        self._call: IDelayedCall | None = None
        log, _ = kubelet.current_log(pod, spec, run)
        self._next = log.first(options, kubelet.seconds())

    def pauseProducing(self) -> None:
        """As L{IPushProducer<twisted.internet.interfaces.IPushProducer>}."""
        self._paused = True

    def resumeProducing(self) -> None:
        """As L{IPushProducer<twisted.internet.interfaces.IPushProducer>}."""
        self._paused = False
        if self._call is None and not self._stopped:
            self._call = self._kubelet.call_later(0, self._send)

    def stopProducing(self) -> None:
        """As L{IPushProducer<twisted.internet.interfaces.IPushProducer>}: the client has disconnected."""
        self._stopped = True
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _send(self) -> None:
        self._call = None
        if self._paused or self._stopped:
            return
        kubelet, now = self._kubelet, self._kubelet.seconds()
        log, continues = kubelet.current_log(self._pod, self._spec, self._run)
        end = min(log.count(now), self._next + _LINES)
        if end > self._next:
            text = b"".join(log.encoded(self._next, end, timestamps=self._options.timestamps))
            self._next = end
            if self._limit is not None:
                text = text[: self._limit]
                self._limit -= len(text)
            self._request.write(text)
        if self._limit == 0:
            self._end()
        elif log.count(now) > self._next:
            self._wait(0)
        elif self._options.follow and continues:
            wait = log.next_wait(self._next, now)
            self._wait(_FOLLOW_INTERVAL if wait is None else min(max(wait, 0.001), _FOLLOW_INTERVAL))
        else:
            self._end()

    def _wait(self, seconds: float) -> None:
        if not (self._paused or self._stopped) and self._call is None:
            self._call = self._kubelet.call_later(seconds, self._send)

    def _end(self) -> None:
        self._stopped = True
        self._request.unregisterProducer()
        self._request.finish()


class _Attachment:
    """Sends new lines of a container's log to an attached client."""

    def __init__(
        self, kubelet: SimulatedKubelet, session: Session, pod: JSONObject, spec: JSONObject, run: Run
    ) -> None:
        self._kubelet = kubelet
        self._session = session
        self._pod = pod
        self._spec = spec
        self._run = run
        log, _ = kubelet.current_log(pod, spec, run)
        self._next = log.count(kubelet.seconds())
        self._paused = False
        session.on_backpressure = self._on_backpressure

    def _on_backpressure(self, write_paused: bool) -> None:
        self._paused = write_paused

    def send(self) -> None:
        """Send the lines that are due, and schedule the next call."""
        kubelet, session = self._kubelet, self._session
        if session.ended:
            return
        log, continues = kubelet.current_log(self._pod, self._spec, self._run)
        if not self._paused:
            end = min(log.count(kubelet.seconds()), self._next + _LINES)
            text = b"".join(log.encoded(self._next, end, timestamps=False))
            self._next = max(self._next, end)
            if text:
                session.write(text.replace(b"\n", b"\r\n") if session.command.tty else text)
        if continues:
            kubelet.call_later(_FOLLOW_INTERVAL, self.send)
        else:
            session.exit(kubelet.exit_code(self._pod, self._spec["name"]))

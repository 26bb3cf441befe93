"""The server in the process of the tests: on a running reactor, or on a reactor in a thread."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..api.garbage import CollectionPause
from ..api.jsontypes import JSONObject
from ._activity import ActivityMixin, BlockingActivityMixin
from ._connection import (
    Connection,
    ServerHandle,
    write_token_file,
)
from ._credentials import write_user_key
from ._eventually import AsyncEventuallyMixin, BlockingChangesMixin, EventuallyMixin
from ._reactorthread import (
    running_reactor,
    wait_for,
)
from ._simulation import AsyncSimulationMixin, SimulationMixin
from ._waiting import AsyncWaitingMixin, WaitingMixin
from .expectations import RequestExpectations

if TYPE_CHECKING:
    from ..interfaces import IServerReactor
    from ..server.service import KubeAPIService
    from ._clock import ServerClock
    from .manifests import (
        Objects,
        Sources,
    )
    from .requests import (
        Fault,
        Interceptor,
        RequestLog,
    )
    from .state import (
        ServerState,
        Snapshot,
    )

Result = TypeVar("Result")
#: Default number of requests that a log keeps.
MAX_LOGGED_REQUESTS = 10_000

#: Flags that configure the storage, with which objects are not kept in memory.
_STORAGE_FLAGS = ("--storage-backend", "--etcd-servers")


class InProcessServer(
    AsyncWaitingMixin, AsyncEventuallyMixin, AsyncSimulationMixin, RequestExpectations, ActivityMixin, ServerHandle
):
    """
    A server on a running reactor, with an empty store in memory.

    For code that lives on the reactor too, such as trial tests and pytest-twisted: only C{request} blocks, which must
    not be called in the reactor's thread. Call the other methods there.
    """

    def __init__(
        self,
        *arguments: str,
        data_dir: Path | None = None,
        token_auth_file: Path | None = None,
        controllers: str | None = None,
        load: Sources = (),
        reactor: Any = None,
        images: Mapping[str, Any] | None = None,
    ) -> None:
        """
        @param arguments: Further flags of C{twist kubeapi}; they override the defaults.
        @param data_dir: An existing directory to use and keep; a temporary one by default.
        @param token_auth_file: Replaces the default file with a single administrator's token.
        @param controllers: As C{--controllers}: C{""} for none; L{None} for the server's default.
        @param load: What L{start} loads: paths, glob patterns and objects. C{reset} returns to the state afterwards.
        @param reactor: L{None} for the global one.
        @param images: Behavior of images on simulated nodes, as in the file of C{--fake-images}; values of C{exec} may
            be functions.
        """
        self._arguments = arguments if controllers is None else (*arguments, f"--controllers={controllers}")
        self._data_dir = data_dir
        self._token_auth_file = token_auth_file
        self._load = load
        self._reactor = reactor
        self._images = images
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._service: KubeAPIService | None = None
        self._clock: ServerClock | None = None
        self._interceptor: Interceptor | None = None
        self._state: ServerState | None = None

    async def start(self) -> InProcessServer:
        """
        Start the server, and return when it is ready and everything is loaded.

        @raise kubetwist.testing.manifests.LoadError: A file cannot be read, or the server rejected an object.
        """
        pause = CollectionPause()
        try:
            return await self._start()
        finally:
            pause.end()

    async def _start(self) -> InProcessServer:
        from ..server.credentials.keygeneration import begin_key
        from ..server.service import KubeAPIService
        from ..tap import Options
        from ._clock import clock_of

        if self._reactor is None:
            from twisted.internet import reactor

            self._reactor = reactor
        self._temporary = tempfile.TemporaryDirectory(prefix="kubetwist-")
        folder = Path(self._temporary.name)
        token, token_auth_file = "", self._token_auth_file
        if token_auth_file is None:
            token, token_auth_file = write_token_file(folder)
        user_key, user_key_flag = write_user_key(folder)
        data_dir = self._data_dir or folder / "data"
        options = Options()
        options.parseOptions(
            [
                f"--data-dir={data_dir}",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                *([] if any(one.startswith(_STORAGE_FLAGS) for one in self._arguments) else ["--in-memory"]),
                f"--token-auth-file={token_auth_file}",
                user_key_flag,
                *self._arguments,
            ]
        )
        self._clock = clock_of(self._reactor)
        try:
            service = self._service = KubeAPIService(options, cast("IServerReactor", self._clock))
            service.startService()
            await service.ready
            server = service.server
            assert server is not None, "the service is ready"
            # Clients use real time, regardless of the server's clock.
            server.site.connections.now = self._reactor.seconds
            from .state import ServerState

            if self._images is not None:
                self.set_images(self._images)
            self._state = ServerState(server, self._clock)
            credentials = server.config.credentials
            self._connection = Connection(
                url=server.url,
                kubeconfig=data_dir / "admin.kubeconfig",
                token=token,
                ca=credentials.ca_bundle.decode(),
                client_certificate=credentials.admin.certificate.decode(),
                client_key=credentials.admin.key.decode(),
                folder=folder,
                user_key=user_key,
            )
            if self._load:
                await self._load_sources()
            else:
                await self._state.snapshot_initial()
        except BaseException:
            await self.stop()
            raise
        # The start of a further server in this process does not wait for its key.
        begin_key()
        return self

    async def _load_sources(self) -> None:
        from twisted.internet.threads import deferToThreadPool

        from ._loading import load_sources

        pool = self._reactor.getThreadPool()
        await deferToThreadPool(self._reactor, pool, load_sources, self.connection, self._load)
        await self.set_baseline()

    async def stop(self) -> None:
        """Stop the server: open requests are finished, watches end, files are removed. Idempotent."""
        service, self._service = self._service, None
        temporary, self._temporary = self._temporary, None
        clock, self._clock = self._clock, None
        self._state = None
        try:
            self.clear_faults()
            self._stop_activity()
            await self._stop_changes()
            self._interceptor = None
            if clock is not None:
                clock.restore_real_time()
            if service is not None and service.running:
                await service.stopService()
        finally:
            if temporary is not None:
                temporary.cleanup()

    async def __aenter__(self) -> InProcessServer:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # --- state

    @property
    def _states(self) -> ServerState:
        assert self._state is not None, "the server does not run"
        return self._state

    async def reset(self) -> None:
        """
        Restore the baseline: the state after the start or after L{set_baseline}. Revisions keep growing.

        Faults and logs are removed, the clock shows real time, watches end, all writes of tests are undone, including
        custom resources and their paths, and older revisions are C{410 Expired}.
        """
        self.clear_faults()
        self.reset_clock()
        if self._images is not None:
            self.set_images(self._images)
        await self._states.reset()

    async def set_baseline(self) -> None:
        """Wait until controllers are idle, and make this state the one that C{reset} restores."""
        await self._states.set_baseline()

    async def snapshot(self) -> Snapshot:
        """Return a snapshot of all stored objects."""
        return await self._states.snapshot()

    async def restore(self, snapshot: Snapshot) -> None:
        """Restore all stored objects; watches continue, and show the changes."""
        await self._states.restore_until_stable(snapshot)

    async def compact(self) -> int:
        """Compact the storage: lists and watches from revisions before the returned one are C{410 Expired}."""
        return await self._states.compact()

    async def settle(self, patience: float = 5.0) -> bool:
        """Wait until controllers are idle; return whether that happened within the timeout in seconds."""
        return await self._states.settle(patience)

    async def reload_files(self) -> None:
        """Read changed files of the flags now; return when they are in use, or refused and logged."""
        assert self._service is not None and self._service.server is not None, "the server does not run"
        await self._service.server.config.files.poll_now()

    def set_images(self, images: Mapping[str, Any]) -> None:
        """
        Replace the behavior of images on simulated nodes. C{reset} restores the initial one.

        @param images: The behavior by image name, as in the file of C{--fake-images}.
        @raise kubetwist.controllers.fakeimages.InvalidImages: It is invalid.
        """
        from ..controllers.fakeimages import parse_images

        assert self._service is not None and self._service.server is not None, "the server does not run"
        self._service.server.config.images.replace(parse_images(images))

    async def load(self, source: Objects, namespace: str = "default") -> list[JSONObject]:
        """
        Create objects from manifests, such as the output of C{kubectl get -o yaml}; existing ones are updated.

        @param source: Text, a path or glob pattern as a L{Path}, or a list of paths and objects.
        @param namespace: The default for objects without one.
        @return: The objects as stored by the server.
        @raise kubetwist.testing.manifests.LoadError: A file cannot be read, or the server rejected an object.
        """
        from twisted.internet.threads import deferToThreadPool

        from ._loading import load_objects

        pool = self._reactor.getThreadPool()
        return await deferToThreadPool(self._reactor, pool, load_objects, self.connection, source, namespace)

    async def as_service_account(self, namespace: str, name: str, **more: Any) -> Connection:
        """As L{Connection.as_service_account}, which would block the reactor."""
        from twisted.internet.threads import deferToThreadPool

        pool = self._reactor.getThreadPool()
        make = self.connection.as_service_account
        connection: Connection = await deferToThreadPool(self._reactor, pool, make, namespace, name, **more)
        return connection

    # --- requests

    @property
    def _requests(self) -> Interceptor:
        if self._interceptor is None:
            assert self._service is not None and self._service.server is not None, "the server does not run"
            from .requests import Interceptor

            self._interceptor = Interceptor(self._service.server.site, self._reactor)
        return self._interceptor

    def inject(
        self,
        code: int | None = None,
        *,
        times: int | None = None,
        delay: float = 0.0,
        retry_after: int | None = None,
        reason: str | None = None,
        message: str | None = None,
        hang_up: bool = False,
        **selection: Any,
    ) -> Fault:
        """
        Inject a fault: answer requests with an error, delay them, or close their connections.

        @param code: The status of the response; L{None} for the server's response after C{delay} seconds.
        @param times: Number of requests; L{None} for all.
        @param delay: Seconds before the response.
        @param retry_after: The C{Retry-After} header in seconds; 1 by default for 429.
        @param reason: The reason in the Status; by default the usual reason of the code.
        @param message: The message in the Status.
        @param hang_up: Close the connection instead of sending a response.
        @param selection: Which requests: C{verb}, C{resource}, C{subresource}, C{namespace}, C{name}, C{group},
            C{path}, and C{where}, called with a L{kubetwist.testing.requests.RecordedRequest}.
        @return: A context manager; C{remove()} ends it, C{hits} counts the affected requests.
        """
        from .requests import (
            RequestMatcher,
            ResponseFault,
        )

        fault = ResponseFault(
            self._requests,
            RequestMatcher(**selection),
            times,
            code=code,
            delay=delay,
            retry_after=retry_after,
            reason=reason,
            message=message,
            hang_up=hang_up,
        )
        self._requests.add(fault)
        return fault

    def disturb_watches(
        self,
        *,
        times: int | None = None,
        delay: float = 0.0,
        duplicate: bool = False,
        drop: int = 0,
        break_after: int | None = None,
        **selection: Any,
    ) -> Fault:
        """
        Disturb the watches that begin from now on.

        @param delay: Seconds by which each event is delayed.
        @param duplicate: Whether each event is sent twice.
        @param drop: Number of events at the start that are lost.
        @param break_after: Number of events after which the connection breaks.
        @param times: Number of watches; L{None} for all.
        @param selection: As for L{inject}.
        """
        from .requests import (
            RequestMatcher,
            WatchFault,
        )

        matcher = RequestMatcher(**{"verb": "watch", **selection})
        fault = WatchFault(
            self._requests, matcher, times, delay=delay, duplicate=duplicate, drop=drop, break_after=break_after
        )
        self._requests.add(fault)
        return fault

    def end_watches(self, code: int | None = None, *, hang_up: bool = False, **selection: Any) -> int:
        """
        End open watches.

        @param code: The code of an C{ERROR} event; after 410 clients list again. L{None} for a normal end.
        @param hang_up: Abort the connection instead.
        @param selection: As for L{inject}.
        @return: The number of ended watches.
        """
        from ..api.errors import APIStatusError
        from .requests import RequestMatcher

        error: APIStatusError | None = None
        if code == 410:
            error = APIStatusError.expired("too old resource version: a test has this watch expired")
        elif code is not None:
            error = APIStatusError(code, "InternalError", "a test has this watch end")
        watches = self._requests.open_watches(RequestMatcher(**selection))
        for request, end in watches:
            if hang_up:
                request.abort()
            else:
                end(error)
        return len(watches)

    def record_requests(self, limit: int = MAX_LOGGED_REQUESTS) -> RequestLog:
        """
        Record requests from now on.

        @param limit: Maximum number; the oldest are dropped.
        @return: A context manager, with C{requests}, C{matching(...)}, C{assert_requested(...)}, C{clear()}, C{stop()}.
        """
        return self._requests.log(limit)

    def clear_faults(self) -> None:
        """Remove all faults, and stop all logs."""
        if self._interceptor is not None:
            self._interceptor.clear()

    # --- time

    @property
    def _time(self) -> ServerClock:
        assert self._clock is not None, "the server does not run"
        return self._clock

    @property
    def now(self) -> float:
        """Return the server's time in POSIX seconds."""
        return self._time.seconds()

    def freeze_time(self, at: float | None = None) -> None:
        """
        Stop the clock of the servers of this process, now or at a POSIX time.

        Delays of more than a second do not end before C{advance_time} or C{resume_time}.
        """
        self._time.freeze(at)

    def advance_time(self, seconds: float) -> None:
        """Advance the clock, stopped or running, and run the calls that are due."""
        self._time.advance(seconds)

    def resume_time(self) -> None:
        """Let the clock run, starting at its current time."""
        self._time.resume()

    def reset_clock(self) -> None:
        """Return the clock to real time."""
        self._time.restore_real_time()


class KubeAPI(
    WaitingMixin,
    EventuallyMixin,
    SimulationMixin,
    RequestExpectations,
    BlockingActivityMixin,
    BlockingChangesMixin,
    ServerHandle,
):
    """
    A server in this process for tests that do not use Twisted: the reactor runs in a thread.

    A context manager; or C{start()} and C{stop()}. Takes the same arguments as L{InProcessServer}, and has the same
    methods, which block, and may be called from any thread except the reactor's.
    """

    def __init__(
        self,
        *arguments: str,
        data_dir: Path | None = None,
        token_auth_file: Path | None = None,
        controllers: str | None = None,
        load: Sources = (),
        images: Mapping[str, Any] | None = None,
    ) -> None:
        self._server = InProcessServer(
            *arguments,
            data_dir=data_dir,
            token_auth_file=token_auth_file,
            controllers=controllers,
            load=load,
            images=images,
        )
        self._reactor: Any = None

    def start(self) -> KubeAPI:
        """Start the server, and wait until it is ready."""
        # The first use of the reactor imports half of Twisted.
        pause = CollectionPause()
        try:
            self._reactor = running_reactor()
            wait_for(self._reactor, self._server.start)
        finally:
            pause.end()
        self._connection = self._server.connection
        return self

    def stop(self) -> None:
        """Stop the server, and wait for its end. Idempotent."""
        if self._reactor is not None:
            wait_for(self._reactor, self._server.stop)

    def __enter__(self) -> KubeAPI:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _wait(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        assert self._reactor is not None, "the server was not started"
        return wait_for(running_reactor(), make)

    def _do(self, function: Callable[..., Result], *arguments: Any, **more: Any) -> Result:
        async def done() -> Result:
            return function(*arguments, **more)

        return self._wait(done)

    def reset(self) -> None:
        """As L{InProcessServer.reset}."""
        self._wait(self._server.reset)

    def set_baseline(self) -> None:
        """As L{InProcessServer.set_baseline}."""
        self._wait(self._server.set_baseline)

    def snapshot(self) -> Snapshot:
        """As L{InProcessServer.snapshot}."""
        return self._wait(self._server.snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """As L{InProcessServer.restore}."""
        self._wait(lambda: self._server.restore(snapshot))

    def compact(self) -> int:
        """As L{InProcessServer.compact}."""
        return self._wait(self._server.compact)

    def settle(self, patience: float = 5.0) -> bool:
        """As L{InProcessServer.settle}."""
        return self._wait(lambda: self._server.settle(patience))

    def reload_files(self) -> None:
        """As L{InProcessServer.reload_files}."""
        self._wait(self._server.reload_files)

    def set_images(self, images: Mapping[str, Any]) -> None:
        """As L{InProcessServer.set_images}."""
        self._do(self._server.set_images, images)

    def load(self, source: Objects, namespace: str = "default") -> list[JSONObject]:
        """As L{InProcessServer.load}."""
        from ._loading import load_objects

        return load_objects(self.connection, source, namespace)

    def inject(self, code: int | None = None, **settings: Any) -> Fault:
        """As L{InProcessServer.inject}."""
        return self._do(self._server.inject, code, **settings)

    def disturb_watches(self, **settings: Any) -> Fault:
        """As L{InProcessServer.disturb_watches}."""
        return self._do(self._server.disturb_watches, **settings)

    def end_watches(self, code: int | None = None, **settings: Any) -> int:
        """As L{InProcessServer.end_watches}."""
        return self._do(self._server.end_watches, code, **settings)

    def record_requests(self, limit: int = MAX_LOGGED_REQUESTS) -> RequestLog:
        """As L{InProcessServer.record_requests}."""
        return self._do(self._server.record_requests, limit)

    def clear_faults(self) -> None:
        """As L{InProcessServer.clear_faults}."""
        self._do(self._server.clear_faults)

    @property
    def now(self) -> float:
        """As L{InProcessServer.now}."""
        return self._do(lambda: self._server.now)

    def freeze_time(self, at: float | None = None) -> None:
        """As L{InProcessServer.freeze_time}."""
        self._do(self._server.freeze_time, at)

    def advance_time(self, seconds: float) -> None:
        """As L{InProcessServer.advance_time}."""
        self._do(self._server.advance_time, seconds)

    def resume_time(self) -> None:
        """As L{InProcessServer.resume_time}."""
        self._do(self._server.resume_time)

    def reset_clock(self) -> None:
        """As L{InProcessServer.reset_clock}."""
        self._do(self._server.reset_clock)

"""
Run a kopf operator in a thread of a test, for the server of a connection.

kopf is optional, and imported at first use. Two of its internal classes are used: C{Vault}, to give the operator its
credentials without a login handler, and C{Insights}, to know what it watches.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from ._clients import import_client
from ._connection import Connection

#: The first release with sessions of the caller.
REQUIREMENT: Final = "kopf>=1.44"
#: Seconds that an operator has to start, and to stop.
TIMEOUT: Final = 30.0
#: Seconds between two checks of an operator that starts. They read memory only.
_POLL_INTERVAL: Final = 0.01
#: The registries of modules that were imported for an operator, by their names: a module is imported once.
_registries: dict[str, Any] = {}
_FORMAT: Final = "%(asctime)s [%(levelname)s] %(name)s: %(message)s"


class OperatorNotReady(Exception):
    """The operator did not start or stop in time; the text has its log."""


class KopfOperator:
    """
    An operator; a context manager, or C{start()} and C{stop()}.

    It is ready when its startup handlers have finished and it watches its resources. It posts no events, has no peers,
    and needs no login handler: login handlers of the operator are not called. While it runs, C{$KUBECONFIG} and the
    default configuration of the library C{kubernetes} belong to the connection.

    @ivar exception: The exception that has ended the operator; L{None} without one.
    """

    def __init__(
        self,
        connection: Connection,
        *sources: str | os.PathLike[str],
        namespace: str = "",
        namespaces: Sequence[str] = (),
        registry: Any = None,
        settings: Any = None,
        level: int = logging.INFO,
        timeout: float = TIMEOUT,
        reraise: bool = True,
        **options: Any,
    ) -> None:
        """
        @param connection: The server and the user of the operator.
        @param sources: Files (C{"operator.py"}), which are executed, and modules (C{"package.module"}), which are
            imported. Without any, the handlers in kopf's default registry, from modules that the test has imported.
        @param namespace: The namespace in which the operator acts; all of them by default.
        @param namespaces: Several namespaces.
        @param registry: A C{kopf.OperatorRegistry} instead of C{sources}.
        @param settings: C{kopf.OperatorSettings}; by default new ones, which disable the posting of events.
        @param level: The least level of log messages in L{output}.
        @param timeout: Seconds to wait for the operator to be ready, and to end.
        @param reraise: Whether L{stop} raises an exception of the operator.
        @param options: Further arguments of C{kopf.operator}, such as C{memo}.
        """
        if sources and registry is not None:
            raise TypeError("an operator has sources or a registry")
        self.exception: BaseException | None = None
        self._connection = connection
        self._sources = sources
        self._namespaces = [*([namespace] if namespace else []), *namespaces]
        self._registry = registry
        self._settings = settings
        self._level = level
        self._timeout = timeout
        self._reraise = reraise
        self._options = options
        self._thread: threading.Thread | None = None
        self._running, self._ready = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_flag = asyncio.Event()
        self._log = _Log()
        self._undo = ExitStack()

    @property
    def output(self) -> str:
        """Return the log of kopf and of the handlers' C{logger} so far."""
        return "\n".join(list(self._log.lines))

    def start(self) -> KopfOperator:
        """
        Start the operator, and wait until it is ready.

        @raise OperatorNotReady: It was not ready in time.
        @raise Exception: Its file or module cannot be loaded, or it has ended.
        """
        kopf = import_client("kopf", REQUIREMENT)
        if not hasattr(kopf, "AiohttpSession"):
            raise ImportError(f"this needs a newer kopf: pip install '{REQUIREMENT}'")
        try:
            self._undo.enter_context(_environment(self._connection))
            self._undo.enter_context(self._log.attached(self._level))
            registry = self._load(kopf)
            self._undo.enter_context(_default_configuration(self._connection))
            settings = self._settings
            if settings is None:
                settings = kopf.OperatorSettings()
                settings.posting.enabled = False
            self._thread = threading.Thread(
                target=self._run, args=[kopf, registry, settings], name="kopf operator", daemon=True
            )
            self._thread.start()
            self._running.wait()
            if not self._ready.wait(self._timeout):
                raise OperatorNotReady(f"the operator was not ready after {self._timeout} s\n{self.output}")
            if self.exception is not None:
                raise self.exception
        except BaseException:
            self._end()
            raise
        return self

    def stop(self) -> None:
        """
        Stop the operator, and wait for its end. Idempotent.

        @raise OperatorNotReady: It did not end in time.
        @raise BaseException: The exception that has ended it.
        """
        running, ended = self._thread is not None, self._end()
        if not ended:
            raise OperatorNotReady(f"the operator did not end within {self._timeout} s\n{self.output}")
        if running and self.exception is not None and self._reraise:
            raise self.exception

    def _end(self) -> bool:
        """Stop the operator; return whether its thread has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            # The loop is closed when the operator has ended.
            with suppress(RuntimeError):
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._stop_flag.set)
            thread.join(self._timeout)
        self._undo.close()
        return thread is None or not thread.is_alive()

    def __enter__(self) -> KopfOperator:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.stop()
        else:
            # The error of the test is the more useful one.
            self._end()

    def _load(self, kopf: Any) -> Any:
        """Return the registry with the handlers."""
        if self._registry is not None:
            return self._registry
        if not self._sources:
            return kopf.get_default_registry()
        files = [source for source in self._sources if _is_file(source)]
        modules = [str(source) for source in self._sources if not _is_file(source)]
        if modules and len(self._sources) > 1:
            raise TypeError("an operator is several files, or one module that imports further modules")
        if modules:
            return _import(kopf, modules[0])
        registry = kopf.OperatorRegistry()
        with _registering(kopf, registry):
            for number, file in enumerate(files):
                self._undo.enter_context(_executed(Path(file), number))
        return registry

    def _run(self, kopf: Any, registry: Any, settings: Any) -> None:
        """Run the operator in the event loop of this thread."""
        try:
            asyncio.run(self._operate(kopf, registry, settings))
        except BaseException as error:
            error.add_note(f"The log of the operator:\n{self.output}")
            self.exception = error
        finally:
            self._running.set()
            self._ready.set()

    async def _operate(self, kopf: Any, registry: Any, settings: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._running.set()
        insights = importlib.import_module("kopf._cogs.structs.references").Insights()
        vault_class = importlib.import_module("kopf._cogs.structs.credentials").Vault
        watches = _Watches()
        session = watches.session(self._connection.kopf())
        credentials = kopf.AiohttpSession(
            aiohttp_session=session,
            server=self._connection.url,
            default_namespace=self._connection.namespace or None,
        )
        # Flags of threads would be awaited in threads, which keep the loop from its end.
        started = asyncio.Event()
        try:
            running = asyncio.create_task(
                kopf.operator(
                    **{"standalone": True, **self._options},
                    registry=registry,
                    settings=settings,
                    insights=insights,
                    vault=vault_class({"kubetwist": credentials}),
                    ready_flag=started,
                    stop_flag=self._stop_flag,
                    namespaces=self._namespaces,
                    clusterwide=not self._namespaces,
                )
            )
            while not running.done() and not (started.is_set() and watches.include_all(insights)):
                await asyncio.wait([running], timeout=_POLL_INTERVAL)
            if not running.done():
                self._ready.set()
            await running
        finally:
            await session.close()


class _Watches:
    """The watches that an operator has opened, seen in the requests of its session."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def session(self, info: Any) -> Any:
        """
        Return a session of aiohttp.

        @param info: A C{kopf.ConnectionInfo}.
        """
        aiohttp = importlib.import_module("aiohttp")
        tracing = aiohttp.TraceConfig()
        tracing.on_request_end.append(self._answered)
        connector = aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context())
        return aiohttp.ClientSession(
            connector=connector, headers=info.as_http_headers(), trace_configs=[tracing], trust_env=False
        )

    async def _answered(self, session: Any, context: Any, parameters: Any) -> None:
        if parameters.url.query.get("watch") == "true" and parameters.response.status == 200:
            self._paths.add(parameters.url.path)

    def include_all(self, insights: Any) -> bool:
        """Return whether everything is watched that the operator has found."""
        if not (insights.ready_resources.is_set() and insights.ready_namespaces.is_set()):
            return False
        return all(
            resource.get_url(namespace=namespace) in self._paths
            for resource in insights.watched_resources
            for namespace in (insights.namespaces if resource.namespaced else [None])
        )


class _Log(logging.Handler):
    """
    The messages of kopf.

    @ivar lines: The formatted messages.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter(_FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.lines.append(self.format(record))

    @contextmanager
    def attached(self, level: int) -> Iterator[None]:
        """Receive messages of a level or above, for which the level of kopf's logger is lowered."""
        logger = logging.getLogger("kopf")
        before = logger.level
        self.setLevel(level)
        logger.addHandler(self)
        if not logger.isEnabledFor(level):
            logger.setLevel(level)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before)


def _is_file(source: str | os.PathLike[str]) -> bool:
    return not isinstance(source, str) or source.endswith(".py")


@contextmanager
def _registering(kopf: Any, registry: Any) -> Iterator[None]:
    """Let decorators without C{registry=} register handlers there."""
    default = kopf.get_default_registry()
    kopf.set_default_registry(registry)
    try:
        yield
    finally:
        kopf.set_default_registry(default)


@contextmanager
def _executed(path: Path, number: int) -> Iterator[None]:
    """
    Execute a file as a new module; its folder is on the path.

    @param number: Its number among the files of the operator.
    """
    path = path.absolute()
    name = f"kubetwist_operator_{number}_{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(specification)
    folder = str(path.parent)
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
        yield
    finally:
        sys.modules.pop(name, None)
        if folder in sys.path:
            sys.path.remove(folder)


def _import(kopf: Any, name: str) -> Any:
    """Return the registry of a module: the default one if the test has imported the module before."""
    if name not in _registries:
        if name in sys.modules:
            return kopf.get_default_registry()
        registry = kopf.OperatorRegistry()
        with _registering(kopf, registry):
            importlib.import_module(name)
        _registries[name] = registry
    return _registries[name]


@contextmanager
def _environment(connection: Connection) -> Iterator[None]:
    """Let C{$KUBECONFIG} name the kubeconfig of the connection, for handlers that load it."""
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(connection.kubeconfig)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("KUBECONFIG", None)
        else:
            os.environ["KUBECONFIG"] = before


@contextmanager
def _default_configuration(connection: Connection) -> Iterator[None]:
    """
    Set the default configuration of the library C{kubernetes} if it is imported.

    kopf's login handlers do this as a side effect, on which handlers with C{kubernetes.client.CoreV1Api()} rely.
    """
    modules: Mapping[str, Any] = sys.modules
    if "kubernetes.client" not in modules:
        yield
        return
    library = importlib.import_module("kubernetes")
    configuration = library.client.Configuration
    before = configuration.get_default_copy()
    library.config.load_kube_config(config_file=str(connection.kubeconfig))
    try:
        yield
    finally:
        configuration.set_default(before)

"""Part of the pytest plugin: record what tests see of a real cluster, and replay it without the cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ..api.jsontypes import JSONObject
    from ._child import ChildKubeAPI
    from ._connection import ServerHandle
    from ._inprocess import KubeAPI
    from .pytest_plugin import Server
    from .recording.cassette import Cassette
    from .recording.process import RecordedCluster

_MODES: Final = ("none", "once", "all")
#: The setting, and the marker.
_SETTING: Final = "kubetwist_record"
_FIXTURE: Final = "recorded_cluster"
#: The cassettes of tests that have failed.
_FAILED = pytest.StashKey[set[Path]]()
#: What became of cassettes, for the summary.
_OUTCOMES = pytest.StashKey[list[str]]()


class MaskSpecs:
    """The hooks of this module."""

    @pytest.hookspec
    def pytest_kubetwist_mask(self, obj: JSONObject) -> object:
        """
        Mask further secrets of an object before it is written to a cassette.

        @param obj: The object, in which known secrets are masked; it may be changed in place.
        @return: C{False} to leave the object out.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook."""
    pluginmanager.add_hookspecs(MaskSpecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of this module."""
    parser.addini(
        _SETTING,
        "the cassette of recorded_cluster: a path relative to this file, in which {module} and {test} are replaced",
        default="",
    )
    parser.addini("kubetwist_record_limit", "maximum size of the objects in a cassette, in MiB", default="16")
    group = parser.getgroup("kubetwist")
    group.addoption(
        "--kubetwist-record",
        choices=_MODES,
        default="none",
        help="whether recorded_cluster uses a real cluster: none (replay), once (if there is no cassette), all",
    )
    group.addoption(
        "--kubetwist-kubeconfig",
        default="",
        metavar="PATH",
        help="the kubeconfig of the cluster that is recorded; by default $KUBECONFIG, or ~/.kube/config",
    )
    group.addoption(
        "--kubetwist-context",
        default="",
        metavar="NAME",
        help="the context of the cluster that is recorded; by default the current one",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Document the marker."""
    config.addinivalue_line("markers", f"{_SETTING}(path): the cassette of recorded_cluster in this test")
    config.stash[_FAILED] = set()
    config.stash[_OUTCOMES] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the cassettes of failed tests, which are incomplete."""
    report = yield
    if report.failed and _FIXTURE in getattr(item, "fixturenames", ()):
        item.config.stash[_FAILED].add(_cassette_path(item))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the cassettes that were written."""
    for line in config.stash[_OUTCOMES]:
        terminalreporter.write_line(f"kubetwist: {line}")


def _cassette_path(item: pytest.Item) -> Path:
    """
    Return the cassette of a test.

    @raise pytest.UsageError: There is none.
    """
    config = item.config
    marker = item.get_closest_marker(_SETTING)
    setting = config.getini(_SETTING) if marker is None else (marker.args or ("",))[0]
    if not setting or not isinstance(setting, str):
        raise pytest.UsageError(f"{_FIXTURE} needs a cassette: set {_SETTING} = cassette.yaml")
    names = {"{module}": Path(item.path).stem, "{test}": item.name}
    for name, value in names.items():
        setting = setting.replace(name, re.sub(r"[^\w.-]+", "-", value).strip("-"))
    folder = config.inipath.parent if config.inipath is not None else config.rootpath
    return folder / setting


class _Recordings:
    """
    The cassettes of a session.

    @ivar mode: The option.
    """

    def __init__(self, config: pytest.Config, serve: Callable[[str], Server], running: ExitStack) -> None:
        """
        @param serve: Starts the server of a release, or returns it.
        @param running: Stops what runs at the end of the session.
        """
        self.mode: str = config.getoption("--kubetwist-record")
        self._config = config
        self._serve = serve
        self._running = running
        self._recorded: dict[Path, RecordedCluster] = {}
        self._snapshots: dict[Path, tuple[KubeAPI | ChildKubeAPI, Any]] = {}

    def is_recorded(self, path: Path) -> bool:
        """Return whether a cassette is written by this session."""
        return self.mode == "all" or path in self._recorded or (self.mode == "once" and not path.exists())

    def record(self, path: Path) -> RecordedCluster:
        """
        Return the cluster of a cassette that is written at the end of the session; fail without an answer of it.
        """
        from .recording.process import RecordedCluster, RecordingError
        from .recording.upstream import kubeconfig_paths

        cluster = self._recorded.get(path)
        if cluster is None:
            if hasattr(self._config, "workerinput"):
                raise pytest.UsageError("--kubetwist-record needs one process: add -n 0")
            option = self._config.getoption
            limit = self._config.getini("kubetwist_record_limit")
            if not limit.isdigit() or not int(limit):
                raise pytest.UsageError(f"kubetwist_record_limit is {limit!r}, must be a number of MiB")
            cluster = RecordedCluster(
                kubeconfig_paths(option("--kubetwist-kubeconfig")), option("--kubetwist-context"), int(limit) << 20
            )
            try:
                self._recorded[path] = cluster.start()
            except RecordingError as error:
                pytest.fail(f"the cluster cannot be recorded: {error}", pytrace=False)
            self._running.callback(self._finish, path, cluster)
        return cluster

    def _finish(self, path: Path, cluster: RecordedCluster) -> None:
        outcomes = self._config.stash[_OUTCOMES]
        shown = os.path.relpath(path)
        if path in self._config.stash[_FAILED]:
            cluster.stop()
            outcomes.append(f"{shown} was not written, as a test with it has failed")
            return
        cassette = self._masked(cluster.finish())
        from .recording.cassette import write

        write(path, cassette)
        outcomes.append(f"{shown}: {len(cassette.objects)} objects recorded, {len(cassette.writes)} writes")
        outcomes += [f"{shown} lacks {name}: {reason}" for name, reason in sorted(cassette.omitted.items())]

    def _masked(self, cassette: Cassette) -> Cassette:
        from attrs import evolve

        from .recording.masking import masked_by

        def rules(obj: JSONObject) -> object:
            return not any(result is False for result in self._config.hook.pytest_kubetwist_mask(obj=obj))

        masked = (masked_by([rules], obj) for obj in cassette.objects)
        return evolve(cassette, objects=tuple(obj for obj in masked if obj is not None))

    def replay(self, path: Path, default_version: str) -> KubeAPI | ChildKubeAPI:
        """
        Return a server with the objects of a cassette; fail if it cannot be read.

        @param default_version: The release, if the one of the cassette is not served.
        """
        from ..server.version import check_kubernetes_version
        from ._process import SubprocessServer
        from ._sharedservers import SharedServer
        from .recording.cassette import CassetteError, read

        known = self._snapshots.get(path)
        if known is not None:
            server, snapshot = known
            server.reset()
            server.restore(snapshot)
            return server
        if not path.exists():
            pytest.fail(
                f"there is no {os.path.relpath(path)}: record it from the cluster of the current kubeconfig with"
                " --kubetwist-record=once",
                pytrace=False,
            )
        try:
            cassette = read(path)
        except CassetteError as error:
            pytest.fail(str(error), pytrace=False)
        try:
            version = check_kubernetes_version(cassette.release)
        except ValueError:
            version = default_version
        started = self._serve(version)
        if isinstance(started, SharedServer):
            pytest.fail(f"{_FIXTURE} needs a server for itself: set kubetwist_xdist = worker", pytrace=False)
        if isinstance(started, SubprocessServer):
            raise pytest.UsageError(f"{_FIXTURE} needs kubetwist_server = thread or child")
        started.reset()
        started.load(list(cassette.objects))
        started.settle()
        self._snapshots[path] = started, started.snapshot()
        return started


@pytest.fixture(scope="session")
def _recordings(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> Iterator[_Recordings]:
    """The cassettes of the session, which are written at its end."""
    with ExitStack() as running:
        # Servers are started when they are needed: a recording needs none.
        yield _Recordings(pytestconfig, lambda version: request.getfixturevalue("_kube_api_servers")(version), running)


@pytest.fixture
def recorded_cluster(request: pytest.FixtureRequest, _recordings: _Recordings) -> Iterator[ServerHandle]:
    """
    A real cluster that is recorded, or a server with the recorded objects: url, kubeconfig, connection, request().

    C{$KUBECONFIG} names it during the test.
    """
    path = _cassette_path(request.node)
    if _recordings.is_recorded(path):
        cluster = _recordings.record(path)
        with cluster.connection.use_kubeconfig():
            yield cluster
        return
    server = _recordings.replay(path, request.getfixturevalue("kubernetes_version"))
    with server.connection.use_kubeconfig():
        yield server
    # Reset the clock in any case: the next test may not use this server.
    server.clear_faults()
    server.reset_clock()

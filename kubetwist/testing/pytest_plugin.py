"""
The pytest plugin of kubetwist: fixtures with servers, and tests that run once for each of several Kubernetes releases.

The fixtures are C{kube_api}, C{kube_api_clean}, C{kube_api_twisted} and C{kubernetes_version}; modules named in
C{pytest_plugins} have more.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime

    from ._child import ChildKubeAPI
    from ._inprocess import InProcessServer, KubeAPI
    from ._process import SubprocessServer
    from ._sharedservers import SharedServer
    from .manifests import Manifest

    Server = KubeAPI | ChildKubeAPI | SubprocessServer | SharedServer

#: Parts of this plugin, which pytest loads with it.
pytest_plugins = (
    "kubetwist.testing._pytest_baseline",
    "kubetwist.testing._pytest_clients",
    "kubetwist.testing._pytest_operators",
    "kubetwist.testing._pytest_record",
    "kubetwist.testing._pytest_report",
    "kubetwist.testing._pytest_xdist",
)

#: The first trial test of the run, which runs the reactor in the main thread.
_TRIAL_TEST = pytest.StashKey[str]()
#: The marker, and the fixture with the release.
_MARKER: Final = "kubernetes_version"
_VERSION_FLAG: Final = "--kubernetes-version"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of this plugin."""
    mode = (
        "where kube_api runs: thread (of this process), child (a process controlled by this one), process (as in "
        "production), or auto: child if pytest-twisted or trial tests use this process's reactor, otherwise thread"
    )
    parser.addini("kubetwist_server", mode, default="auto")
    parser.addini("kubetwist_arguments", "flags of `twist kubeapi` for kube_api", default="")
    releases = "Kubernetes releases: tests with a server run once for each of them"
    parser.addini("kubetwist_versions", releases, type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Document the marker."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(version, ...): run a test with a server once for each of these Kubernetes releases"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """
    Run a test with a server once for each release that the closest marker, or else C{kubetwist_versions}, names.

    @raise pytest.UsageError: A release is not served.
    """
    if _MARKER not in metafunc.fixturenames or _sets_version(metafunc.definition):
        return
    marker = metafunc.definition.get_closest_marker(_MARKER)
    versions: Sequence[str] = metafunc.config.getini("kubetwist_versions") if marker is None else marker.args
    if marker is not None and not versions:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: the marker {_MARKER} names no release")
    if versions:
        metafunc.parametrize(_MARKER, [_checked_version(one) for one in versions], indirect=True)


def _sets_version(definition: pytest.Item) -> bool:
    """Return whether a test sets the release itself, with C{pytest.mark.parametrize}."""
    for marker in definition.iter_markers("parametrize"):
        names = marker.args[0] if marker.args else marker.kwargs["argnames"]
        if _MARKER in (names.replace(",", " ").split() if isinstance(names, str) else names):
            return True
    return False


def _checked_version(version: object) -> str:
    """
    Return a release as C{--kubernetes-version} takes it.

    @raise pytest.UsageError: It is not served.
    """
    from ..server.version import check_kubernetes_version

    try:
        return check_kubernetes_version(str(version))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collection_finish(session: pytest.Session) -> None:
    """
    Record whether trial tests, which run the reactor in the main thread, are part of this run.

    @raise pytest.UsageError: The setting does not suit the tests that were collected.
    """
    if _uses_pytest_twisted(session.config):
        from ._reactorthread import forbid_thread

        forbid_thread("pytest-twisted")
    trial = sys.modules.get("twisted.trial.unittest")
    for item in session.items if trial is not None else ():
        cls = getattr(item, "cls", None)
        if isinstance(cls, type) and issubclass(cls, trial.TestCase):  # type: ignore[union-attr]
            session.config.stash[_TRIAL_TEST] = item.nodeid
            break
    if any("kube_api" in getattr(item, "fixturenames", ()) for item in session.items):
        _server_kind(session.config)


def pytest_unconfigure() -> None:
    """Undo the reservation of the reactor, for programs that go on after the run."""
    from ._reactorthread import forbid_thread

    forbid_thread(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """
    Let a trial test wait for the reactor of pytest-twisted.

    Trial runs the reactor for each Deferred of a test and then stops it, which is impossible while pytest-twisted runs
    it.
    """
    trial = sys.modules.get("twisted.trial.unittest")
    cls = getattr(item, "cls", None)
    if trial is None or not isinstance(cls, type) or not issubclass(cls, trial.TestCase):
        return (yield)
    if not _uses_pytest_twisted(item.config):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial.TestCase, "_wait", _wait_in_greenlet)
        return (yield)


def _wait_in_greenlet(test: object, deferred: Deferred[object]) -> None:
    """Wait for a Deferred as trial's C{TestCase._wait} does, in the main greenlet of pytest-twisted."""
    from pytest_twisted import blockon

    blockon(deferred)


def _uses_pytest_twisted(config: pytest.Config) -> bool:
    """Return whether pytest-twisted is active: found by its entry point, or named by C{-p pytest_twisted}."""
    return any(config.pluginmanager.hasplugin(name) for name in ("twisted", "pytest_twisted"))


def _server_kind(config: pytest.Config) -> str:
    """
    Return where kube_api runs: C{"thread"}, C{"child"} or C{"process"}.

    @raise pytest.UsageError: The setting is unknown, or two threads would have to run the one reactor of this process.
    """
    mode: str = config.getini("kubetwist_server")
    if mode not in ("auto", "thread", "child", "process"):
        raise pytest.UsageError(f"kubetwist_server is {mode!r}, must be auto, thread, child or process")
    trial_test = config.stash.get(_TRIAL_TEST, None)
    if mode == "auto":
        from ._reactorthread import gevent_patches_threads

        return "child" if trial_test or _uses_pytest_twisted(config) or gevent_patches_threads() else "thread"
    if mode == "thread" and _uses_pytest_twisted(config):
        raise pytest.UsageError(
            "kubetwist_server = thread and pytest-twisted cannot be used in one process, as both run Twisted's reactor:"
            " set kubetwist_server = child, or disable pytest-twisted with -p no:twisted"
        )
    if mode == "thread" and trial_test:
        raise pytest.UsageError(
            f"kubetwist_server = thread and trial tests ({trial_test}) cannot be used in one process, as both run"
            " Twisted's reactor: set kubetwist_server = child, or run the trial tests separately"
        )
    return mode


def check_baseline(baseline: object) -> None:
    """
    Check the value of the fixture C{kube_api_baseline}.

    @raise pytest.fail.Exception: It is no function.
    """
    if not (baseline is None or callable(baseline)):
        pytest.fail("kube_api_baseline must return a function, which is called with each server", pytrace=False)


@pytest.fixture(scope="session")
def kube_api_arguments(pytestconfig: pytest.Config) -> list[str]:
    """Return the flags of kube_api, by default from the setting; override it in a conftest.py."""
    return shlex.split(pytestconfig.getini("kubetwist_arguments"))


@pytest.fixture(scope="session")
def kubernetes_version(request: pytest.FixtureRequest, kube_api_arguments: list[str]) -> str:
    """
    Return the release of the test's server, such as C{"1.36"}.

    It is the parameter of this fixture if there is one; see L{pytest_generate_tests}.
    """
    version: object = getattr(request, "param", None)
    if version is not None:
        return _checked_version(version)
    from ..cli.flags.kubetwist import DEFAULT_KUBERNETES_VERSION

    version = DEFAULT_KUBERNETES_VERSION
    for argument, following in pairwise([*kube_api_arguments, ""]):
        name, equals, value = argument.partition("=")
        if name == _VERSION_FLAG:
            version = value if equals else following
    return _checked_version(version)


@pytest.fixture(scope="session")
def _kube_api_servers(
    pytestconfig: pytest.Config,
    kube_api_arguments: list[str],
    kube_api_manifests: list[Manifest],
    kube_api_baseline: Callable[[Server], object] | None,
) -> Iterator[Callable[[str], Server]]:
    """Return the function that starts the server of a release, or returns it if it runs; all stop with the session."""
    check_baseline(kube_api_baseline)
    mode = _server_kind(pytestconfig)
    # Imported late: plugins that install another reactor than the default one must come first.
    from ._child import ChildKubeAPI
    from ._inprocess import KubeAPI
    from ._process import SubprocessServer
    from ._pytest_baseline import report_load_errors
    from ._pytest_report import records_requests
    from ._pytest_xdist import shared_server

    process = partial(SubprocessServer, record_requests=records_requests(pytestconfig))
    kinds: dict[str, Callable[..., Server]] = {"thread": KubeAPI, "child": ChildKubeAPI, "process": process}
    servers: dict[str, Server] = {}
    with ExitStack() as running:

        def serve(version: str) -> Server:
            server = servers.get(version)
            if server is None:
                arguments = (*kube_api_arguments, f"{_VERSION_FLAG}={version}")
                with report_load_errors():
                    shared = shared_server(pytestconfig, mode, arguments, kube_api_manifests, kube_api_baseline)
                    if shared is not None:
                        servers[version] = shared
                        return shared
                    server = kinds[mode](*arguments, load=kube_api_manifests)
                    running.enter_context(server)
                if not isinstance(server, SubprocessServer):
                    # The first test may need what controllers make, such as service accounts.
                    server.settle()
                if kube_api_baseline is not None:
                    kube_api_baseline(server)
                    if not isinstance(server, SubprocessServer):
                        server.set_baseline()
                servers[version] = server
            return server

        yield serve


@pytest.fixture(scope="session")
def kube_api(_kube_api_servers: Callable[[str], Server], kubernetes_version: str) -> Server:
    """A Kubernetes API server for the whole session: url, kubeconfig, token, connection, request()."""
    return _kube_api_servers(kubernetes_version)


@pytest.fixture
def kube_api_clean(kube_api: Server) -> Iterator[KubeAPI | ChildKubeAPI]:
    """The same server in the state of its baseline: all writes of other tests are undone."""
    from ._process import SubprocessServer
    from ._sharedservers import SharedServer

    if isinstance(kube_api, SharedServer):
        pytest.fail(
            "kube_api_clean would undo the writes of other workers (kubetwist_xdist = shared): use kube_api and a"
            " namespace for each test, or set kubetwist_xdist = worker",
            pytrace=False,
        )
    if isinstance(kube_api, SubprocessServer):
        raise pytest.UsageError("kube_api_clean needs kubetwist_server = thread or child")
    kube_api.reset()
    yield kube_api
    # Reset the clock in any case: the next test may not use this server.
    kube_api.clear_faults()
    kube_api.reset_clock()


@pytest.fixture
def kube_api_twisted(
    request: pytest.FixtureRequest,
    kube_api_arguments: list[str],
    kubernetes_version: str,
    kube_api_baseline: Callable[[Server], object] | None,
) -> Iterator[InProcessServer]:
    """
    A server on the reactor of pytest-twisted for one test, with the baseline: url, token, connection.treq().

    The parameters are other fixtures.
    """
    check_baseline(kube_api_baseline)
    if not _uses_pytest_twisted(request.config):
        pytest.fail(
            "kube_api_twisted needs the pytest plugin pytest-twisted, which is missing or disabled", pytrace=False
        )
    from pytest_twisted import blockon

    from twisted.internet import reactor
    from twisted.internet.defer import Deferred
    from twisted.internet.task import deferLater

    from ._blocking import RunningKubeAPI
    from ._inprocess import InProcessServer
    from ._pytest_baseline import report_load_errors
    from ._waiting import run_in_thread

    manifests = request.getfixturevalue("kube_api_manifests")
    server = InProcessServer(*kube_api_arguments, f"{_VERSION_FLAG}={kubernetes_version}", load=manifests)

    async def start() -> None:
        await server.start()
        # The test may need what controllers make, such as service accounts.
        await server.settle()
        if kube_api_baseline is not None:
            # The function blocks, as with the servers of other fixtures.
            blocking = RunningKubeAPI(server)
            await run_in_thread(server._reactor, lambda: kube_api_baseline(blocking), lambda: None)
            await server.set_baseline()

    def run(call: Callable[[], Coroutine[Deferred[Any], Any, None]]) -> None:
        # Called by the reactor, which does not run before the first Deferred is awaited.
        blockon(deferLater(cast("IReactorTime", reactor), 0, lambda: Deferred.fromCoroutine(call())))

    with report_load_errors():
        run(start)
    yield server
    run(server.stop)

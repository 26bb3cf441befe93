"""
Part of the pytest plugin: the reports of failed tests show what happened in the server.

All fixtures that return servers are considered, under any name.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ._reporting import Section

_SETTING: Final = "kubetwist_report"
_MODES: Final = ("auto", "off", "always")
#: Reports with objects per run; later ones have the log and the requests only.
MAX_REPORTS: Final = 50

#: The servers that fixtures returned.
_SERVERS = pytest.StashKey[dict[Any, "_Server"]]()
#: The start of a test.
_STARTED = pytest.StashKey["_Start"]()
#: The number of reports.
_REPORTS = pytest.StashKey[int]()


class _Server:
    """A server that a fixture returned."""

    def __init__(self, fixture: str, server: Any) -> None:
        self.fixture = fixture
        self.server = server
        self.since = time.perf_counter()


class _Start:
    """
    The start of a test.

    @ivar offsets: The sizes of log files of servers in other processes.
    @ivar namespace: The value of C{kube_namespace}.
    """

    def __init__(self) -> None:
        self.moment = time.perf_counter()
        self.time = time.time()
        self.offsets: dict[int, int] = {}
        self.namespace = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting of this module."""
    parser.addini(
        _SETTING,
        "reports of tests with a server have events, objects, the server's log and requests: auto (failed tests), off, "
        "or always",
        default="auto",
    )


def pytest_configure(config: pytest.Config) -> None:
    """
    Check the setting.

    @raise pytest.UsageError: It is unknown.
    """
    mode = config.getini(_SETTING)
    if mode not in _MODES:
        raise pytest.UsageError(f"{_SETTING} is {mode!r}, must be one of {', '.join(_MODES)}")
    config.stash[_SERVERS] = {}


def records_requests(config: pytest.Config) -> bool:
    """Return whether servers record requests for reports."""
    return bool(config.getini(_SETTING) != "off")


def _is_server(value: object) -> bool:
    connection = sys.modules.get("kubetwist.testing._connection")
    return connection is not None and isinstance(value, connection.ServerHandle)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Record the requests and the log of a server that a fixture returns."""
    value = yield
    if fixturedef.argname == "kube_namespace" and isinstance(value, str) and isinstance(request.node, pytest.Item):
        request.node.stash[_STARTED].namespace = value
    if not _is_server(value) or request.config.getini(_SETTING) == "off":
        return value
    request.config.stash[_SERVERS][fixturedef] = _Server(fixturedef.argname, value)
    record = getattr(value, "record_activity", None)
    if record is not None:
        record()
    return value


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Forget a server whose fixture ended."""
    request.config.stash[_SERVERS].pop(fixturedef, None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Record the start of a test, which costs no request."""
    start = item.stash[_STARTED] = _Start()
    for entry in item.config.stash[_SERVERS].values():
        log = getattr(entry.server, "log", None)
        if log is not None:
            with suppress(OSError):
                start.offsets[id(entry.server)] = log.stat().st_size


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the sections to the report of a failed test."""
    report = yield
    mode = item.config.getini(_SETTING)
    if mode == "off" or not (report.failed or (mode == "always" and report.when == "call")):
        return report
    start = item.stash.get(_STARTED, None)
    if start is None:
        return report
    entries = _used(item, start)
    for entry in entries:
        prefix = "kubetwist" if len(entries) == 1 else f"kubetwist {entry.fixture}"
        try:
            sections = _sections(item, entry, start)
        except Exception as error:
            sections = [("report", [f"it could not be made: {type(error).__name__}: {error}"])]
        report.sections += [(f"{prefix} {title}", "\n".join(lines) + "\n") for title, lines in sections]
    return report


def _used(item: pytest.Item, start: _Start) -> list[_Server]:
    """Return the servers of the fixtures of a test, each once."""
    names = set(getattr(item, "fixturenames", ()))
    found: dict[int, _Server] = {}
    for entry in item.config.stash[_SERVERS].values():
        if entry.fixture in names or entry.since >= start.moment:
            found.setdefault(id(entry.server), entry)
    return list(found.values())


def _sections(item: pytest.Item, entry: _Server, start: _Start) -> list[Section]:
    from ._reporting import Reporter, activity_sections, log_section, namespaces_of

    server = entry.server
    found: list[Section] = []
    namespaces: list[str] = []
    since: float | None = start.time
    if getattr(server, "log", None) is not None:
        found = log_section(server.log, start.offsets.get(id(server), 0))
    activity = server.activity_since(start.moment) if hasattr(server, "activity_since") else None
    if activity is not None:
        found += activity_sections(activity)
        namespaces, since = namespaces_of(activity), None
    if start.namespace:
        namespaces = [start.namespace]
    reports = item.config.stash[_REPORTS] = item.config.stash.get(_REPORTS, 0) + 1
    if reports > MAX_REPORTS:
        return [("objects", [f"not shown after {MAX_REPORTS} reports"]), *found]
    if not namespaces and since is None:
        return found

    def read() -> list[Section]:
        return Reporter(server.connection).sections(namespaces, since)

    from ._inprocess import InProcessServer

    return [*(_read_in_thread(read) if isinstance(server, InProcessServer) else read()), *found]


def _read_in_thread(read: Any) -> list[Section]:
    """Read while pytest-twisted runs the reactor, on which the server is."""
    from pytest_twisted import blockon

    from twisted.internet.threads import deferToThread

    found: list[Section] = blockon(deferToThread(read))
    return found

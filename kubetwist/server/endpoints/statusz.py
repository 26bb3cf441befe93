"""
C{/statusz}: versions, start time and paths of the server.

@see: kubernetes/apiserver, C{pkg/server/statusz}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import gmtime, strftime, time
from typing import Final

from ...api.featuregates import FeatureGates, format_release
from ...api.jsontypes import JSONObject, JSONValue
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp
from ..config import ServerConfig
from ..version import version_document
from .zpages import NAME, WARNING, ZPage

_NOT_LISTED: Final = frozenset(("apis", "api", "openid", "openapi", ".well-known", "index.html"))


def status_fields(features: FeatureGates, paths: list[str], started_at: float, now: float) -> JSONObject:
    """
    Return the fields of C{/statusz}.

    @param features: The release of the server, and the emulated one.
    @param paths: The served paths.
    @param started_at: Time of the start, in seconds since the epoch.
    @param now: Current time, in seconds since the epoch.
    """
    document = version_document(features)
    folders = {path.split("/")[1] for path in paths if path.startswith("/")}
    return {
        "startTime": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(started_at)),
        "uptimeSeconds": max(0, int(now - started_at)),
        "goVersion": document["goVersion"],
        "binaryVersion": document["gitVersion"][1:],
        "emulationVersion": format_release(features.emulated),
        "paths": sorted(f"/{folder}" for folder in folders - _NOT_LISTED if folder),
    }


def status_text(status: Mapping[str, JSONValue], started_at: float) -> str:
    """Return C{/statusz} as text."""
    minutes, seconds = divmod(status["uptimeSeconds"], 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"\n{NAME} statusz\n{WARNING}"
        f"\nStarted: {strftime('%a %b %e %H:%M:%S UTC %Y', gmtime(started_at))}\n"
        f"Up: {hours} hr {minutes:02d} min {seconds:02d} sec\n"
        f"Go version: {status['goVersion']}\n"
        f"Binary version: {status['binaryVersion']}\n"
        f"Emulation version: {status['emulationVersion']}\n"
        f"Paths: {' '.join(status['paths'])}\n"
    )


def install_statusz(mux: DelegatingMux, config: ServerConfig, paths: Callable[[], list[str]]) -> None:
    """
    Register the page if its feature gate is enabled.

    @param paths: Returns the paths that are served.
    """
    if not config.features.enabled("ComponentStatusz"):
        return
    started_at = time()

    def status() -> JSONObject:
        return status_fields(config.features, paths(), started_at, time())

    page = ZPage("Statusz", lambda: status_text(status(), started_at), status)
    mux.handle("/statusz", RoutedApp(page.make_app))

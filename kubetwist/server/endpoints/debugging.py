"""
C{/debug/flags} and C{/debug/pprof}: set the log level, and profile the process; disabled by --profiling=false.

@see: kubernetes/apiserver, C{pkg/server/routes/flags.go}, C{pkg/server/routes/profiling.go}.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from klein import Klein
from twisted.internet.threads import deferToThreadPool

from ...api.go.quote import quoted
from ...http.request import TEXT, KubeRequest
from ...interfaces import IServerReactor
from ...logs.profiling import Sampler, heap_text, stacks_text
from ...logs.redaction import without_passwords
from ...logs.verbosity import Verbosity, parse_level
from ...resources.mux import DelegatingMux
from ...resources.routing import RoutedApp, add_route, new_app

if TYPE_CHECKING:
    from ..config import ServerConfig
    from ..peers import Peers

FLAGS: Final = "/debug/flags"
PPROF: Final = "/debug/pprof"
#: Maximum seconds of a profile.
MAX_PROFILE_SECONDS: Final = 300.0
_SECONDS: Final = 30.0
_MAX_LEVEL_LENGTH: Final = 100
_HTML: Final = b"text/html; charset=utf-8"
_FLAGS_PAGE: Final = (
    b"<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n"
    b"<tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n"
)
_PPROF_PAGE: Final = b"""<html>
<head>
<title>/debug/pprof/</title>
</head>
<body>
/debug/pprof/<br>
<ul>
<li><a href="profile?seconds=30">profile</a>: what the reactor is busy with, for speedscope</li>
<li><a href="heap">heap</a>: objects by type</li>
<li><a href="cmdline">cmdline</a>: how the process was started</li>
<li><a href="goroutine">goroutine</a>: the stacks of all threads, and the calls that the reactor has planned</li>
</ul>
</body>
</html>
"""


class FlagsEndpoint:
    """The one flag that can be set at run time."""

    def __init__(self, verbosity: Verbosity, peers: Peers | None = None) -> None:
        """
        @param peers: The other processes of the server, whose verbosity is set, too; L{None} if there are none.
        """
        self._verbosity = verbosity
        self._peers = peers
        if peers is not None:
            peers.register("verbosity", verbosity.set)

    def make_app(self) -> Klein:
        """Return the Klein app."""
        app = new_app()
        add_route(app, None, FLAGS, self._respond)
        add_route(app, None, f"{FLAGS}/<rest:path>", self._respond)
        add_route(app, "PUT", f"{FLAGS}/v", self._set_verbosity, slashes=False)
        add_route(app, None, f"{FLAGS}/v", self._refuse, slashes=False)
        return app

    def _respond(self, request: KubeRequest, path: str = "") -> None:
        request.respond(200, _FLAGS_PAGE, _HTML)

    def _refuse(self, request: KubeRequest) -> None:
        # The reference answers 406 instead of 405.
        request.respond_text(406, "unsupported http method\n")

    async def _set_verbosity(self, request: KubeRequest) -> None:
        text = request.read_body()[: _MAX_LEVEL_LENGTH + 1].decode("utf-8", "replace")
        try:
            if len(text) > _MAX_LEVEL_LENGTH:
                raise ValueError("value out of range")
            level = parse_level(text)
        except ValueError as error:
            reason = f"strconv.ParseInt: parsing {quoted(text)}: {error}"
            request.respond_text(400, f"failed set klog.logging.verbosity {text}: {reason}\n")
        else:
            self._verbosity.set(level)
            if self._peers is not None:
                await self._peers.call("verbosity", level)
            request.respond_text(200, f"successfully set klog.logging.verbosity to {text}\n")


class ProfilesEndpoint:
    """Profiles of the process; one is taken at a time."""

    def __init__(self, reactor: IServerReactor) -> None:
        self._reactor = reactor
        self._sampler: Sampler | None = None

    def make_app(self) -> Klein:
        """Return the Klein app; it accepts any method."""
        app = new_app()
        add_route(app, None, PPROF, self._redirect, slashes=False)
        add_route(app, None, f"{PPROF}/", self._list_profiles, slashes=False)
        for name, handler in (
            ("profile", self._profile),
            ("heap", self._heap),
            ("goroutine", self._stacks),
            ("cmdline", self._command_line),
            ("symbol", self._symbol),
        ):
            add_route(app, None, f"{PPROF}/{name}", handler, slashes=False)
        add_route(app, None, f"{PPROF}/<rest:name>", self._unknown)
        return app

    def _redirect(self, request: KubeRequest) -> None:
        request.setHeader(b"location", f"{PPROF}/".encode())
        request.respond(302, b"", TEXT)

    def _list_profiles(self, request: KubeRequest) -> None:
        request.respond(200, _PPROF_PAGE, _HTML)

    async def _heap(self, request: KubeRequest) -> None:
        text = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), heap_text)
        request.respond(200, text.encode(), TEXT)

    def _stacks(self, request: KubeRequest) -> None:
        calls = self._reactor.getDelayedCalls()
        request.respond(200, stacks_text(calls, self._reactor.seconds()).encode(), TEXT)

    def _command_line(self, request: KubeRequest) -> None:
        request.respond(200, without_passwords("\0".join(sys.argv)).encode("utf-8", "surrogateescape"), TEXT)

    def _symbol(self, request: KubeRequest) -> None:
        # Python profiles contain names, so there are no addresses to look up.
        request.respond(200, b"num_symbols: 0\n", TEXT)

    def _unknown(self, request: KubeRequest, name: str) -> None:
        request.respond_text(404, "Unknown profile\n")

    def _profile(self, request: KubeRequest) -> None:
        parameter = (request.query.get("seconds") or ("",))[0]
        # As in the reference, a value that is not a number is ignored.
        seconds = float(parameter) if parameter.isascii() and parameter.isdigit() and len(parameter) < 10 else 0.0
        seconds = seconds or _SECONDS
        if seconds > MAX_PROFILE_SECONDS:
            request.respond_text(400, f"profile duration exceeds {MAX_PROFILE_SECONDS:.0f} seconds\n")
            return
        if self._sampler is not None:
            request.respond_text(500, "Could not enable CPU profiling: cpu profiling already in use\n")
            return
        sampler = self._sampler = Sampler(threading.get_ident(), seconds)

        def stop(reason: object = None) -> None:
            sampler.stop()

        def done(body: bytes) -> None:
            self._sampler = None
            request.setHeader(b"content-disposition", b'attachment; filename="profile.speedscope.json"')
            request.setHeader(b"x-content-type-options", b"nosniff")
            request.respond(200, body, b"application/json")

        # A separate thread: profiles take long, and the end of the process does not wait for it.
        request.notifyFinish().addErrback(stop)
        request.register_long_running(stop)
        call = self._reactor.callFromThread
        threading.Thread(target=lambda: call(done, sampler.run()), name="profile", daemon=True).start()


def install_debugging(mux: DelegatingMux, config: ServerConfig) -> Callable[[DelegatingMux], None]:
    """
    Register the paths, unless they are disabled.

    @return: Registers the same endpoints in another mux, whether or not they are disabled.
    """
    flags, profiles = FlagsEndpoint(config.options.verbosity, config.peers), ProfilesEndpoint(config.reactor)

    def install(target: DelegatingMux) -> None:
        target.handle_prefix(FLAGS, RoutedApp(flags.make_app), exposed=False)
        target.handle_prefix(PPROF, RoutedApp(profiles.make_app), exposed=False)

    if config.options["profiling"]:
        install(mux)
    return install

"""
C{/debug/flags} and C{/debug/pprof}: set the log level, and profile the process; disabled by --profiling=false.

@see: kubernetes/apiserver, C{pkg/server/routes/flags.go}, C{pkg/server/routes/profiling.go}.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Final

from twisted.internet.threads import deferToThreadPool
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from ...api.go.quote import quoted
from ...http.request import TEXT, KubeRequest
from ...interfaces import IServerReactor
from ...logs.profiling import Sampler, heap_text, stacks_text
from ...logs.redaction import without_passwords
from ...logs.verbosity import Verbosity, parse_level
from ...resources.mux import DelegatingMux

if TYPE_CHECKING:
    from ..config import ServerConfig

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


class FlagsResource(Resource):
    """The one flag that can be set at run time."""

    isLeaf = True

    def __init__(self, verbosity: Verbosity) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._verbosity = verbosity

    def render(self, request: KubeRequest) -> int:
        """Answer any method."""
        if request.info.path != f"{FLAGS}/v":
            request.respond(200, _FLAGS_PAGE, _HTML)
        elif request.method != b"PUT":
            request.respond_text(406, "unsupported http method\n")
        else:
            text = request.read_body()[: _MAX_LEVEL_LENGTH + 1].decode("utf-8", "replace")
            try:
                if len(text) > _MAX_LEVEL_LENGTH:
                    raise ValueError("value out of range")
                self._verbosity.set(parse_level(text))
            except ValueError as error:
                reason = f"strconv.ParseInt: parsing {quoted(text)}: {error}"
                request.respond_text(400, f"failed set klog.logging.verbosity {text}: {reason}\n")
            else:
                request.respond_text(200, f"successfully set klog.logging.verbosity to {text}\n")
        return NOT_DONE_YET


class ProfilesResource(Resource):
    """Profiles of the process; one is taken at a time."""

    isLeaf = True

    def __init__(self, reactor: IServerReactor) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._reactor = reactor
        self._sampler: Sampler | None = None

    def render(self, request: KubeRequest) -> int:
        """Answer any method."""
        name = request.info.path.removeprefix(PPROF)
        if not name:
            request.setHeader(b"location", f"{PPROF}/".encode())
            request.respond(302, b"", TEXT)
        elif name == "/":
            request.respond(200, _PPROF_PAGE, _HTML)
        elif name == "/profile":
            self._profile(request)
        elif name == "/heap":
            text = deferToThreadPool(self._reactor, self._reactor.getThreadPool(), heap_text)
            text.addCallback(lambda found: request.respond(200, found.encode(), TEXT)).addErrback(
                request.handle_failure
            )
        elif name == "/goroutine":
            calls = self._reactor.getDelayedCalls()
            request.respond(200, stacks_text(calls, self._reactor.seconds()).encode(), TEXT)
        elif name == "/cmdline":
            request.respond(200, without_passwords("\0".join(sys.argv)).encode("utf-8", "surrogateescape"), TEXT)
        elif name == "/symbol":
            # Python profiles contain names, so there are no addresses to look up.
            request.respond(200, b"num_symbols: 0\n", TEXT)
        else:
            request.respond_text(404, "Unknown profile\n")
        return NOT_DONE_YET

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


def install_debugging(mux: DelegatingMux, config: ServerConfig) -> None:
    """Register the paths, unless they are disabled."""
    options = config.options
    if not options["profiling"]:
        return
    mux.handle_prefix(FLAGS, FlagsResource(options.verbosity), exposed=False)
    mux.handle_prefix(PPROF, ProfilesResource(config.reactor), exposed=False)

"""Request tracing: C{--tracing-config-file}."""

from __future__ import annotations

import os
import socket
from time import perf_counter
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool

from ..api.configurations import ConfigurationError
from ..api.featuregates import FeatureGates
from ..api.go.quote import quoted
from ..controllers.serveridentity import server_name
from ..filters.tracing import RequestTracing
from ..interfaces import IStorageBackend
from ..tracing.configuration import TracingConfiguration, load_tracing
from ..tracing.spans import Span, Tracer
from .errors import StartError

if TYPE_CHECKING:
    from ..api.flagvalues import FlagValues
    from ..interfaces import IServerReactor
    from ..resources.hosting import APIHost
    from ..tracing.exporting import SpanExport

#: Seconds that the collector has to accept the remaining spans when the server stops.
EXPORT_TIMEOUT: Final = 2.0


class Tracing:
    """
    The traces of one server.

    @ivar tracer: Starts and continues traces.
    @ivar requests: Creates the spans of requests.
    """

    def __init__(self, configuration: TracingConfiguration) -> None:
        self._configuration = configuration
        self._exporting: SpanExport | None = None
        self.tracer = Tracer(configuration.rate, self._deliver)
        self.requests = RequestTracing(self.tracer, perf_counter)

    def _deliver(self, span: Span) -> None:
        if self._exporting is not None:
            self._exporting.on_end(span)

    @staticmethod
    def trace_storage(backend: IStorageBackend) -> IStorageBackend:
        """Return a storage backend whose calls have spans."""
        from ..storage.traced import TracedStorage

        return IStorageBackend(TracedStorage(backend))

    def start(self, reactor: IServerReactor, server: APIHost) -> None:
        """
        Start to export spans, until the last request is answered.

        @raise StartError: A required package is not installed.
        """
        try:
            from ..tracing.exporting import create_span_export
        except ImportError as error:
            raise StartError(
                f"--tracing-config-file needs {error.name}, which is not installed: pip install 'kubetwist[tracing]'"
            ) from error
        exporting = self._exporting = create_span_export(
            self._configuration.endpoint, server_name(socket.gethostname())
        )

        def stop() -> Deferred[None]:
            self._exporting = None
            return deferToThreadPool(reactor, reactor.getThreadPool(), exporting.close, EXPORT_TIMEOUT)

        server.register_destroy_func("traces", stop)


def make_tracing(options: FlagValues) -> Tracing | None:
    """
    Create the tracing of requests; L{None} without the flag.

    @raise StartError: The file cannot be used.
    """
    path = options["tracing-config-file"]
    if not path:
        return None
    if not FeatureGates.from_options(options).enabled("APIServerTracing"):
        raise StartError("APIServerTracing feature is not enabled, but tracing config file was provided")
    if not os.path.exists(path):
        raise StartError(f"tracing-config-file {path} does not exist")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise StartError(
            f"failed to read tracing config: unable to read tracing configuration from {quoted(path)}: {reason}"
        ) from error
    try:
        configuration = load_tracing(content)
    except ConfigurationError as error:
        raise StartError(str(error)) from error
    return Tracing(configuration)

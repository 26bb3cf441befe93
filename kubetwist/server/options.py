"""The parsed command line, as the server uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from twisted.python.usage import Options

from ..api.flagvalues import FlagValues
from ..api.resource import JSONObject
from ..logs.verbosity import Verbosity
from ..metrics.options import MetricsOptions


class ServerOptions(FlagValues, Protocol):
    """The values of flags and values derived from them; L{kubetwist.cli.kubeapi.Options} provides it."""

    @property
    def program(self) -> str:
        """The program and its command, for messages."""

    @property
    def parent(self) -> Options | None:
        """The options of C{twist}; L{None} in a program that is not C{twist}."""

    @property
    def verbosity(self) -> Verbosity:
        """The log levels of C{--v} and C{--vmodule}."""

    @property
    def metrics_options(self) -> MetricsOptions:
        """The metrics that are served."""

    def __setitem__(self, name: str, value: object, /) -> None:
        """Replace the value of a flag."""

    def formatted_values(self) -> Mapping[str, str]:
        """Return all values as text, without secrets."""

    def typed_values(self) -> JSONObject:
        """Return all values with JSON types, without secrets."""

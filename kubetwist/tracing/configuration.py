"""
The file of C{--tracing-config-file}: the collector of spans, and the sampling rate.

@see: kubernetes/apiserver, C{pkg/server/options/tracing.go}; kubernetes/component-base, C{tracing/api/v1/config.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ..api.configurations import OPTIONAL_INT32, OPTIONAL_STRING, ConfigurationError, Struct, decode_configuration
from ..api.errors import FieldError, aggregate, invalid
from ..api.go.url import (
    URLError,
    parse_url,
)

#: The rate at which all requests are sampled.
MILLION: Final = 1_000_000

_CONFIGURATION: Final = Struct(
    "TracingConfiguration", {"endpoint": OPTIONAL_STRING, "samplingRatePerMillion": OPTIONAL_INT32}
)
_VERSIONS: Final = {f"apiserver.config.k8s.io/{version}": _CONFIGURATION for version in ("v1", "v1beta1", "v1alpha1")}
#: The position of the kind's registration in kube-apiserver, for error messages.
_SCHEME: Final = "k8s.io/apiserver/pkg/server/options/tracing.go:49"


@frozen
class TracingConfiguration:
    """
    Content of the tracing configuration file.

    @ivar endpoint: The gRPC target of the collector; C{""} for the one in the environment, or C{localhost:4317}.
    @ivar rate: Sampled requests per million, of requests without a trusted sampling decision.
    """

    endpoint: str = ""
    rate: int = 0


def load_tracing(content: bytes) -> TracingConfiguration:
    """
    Parse the content of the file.

    @raise ConfigurationError: The content is invalid. The message is kube-apiserver's.
    """
    try:
        if not content:
            raise ConfigurationError("Object 'Kind' is missing in ''")
        decoded = decode_configuration(content, _CONFIGURATION.name, _VERSIONS, _SCHEME)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"failed to read tracing config: unable to decode tracing configuration data: {error}"
        ) from None
    endpoint, rate = decoded["endpoint"], decoded["samplingRatePerMillion"]
    causes = list(_problems(endpoint, rate))
    if causes:
        raise ConfigurationError(f"failed to validate tracing configuration{aggregate(causes)}")
    return TracingConfiguration(endpoint or "", rate or 0)


def _problems(endpoint: str | None, rate: int | None) -> Iterator[FieldError]:
    if rate is not None:
        if rate < 0:
            yield invalid("samplingRatePerMillion", rate, "sampling rate must be positive")
        if rate > MILLION:
            message = "sampling rate per million must be less than or equal to one million"
            yield invalid("samplingRatePerMillion", rate, message)
    if endpoint is None:
        return
    if "//" not in endpoint:
        endpoint = f"dns://{endpoint}"
    try:
        scheme = parse_url(endpoint).scheme
    except URLError as error:
        yield invalid("endpoint", endpoint, str(error))
        return
    if scheme not in ("dns", "unix", "unix-abstract"):
        yield invalid(
            "endpoint",
            endpoint,
            f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See"
            " https://github.com/grpc/grpc/blob/master/doc/naming.md",
        )

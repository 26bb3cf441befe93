"""What can be wrong about the flags of authentication together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..api.go.quote import quoted

#: How OpenID Connect tokens may be signed; never with a secret that both sides know.
SIGNING_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")


def check_flags(options: Any) -> None:
    """
    Check them, before anything is read or made.

    @param options: L{kubetwist.cli.kubeapi.Options}.
    @raise ValueError: They make no sense; the text tells everything that is wrong.
    """
    problems = [*_oidc(options), *_service_accounts(options), *_request_header(options)]
    if problems:
        raise ValueError("; ".join(problems))


def _oidc(options: Any) -> Iterator[str]:
    given = any(name.startswith("oidc-") for name in options.given)
    if options["authentication-config"]:
        if given:
            yield "authentication-config file and oidc-* flags are mutually exclusive"
        return
    if given and not (options["oidc-issuer-url"] and options["oidc-client-id"]):
        yield "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
    for algorithm in options["oidc-signing-algs"]:
        if algorithm not in SIGNING_ALGORITHMS:
            yield f"oidc: unsupported signing alg: {quoted(algorithm)}"


def _service_accounts(options: Any) -> Iterator[str]:
    issuers = options["service-account-issuer"]
    if "" in issuers:
        yield "service-account-issuer should not be an empty string"
    for issuer in dict.fromkeys(issuer for issuer in issuers if issuer and issuers.count(issuer) > 1):
        yield f"service-account-issuer {quoted(issuer)} is already specified"
    longest = options["service-account-max-token-expiration"]
    if longest and not 3600 <= longest <= 1 << 32:
        yield "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"


def _request_header(options: Any) -> Iterator[str]:
    uid = options["requestheader-uid-headers"]
    if uid and not any(name.lower() == "x-remote-uid" for name in uid):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation"
            " will not work"
        )

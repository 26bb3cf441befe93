"""Authentication flags, and the checks across them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...api.flagvalues import FlagValues
from ...api.go.quote import quoted
from ...authentication.signingalgorithms import SIGNING_ALGORITHMS
from ..flagtypes import BOOLEAN, DURATION, PAIR, STRING, STRING_ARRAY, STRINGS, flag_group, one_of

FLAGS: Final = flag_group(
    "Authentication",
    [
        ("anonymous-auth", BOOLEAN, True, "Whether requests without credentials are those of system:anonymous."),
        (
            "authentication-config",
            STRING,
            "",
            "A file with an AuthenticationConfiguration: issuers of JSON Web Tokens, and where anonymous requests may"
            " go. Read again when it changes.",
        ),
        (
            "authentication-token-webhook-config-file",
            STRING,
            "",
            "A kubeconfig that says how to call the webhook that knows tokens. Read again when it changes.",
        ),
        (
            "authentication-token-webhook-cache-ttl",
            DURATION,
            120.0,
            "For how long what that webhook says of a token is remembered; 0 for not at all.",
        ),
        (
            "authentication-token-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "The version of the TokenReviews that it is sent.",
        ),
        (
            "client-ca-file",
            STRING,
            "",
            "Authorities whose client certificates are accepted, besides the one of the data directory.",
        ),
        (
            "enable-bootstrap-token-auth",
            BOOLEAN,
            False,
            "Whether secrets of type bootstrap.kubernetes.io/token in kube-system are tokens.",
        ),
        ("oidc-issuer-url", STRING, "", "An OpenID Connect issuer, https, whose tokens are accepted."),
        ("oidc-client-id", STRING, "", "What the tokens of --oidc-issuer-url must be meant for."),
        ("oidc-ca-file", STRING, "", "The authorities of --oidc-issuer-url; those of the system without it."),
        ("oidc-username-claim", STRING, "sub", "The claim that names the user."),
        (
            "oidc-username-prefix",
            STRING,
            "",
            "What user names begin with; without it the URL of the issuer and #, unless the claim is email. - for"
            " nothing.",
        ),
        ("oidc-groups-claim", STRING, "", "The claim that names the groups of the user, one or several."),
        ("oidc-groups-prefix", STRING, "", "What the names of such groups begin with."),
        ("oidc-required-claim", PAIR, {}, "A claim that tokens must have, as key=value; may be given several times."),
        (
            "oidc-signing-algs",
            STRINGS,
            ("RS256",),
            "How tokens may be signed: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
        ),
        (
            "requestheader-client-ca-file",
            STRING,
            "",
            "Authorities of proxies that say in headers whom they speak for.",
        ),
        (
            "requestheader-allowed-names",
            STRINGS,
            (),
            "Common names of such proxies; whoever those authorities vouch for without it.",
        ),
        ("requestheader-username-headers", STRINGS, (), "Where they say the user name. X-Remote-User is common."),
        ("requestheader-uid-headers", STRINGS, (), "Where they say the uid. X-Remote-Uid is common."),
        ("requestheader-group-headers", STRINGS, (), "Where they say groups. X-Remote-Group is common."),
        (
            "requestheader-extra-headers-prefix",
            STRINGS,
            (),
            "What headers begin with in which they say more. X-Remote-Extra- is common.",
        ),
        (
            "token-auth-file",
            STRING,
            "",
            "Users of bearer tokens, as CSV: token, name, uid and, in quotes, groups.",
        ),
        (
            "api-audiences",
            STRINGS,
            (),
            "What service account tokens must be meant for; --service-account-issuer without it.",
        ),
        (
            "service-account-issuer",
            STRING_ARRAY,
            ("https://kubernetes.default.svc.cluster.local",),
            "Who issues service account tokens. Tokens of others that are named too are accepted.",
        ),
        (
            "service-account-key-file",
            STRING_ARRAY,
            (),
            "Public keys for service account tokens; the one of the key that signs them without it.",
        ),
        (
            "service-account-extend-token-expiration",
            BOOLEAN,
            True,
            "Whether tokens that kubelets ask for are good for a year, as old clients read them only once.",
        ),
        (
            "service-account-max-token-expiration",
            DURATION,
            0.0,
            "The longest life of a service account token; longer ones are shortened. 0 for no limit.",
        ),
        (
            "service-account-lookup",
            BOOLEAN,
            True,
            "Whether service account tokens from secrets end with those secrets.",
        ),
        (
            "service-account-jwks-uri",
            STRING,
            "",
            "Where those who verify service account tokens are told to find the keys; at this server without it.",
        ),
    ],
)


def check_flags(options: FlagValues) -> None:
    """
    Check them, before anything is read or made.

    @raise ValueError: They make no sense; the text tells everything that is wrong.
    """
    problems = [*_oidc(options), *_service_accounts(options), *_request_header(options)]
    if problems:
        raise ValueError("; ".join(problems))


def _oidc(options: FlagValues) -> Iterator[str]:
    given = any(name.startswith("oidc-") for name in options.changed)
    if options["authentication-config"]:
        if given:
            yield "authentication-config file and oidc-* flags are mutually exclusive"
        return
    if given and not (options["oidc-issuer-url"] and options["oidc-client-id"]):
        yield "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
    for algorithm in options["oidc-signing-algs"]:
        if algorithm not in SIGNING_ALGORITHMS:
            yield f"oidc: unsupported signing alg: {quoted(algorithm)}"


def _service_accounts(options: FlagValues) -> Iterator[str]:
    issuers = options["service-account-issuer"]
    if "" in issuers:
        yield "service-account-issuer should not be an empty string"
    for issuer in dict.fromkeys(issuer for issuer in issuers if issuer and issuers.count(issuer) > 1):
        yield f"service-account-issuer {quoted(issuer)} is already specified"
    longest = options["service-account-max-token-expiration"]
    if longest and not 3600 <= longest <= 1 << 32:
        yield "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"


def _request_header(options: FlagValues) -> Iterator[str]:
    uid = options["requestheader-uid-headers"]
    if uid and not any(name.lower() == "x-remote-uid" for name in uid):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation"
            " will not work"
        )

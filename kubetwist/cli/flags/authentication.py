"""Authentication flags, and the checks across them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...api.featuregates import FeatureGates
from ...api.flagvalues import FlagValues
from ...api.go.quote import quoted
from ...authentication.signingalgorithms import SIGNING_ALGORITHMS
from ..flagtypes import BOOLEAN, DURATION, PAIR, STRING, STRING_ARRAY, STRINGS, flag_group, one_of

FLAGS: Final = flag_group(
    "Authentication",
    [
        ("anonymous-auth", BOOLEAN, True, "Accept requests without credentials as user system:anonymous."),
        (
            "authentication-config",
            STRING,
            "",
            "File with an AuthenticationConfiguration: JWT issuers, and paths for anonymous requests. Reloaded when it"
            " changes.",
        ),
        (
            "authentication-token-webhook-config-file",
            STRING,
            "",
            "Kubeconfig of the token authentication webhook. Reloaded when it changes.",
        ),
        (
            "authentication-token-webhook-cache-ttl",
            DURATION,
            120.0,
            "How long to cache responses of the token webhook; 0 disables the cache.",
        ),
        (
            "authentication-token-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "API version of TokenReviews sent to the webhook.",
        ),
        (
            "client-ca-file",
            STRING,
            "",
            "CA bundle for client certificates, in addition to the CA of the data directory.",
        ),
        (
            "enable-bootstrap-token-auth",
            BOOLEAN,
            False,
            "Accept secrets of type bootstrap.kubernetes.io/token in kube-system as tokens.",
        ),
        ("oidc-issuer-url", STRING, "", "URL (https) of the OpenID Connect issuer whose tokens are accepted."),
        ("oidc-client-id", STRING, "", "Client ID; tokens must have it as an audience."),
        ("oidc-ca-file", STRING, "", "CA bundle of --oidc-issuer-url. Default: the system's CAs."),
        ("oidc-username-claim", STRING, "sub", "JWT claim of the user name."),
        (
            "oidc-username-prefix",
            STRING,
            "",
            "Prefix of user names. Default: the issuer URL and #, unless the claim is email. - for no prefix.",
        ),
        ("oidc-groups-claim", STRING, "", "JWT claim of the groups: a string or a list of strings."),
        ("oidc-groups-prefix", STRING, "", "Prefix of group names."),
        ("oidc-required-claim", PAIR, {}, "Required claim of tokens, as key=value; may be repeated."),
        (
            "oidc-signing-algs",
            STRINGS,
            ("RS256",),
            "Allowed signing algorithms: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
        ),
        (
            "requestheader-client-ca-file",
            STRING,
            "",
            "CA bundle of authenticating proxies, which send the user in headers.",
        ),
        (
            "requestheader-allowed-names",
            STRINGS,
            (),
            "Allowed common names of such proxies. Empty allows all certificates of the CA bundle.",
        ),
        ("requestheader-username-headers", STRINGS, (), "Headers with the user name, such as X-Remote-User."),
        ("requestheader-uid-headers", STRINGS, (), "Headers with the uid, such as X-Remote-Uid."),
        ("requestheader-group-headers", STRINGS, (), "Headers with groups, such as X-Remote-Group."),
        (
            "requestheader-extra-headers-prefix",
            STRINGS,
            (),
            "Prefixes of headers with extra attributes, such as X-Remote-Extra-.",
        ),
        (
            "token-auth-file",
            STRING,
            "",
            "CSV file of bearer tokens: token, user name, uid and groups (quoted).",
        ),
        (
            "api-audiences",
            STRINGS,
            (),
            "Identifiers of the API: accepted audiences of service account tokens. Default: --service-account-issuer.",
        ),
        (
            "service-account-issuer",
            STRING_ARRAY,
            ("https://kubernetes.default.svc.cluster.local",),
            "Issuer of service account tokens. Tokens of further issuers (repeated flag) are accepted.",
        ),
        (
            "service-account-key-file",
            STRING_ARRAY,
            (),
            "Public keys that verify service account tokens. Default: the public key of the signing key.",
        ),
        (
            "service-account-extend-token-expiration",
            BOOLEAN,
            True,
            "Extend tokens that kubelets request to one year, for clients that do not reload tokens.",
        ),
        (
            "service-account-max-token-expiration",
            DURATION,
            0.0,
            "Maximum lifetime of a service account token; longer requests are shortened. 0 for no limit.",
        ),
        (
            "service-account-lookup",
            BOOLEAN,
            True,
            "Reject service account tokens whose secret was deleted.",
        ),
        (
            "service-account-jwks-uri",
            STRING,
            "",
            "URI of the JSON Web Key Set in the discovery document. Default: a URL of this server.",
        ),
    ],
)


def check_flags(options: FlagValues) -> None:
    """
    Validate the authentication flags before files are read or created.

    @raise ValueError: Flags are invalid; the text lists all problems.
    """
    features = FeatureGates.from_options(options)
    problems = [
        *_oidc(options, features),
        *_service_accounts(options, features),
        *_request_header(options, features),
    ]
    if problems:
        raise ValueError("; ".join(problems))


def _oidc(options: FlagValues, features: FeatureGates) -> Iterator[str]:
    given = any(name.startswith("oidc-") for name in options.changed)
    if options["authentication-config"]:
        gate = "StructuredAuthenticationConfiguration"
        if not features.enabled(gate):
            yield f"set --feature-gates={gate}=true to use authentication-config file"
        if given:
            yield "authentication-config file and oidc-* flags are mutually exclusive"
        return
    if given and not (options["oidc-issuer-url"] and options["oidc-client-id"]):
        yield "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
    for algorithm in options["oidc-signing-algs"]:
        if algorithm not in SIGNING_ALGORITHMS:
            yield f"oidc: unsupported signing alg: {quoted(algorithm)}"


def _service_accounts(options: FlagValues, features: FeatureGates) -> Iterator[str]:
    binding, validation = "ServiceAccountTokenNodeBinding", "ServiceAccountTokenNodeBindingValidation"
    if features.enabled(binding) and not features.enabled(validation):
        yield (
            f"the {quoted(binding)} feature gate can only be enabled if the {quoted(validation)} feature gate is also"
            " enabled"
        )
    issuers = options["service-account-issuer"]
    if "" in issuers:
        yield "service-account-issuer should not be an empty string"
    for issuer in dict.fromkeys(issuer for issuer in issuers if issuer and issuers.count(issuer) > 1):
        yield f"service-account-issuer {quoted(issuer)} is already specified"
    longest = options["service-account-max-token-expiration"]
    if longest and not 3600 <= longest <= 1 << 32:
        yield "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"


def _request_header(options: FlagValues, features: FeatureGates) -> Iterator[str]:
    uid = options["requestheader-uid-headers"]
    gate = "RemoteRequestHeaderUID"
    if uid and not features.enabled(gate):
        yield f"--requestheader-uid-headers requires the {quoted(gate)} feature to be enabled"
    elif uid and not any(name.lower() == "x-remote-uid" for name in uid):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation"
            " will not work"
        )

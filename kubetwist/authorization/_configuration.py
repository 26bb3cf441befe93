"""
The configuration C{--authorization-config}: the authorizers, their order, and the settings of webhooks.

@see: kubernetes/apiserver, C{pkg/apis/apiserver/validation}; kubernetes, C{pkg/kubeapiserver/authorizer/config.go}.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ..api.configurations import (
    OPTIONAL_BOOL,
    OPTIONAL_STRING,
    STRING,
    ConfigurationError,
    ListOf,
    Struct,
    decode_configuration,
)
from ..api.errors import (
    FieldError,
    aggregate,
    duplicate,
    invalid,
    not_supported,
    required,
)
from ..api.go.durations import (
    format_duration,
    parse_nanoseconds,
)
from ..api.names import validate_dns1123_subdomain
from ..api.resource import JSONObject
from ..client.errors import InvalidRESTConfig
from ..client.kubeconfig import (
    named_files,
    read_kubeconfig,
)
from ..client.restconfig import RESTConfig
from .webhook import WebhookRules

if TYPE_CHECKING:
    from ..cel.authorization import MatchConditions

WEBHOOK: Final = "Webhook"

_SCHEME: Final = "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:31"
_SECOND: Final = 1_000_000_000
_MAX_TIMEOUT: Final = 30 * _SECOND
#: Default values of the TTL fields, in nanoseconds.
_TTLS: Final = {"authorizedTTL": 300 * _SECOND, "unauthorizedTTL": 30 * _SECOND}

_CONFIGURATION: Final = Struct(
    "AuthorizationConfiguration",
    {
        "authorizers": ListOf(
            Struct(
                "AuthorizerConfiguration",
                {
                    "type": STRING,
                    "name": STRING,
                    "webhook": Struct(
                        "WebhookConfiguration",
                        {
                            "authorizedTTL": STRING,
                            "cacheAuthorizedRequests": OPTIONAL_BOOL,
                            "unauthorizedTTL": STRING,
                            "cacheUnauthorizedRequests": OPTIONAL_BOOL,
                            "timeout": STRING,
                            "subjectAccessReviewVersion": STRING,
                            "matchConditionSubjectAccessReviewVersion": STRING,
                            "failurePolicy": STRING,
                            "connectionInfo": Struct(
                                "WebhookConnectionInfo", {"type": STRING, "kubeConfigFile": OPTIONAL_STRING}
                            ),
                            "matchConditions": ListOf(Struct("WebhookMatchCondition", {"expression": STRING})),
                        },
                        optional=True,
                    ),
                },
            )
        )
    },
)
_VERSIONS: Final = {f"apiserver.config.k8s.io/{version}": _CONFIGURATION for version in ("v1", "v1beta1", "v1alpha1")}


@frozen
class AuthorizerConfiguration:
    """
    An entry of AuthorizationConfiguration.

    @ivar kind: The type of the authorizer.
    @ivar name: Its name in the file.
    @ivar rules: The rules of a webhook; L{None} for other types.
    @ivar settings: The connection settings of a webhook.
    """

    kind: str
    name: str
    rules: WebhookRules | None = None
    settings: RESTConfig | None = None


@frozen
class AuthorizationConfiguration:
    """
    The content of --authorization-config.

    @ivar files: The kubeconfig files that it refers to.
    """

    authorizers: tuple[AuthorizerConfiguration, ...]
    files: tuple[Path, ...]


def load_configuration(
    content: bytes, known_types: Collection[str], required_types: Collection[str] = ()
) -> AuthorizationConfiguration:
    """
    Decode and validate the file, and read the kubeconfigs that it names. Blocks on file I/O.

    @param content: The content of the file.
    @param known_types: The known types of authorizers.
    @param required_types: The types that the file must contain.
    @raise ValueError: The file is invalid; the text is the reference's.
    """
    authorizers: list[JSONObject] = []
    if content:
        try:
            authorizers = decode_configuration(content, _CONFIGURATION.name, _VERSIONS, _SCHEME)["authorizers"]
            for authorizer in authorizers:
                if authorizer["webhook"] is not None:
                    _read_durations(authorizer["webhook"])
        except ValueError as error:
            raise ConfigurationError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    causes: list[FieldError] = []
    conditions = _validate(authorizers, known_types, causes)
    if causes:
        raise ConfigurationError(aggregate(causes).removeprefix(": "))
    problems = [
        f"expected name {one['type'].lower()} for authorizer {one['type']} instead of {one['name']}"
        for one in authorizers
        if one["type"] != WEBHOOK and one["name"] != one["type"].lower()
    ]
    missing = sorted(set(required_types) - {one["type"] for one in authorizers})
    if missing:
        problems.append(f"missing required types: [{' '.join(missing)}]")
    if problems:
        raise ConfigurationError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    files: list[Path] = []
    compiled = tuple(_compile(one, conditions.get(index), files) for index, one in enumerate(authorizers))
    return AuthorizationConfiguration(compiled, tuple(files))


def _read_durations(webhook: JSONObject) -> None:
    for name in (*_TTLS, "timeout"):
        text = webhook[name]
        webhook[name] = (parse_nanoseconds(text) if text else 0) or _TTLS.get(name, 0)


def _validate(
    authorizers: list[JSONObject], known_types: Collection[str], causes: list[FieldError]
) -> dict[int, MatchConditions | None]:
    """Return the match conditions of webhooks by index of the authorizer; add errors to C{causes}."""
    if not authorizers:
        causes.append(required("authorizers", "at least one authorization mode must be defined"))
    types: set[str] = set()
    names: set[str] = set()
    conditions: dict[int, Any] = {}
    for index, one in enumerate(authorizers):
        path = f"authorizers[{index}]"
        kind, name, webhook = one["type"], one["name"], one["webhook"]
        if not kind:
            causes.append(required(f"{path}.type"))
            continue
        if kind not in known_types:
            causes.append(not_supported(f"{path}.type", kind, sorted(known_types)))
            continue
        if kind in types and kind != WEBHOOK:
            causes.append(duplicate(f"{path}.type", kind))
            continue
        types.add(kind)
        if not name:
            causes.append(required(f"{path}.name"))
        elif name in names:
            causes.append(duplicate(f"{path}.name", name))
        elif problems := validate_dns1123_subdomain(name):
            causes.append(invalid(f"{path}.name", name, f"authorizer name is invalid: {', '.join(problems)}"))
        names.add(name)
        if kind != WEBHOOK:
            if webhook is not None:
                causes.append(invalid(f"{path}.webhook", "non-null", "may only be specified when type=Webhook"))
        elif webhook is None:
            causes.append(required(f"{path}.webhook", "required when type=Webhook"))
        else:
            conditions[index] = _validate_webhook(webhook, path, causes)
    return conditions


def _validate_webhook(webhook: JSONObject, path: str, causes: list[FieldError]) -> MatchConditions | None:
    timeout = webhook["timeout"]
    if not timeout:
        causes.append(required(f"{path}.timeout"))
    elif not 0 < timeout <= _MAX_TIMEOUT:
        causes.append(invalid(f"{path}.timeout", format_duration(timeout), "must be > 0s and <= 30s"))
    for name in _TTLS:
        if webhook[name] < 0:
            causes.append(invalid(f"{path}.{name}", format_duration(webhook[name]), "must be > 0s"))
    _choice(webhook, "subjectAccessReviewVersion", ("v1", "v1beta1"), path, causes)
    version = webhook["matchConditionSubjectAccessReviewVersion"]
    if version or webhook["matchConditions"]:
        _choice(
            webhook,
            "matchConditionSubjectAccessReviewVersion",
            ("v1",),
            path,
            causes,
            "required if match conditions are specified",
        )
    _choice(webhook, "failurePolicy", ("NoOpinion", "Deny"), path, causes)
    _validate_connection(webhook["connectionInfo"], f"{path}.connectionInfo", causes)
    if not webhook["matchConditions"]:
        return None
    from ..cel.authorization import compile_match_conditions

    conditions, problems = compile_match_conditions(webhook["matchConditions"], path)
    causes += problems
    return conditions


def _choice(
    fields: JSONObject, name: str, choice: tuple[str, ...], path: str, causes: list[FieldError], detail: str = ""
) -> None:
    value = fields[name]
    if not value:
        causes.append(required(f"{path}.{name}", detail))
    elif value not in choice:
        causes.append(not_supported(f"{path}.{name}", value, choice))


def _validate_connection(info: JSONObject, path: str, causes: list[FieldError]) -> None:
    kind, file = info["type"], info["kubeConfigFile"]
    path_of_file = f"{path}.kubeConfigFile"
    if kind == "InClusterConfig":
        # The server does not run in a cluster whose webhooks it could call.
        causes.append(invalid(f"{path}.type", kind, "not allowed for kube-apiserver"))
    elif kind != "KubeConfigFile":
        _choice(info, "type", ("InClusterConfig", "KubeConfigFile"), path, causes)
    elif not file:
        causes.append(required(path_of_file))
    elif not os.path.isabs(file):
        causes.append(invalid(path_of_file, file, "must be an absolute path"))
    else:
        try:
            is_regular = stat.S_ISREG(os.stat(file).st_mode)
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            causes.append(invalid(path_of_file, file, f"error loading file: stat {file}: {reason}"))
        else:
            if not is_regular:
                causes.append(invalid(path_of_file, file, "must be a regular file"))


def _compile(one: JSONObject, conditions: MatchConditions | None, files: list[Path]) -> AuthorizerConfiguration:
    """Return the configuration of an authorizer; add the files that a webhook's kubeconfig names to C{files}."""
    webhook = one["webhook"]
    if webhook is None:
        return AuthorizerConfiguration(one["type"], one["name"])
    file = Path(webhook["connectionInfo"]["kubeConfigFile"])
    settings = read_kubeconfig(file)
    try:
        files += [file, *named_files(file.read_bytes(), file.parent)]
    except OSError as error:
        raise InvalidRESTConfig(f"cannot read {file}: {error.strerror}") from error
    rules = WebhookRules(
        version=webhook["subjectAccessReviewVersion"],
        timeout=webhook["timeout"] / _SECOND,
        authorized_ttl=_seconds(webhook, "authorizedTTL", "cacheAuthorizedRequests"),
        unauthorized_ttl=_seconds(webhook, "unauthorizedTTL", "cacheUnauthorizedRequests"),
        deny_on_error=webhook["failurePolicy"] == "Deny",
        conditions=conditions,
    )
    return AuthorizerConfiguration(WEBHOOK, one["name"], rules, settings)


def _seconds(webhook: JSONObject, name: str, switch: str) -> float:
    return 0.0 if webhook[switch] is False else webhook[name] / _SECOND

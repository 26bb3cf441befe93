"""
--encryption-provider-config: which resources are encrypted, how, and with which keys.

Errors and C{repr}s do not contain secrets.

@see: kubernetes/apiserver, C{pkg/server/options/encryptionconfig/config.go} and C{pkg/apis/apiserver/validation}.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import field, frozen

from ...api.configurations import (
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    ConfigurationError,
    ListOf,
    Struct,
    decode_configuration,
)
from ...api.errors import (
    FieldError,
    aggregate,
    invalid,
    required,
)
from ...api.go.durations import (
    format_duration,
    parse_nanoseconds,
)
from ...api.go.quote import quoted
from ...api.go.url import (
    URLError,
    parse_url,
)
from ...api.resource import (
    GroupResource,
    JSONObject,
)

AESGCM, AESCBC, SECRETBOX, KMS, IDENTITY = "aesgcm", "aescbc", "secretbox", "kms", "identity"

_SCHEME: Final = "pkg/runtime/scheme.go:110"
_KEYS: Final = ListOf(Struct("Key", {"name": STRING, "secret": STRING}))
_CONFIGURATION: Final = Struct(
    "EncryptionConfiguration",
    {
        "resources": ListOf(
            Struct(
                "ResourceConfiguration",
                {
                    "resources": ListOf(STRING),
                    "providers": ListOf(
                        Struct(
                            "ProviderConfiguration",
                            {
                                AESGCM: Struct("AESConfiguration", {"keys": _KEYS}, optional=True),
                                AESCBC: Struct("AESConfiguration", {"keys": _KEYS}, optional=True),
                                SECRETBOX: Struct("SecretboxConfiguration", {"keys": _KEYS}, optional=True),
                                IDENTITY: Struct("IdentityConfiguration", {}, optional=True),
                                KMS: Struct(
                                    "KMSConfiguration",
                                    {
                                        "apiVersion": STRING,
                                        "name": STRING,
                                        "cachesize": OPTIONAL_INT32,
                                        "endpoint": STRING,
                                        "timeout": OPTIONAL_STRING,
                                    },
                                    optional=True,
                                ),
                            },
                        )
                    ),
                },
            )
        )
    },
)
_VERSIONS: Final = {"apiserver.config.k8s.io/v1": _CONFIGURATION}

_DEFAULT_TIMEOUT: Final = 3_000_000_000
#: The valid key sizes of the providers, in bytes.
_KEY_SIZES: Final = {AESGCM: (16, 24, 32), AESCBC: (16, 24, 32), SECRETBOX: (32,)}
#: Stored kinds that are no resources of the API.
_NO_RESOURCES: Final = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
_EVERYTHING: Final = GroupResource("*", "*")
_NO_PROVIDER: Final = (
    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"
)
_KMS_V1: Final = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  "
    "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)


@frozen
class Key:
    """A key in the file."""

    name: str
    secret: bytes = field(repr=False)


@frozen
class KeyService:
    """
    A key management service in the file.

    @ivar path: The path of its socket; a path that begins with C{"@"} is in the abstract namespace.
    @ivar timeout: Timeout of each call, in seconds.
    """

    name: str
    path: str
    timeout: float


@frozen
class Provider:
    """
    An encryption provider.

    @ivar kind: C{AESGCM}, C{AESCBC}, C{SECRETBOX}, C{KMS} or C{IDENTITY}.
    @ivar keys: The keys of the first three kinds, in order.
    @ivar service: The service of C{KMS}.
    """

    kind: str
    keys: tuple[Key, ...] = ()
    service: KeyService | None = None


@frozen
class Rule:
    """A rule for some resources: the first provider encrypts; all are tried to decrypt."""

    resources: tuple[GroupResource, ...]
    providers: tuple[Provider, ...]


def load_configuration(content: bytes, path: str, *, reload: bool) -> tuple[Rule, ...]:
    """
    Parse the file.

    @param path: The path of the file, for messages.
    @param reload: Whether changes of the file are loaded.
    @raise ConfigurationError: It is invalid; the text is the reference's.
    """
    if not content:
        raise ConfigurationError(
            "error while parsing file: error while loading file: "
            f"encryption provider configuration file {quoted(path)} is empty"
        )
    try:
        decoded = decode_configuration(content, _CONFIGURATION.name, _VERSIONS, _SCHEME, secret=True)["resources"]
        for provider in (provider for rule in decoded for provider in rule["providers"] if provider[KMS] is not None):
            _complete(provider[KMS])
    except ValueError as error:
        raise ConfigurationError(
            f"error while parsing file: error decoding encryption provider configuration file {quoted(path)}: {error}"
        ) from None
    causes = list(_problems(decoded, reload))
    if causes:
        raise ConfigurationError(f"error while parsing file{aggregate(causes)}")
    try:
        return tuple(_rules(decoded))
    except ValueError as error:
        raise ConfigurationError(f"error while building transformers: {error}") from None


def shown(resource: GroupResource) -> str:
    """A resource in the file."""
    return "*." if resource == GroupResource("", "*") else str(resource)


def parse_group_resource(text: str) -> GroupResource:
    """Parse C{"deployments.apps"}; the part after the first dot is the group."""
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def _complete(service: JSONObject) -> None:
    """Set the defaults."""
    timeout = service["timeout"]
    service["timeout"] = _DEFAULT_TIMEOUT if timeout is None else parse_nanoseconds(timeout)
    service["apiVersion"] = service["apiVersion"] or "v1"
    if service["cachesize"] is None and service["apiVersion"] == "v1":
        service["cachesize"] = 1000


# Validation.


def _problems(rules: Sequence[JSONObject], reload: bool) -> Iterator[FieldError]:
    if not rules:
        yield required("resources", "at least one resources is required")
    names: set[str] = set()
    for index, rule in enumerate(rules):
        resources, providers = f"resources[{index}].resources", f"resources[{index}].providers"
        if not rule["resources"]:
            yield required(resources, f"at least one {resources} is required")
        yield from _overlaps(rule["resources"], resources)
        for place, resource in enumerate(rule["resources"]):
            reason = _bad_resource(resource)
            if reason:
                yield invalid(f"{resources}[{place}]", resource, reason)
        if not rule["providers"]:
            yield required(providers, f"at least one {providers} is required")
        for place, provider in enumerate(rule["providers"]):
            yield from _provider_problems(provider, f"{providers}[{place}]", names, reload)


def _overlaps(texts: Sequence[str], where: str) -> Iterator[FieldError]:
    resources = [parse_group_resource(text) for text in texts]
    if len(set(resources)) < len(resources):
        yield invalid(where, texts, "the same resource cannot be specified multiple times")
    groups = Counter(one.group for one in resources)
    if len(resources) > 1 and (
        _EVERYTHING in resources or any(one.resource == "*" and groups[one.group] > 1 for one in resources)
    ):
        yield invalid(
            where,
            texts,
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they "
            "will be masked",
        )


def _bad_resource(text: str) -> str:
    if text.lower() != text:
        return "resource name should not contain capital letters"
    if text == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if text in _NO_RESOURCES:
        return "resources which do not have REST API/s cannot be encrypted"
    resource = parse_group_resource(text)
    if resource.group == "events.k8s.io":
        return (
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the "
            "config file"
        )
    if resource.group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if resource.group == "*" and resource.resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _provider_problems(provider: JSONObject, where: str, names: set[str], reload: bool) -> Iterator[FieldError]:
    found = [kind for kind in (KMS, AESGCM, AESCBC, SECRETBOX, IDENTITY) if provider[kind] is not None]
    if not found:
        yield invalid(where, _without_secrets(provider), _NO_PROVIDER)
        return
    if len(found) > 1:
        reason = "more than one provider specified in a single element, should split into different list elements"
        yield invalid(where, _without_secrets(provider), reason)
    kind = found[0]
    if kind == KMS:
        yield from _service_problems(provider[KMS], f"{where}.kms", names, reload)
        names.add(provider[KMS]["name"])
    elif kind != IDENTITY:
        keys, path = provider[kind]["keys"], f"{where}.{kind}.keys"
        if not keys:
            yield required(path, "at least one keys is required")
        for index, key in enumerate(keys):
            yield from _key_problems(key, f"{path}[{index}]", _KEY_SIZES[kind])


def _without_secrets(provider: JSONObject) -> JSONObject:
    """Return a provider as the reference prints it, but without the secrets, which it also prints."""

    def keys(one: JSONObject | None) -> JSONObject | None:
        return one and {"Keys": [{"Name": key["name"], "Secret": "REDACTED"} for key in one["keys"]]}

    service = provider[KMS]
    return {
        "AESGCM": keys(provider[AESGCM]),
        "AESCBC": keys(provider[AESCBC]),
        "Secretbox": keys(provider[SECRETBOX]),
        "Identity": provider[IDENTITY],
        "KMS": service
        and {
            "APIVersion": service["apiVersion"],
            "Name": service["name"],
            "CacheSize": service["cachesize"],
            "Endpoint": service["endpoint"],
            "Timeout": format_duration(service["timeout"]),
        },
    }


def _key_problems(key: JSONObject, where: str, sizes: tuple[int, ...]) -> Iterator[FieldError]:
    if not key["name"]:
        yield required(f"{where}.name", "name is a mandatory field for a key")
    if not key["secret"]:
        yield required(f"{where}.secret", "secret is a mandatory field for a key")
        return
    try:
        size = len(_decoded(key["secret"]))
    except ValueError:
        yield invalid(f"{where}.secret", "REDACTED", "secrets must be base64 encoded")
        return
    if size not in sizes:
        expected = " ".join(map(str, sizes))
        reason = f"secret is not of the expected length, got {size}, expected one of [{expected}]"
        yield invalid(f"{where}.secret", "REDACTED", reason)


def _decoded(secret: str) -> bytes:
    """
    Decode base64 as Go does, which ignores line breaks.

    @raise ValueError: It is invalid.
    """
    try:
        return base64.b64decode(secret.replace("\r", "").replace("\n", ""), validate=True)
    except binascii.Error:
        # The cause may quote the secret.
        raise ValueError("illegal base64 data") from None


def _service_problems(service: JSONObject, where: str, names: set[str], reload: bool) -> Iterator[FieldError]:
    name, version, size = service["name"], service["apiVersion"], service["cachesize"]
    if not name:
        yield required(f"{where}.name", "name is a mandatory field for a provider")
    if version != "v1" and ":" in name:
        yield invalid(f"{where}.name", name, f"invalid KMS provider name {name}, must not contain ':'")
    if (reload or version != "v1") and name in names:
        yield invalid(f"{where}.name", name, f"duplicate KMS provider name {name}, names must be unique")
    if service["timeout"] <= 0:
        yield invalid(f"{where}.timeout", format_duration(service["timeout"]), "timeout should be a positive value")
    endpoint = service["endpoint"]
    if not endpoint:
        yield invalid(f"{where}.endpoint", "", "endpoint is a mandatory field for a kms")
    else:
        reason = _bad_endpoint(endpoint)
        if reason:
            yield invalid(f"{where}.endpoint", endpoint, reason)
    if version != "v1" and size is not None:
        yield invalid(f"{where}.cachesize", size, "cachesize is not supported in v2")
    if version == "v1" and size == 0:
        yield invalid(f"{where}.cachesize", size, "cachesize should be a positive value, or negative to disable")
    if version not in ("v1", "v2"):
        reason = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        yield invalid(f"{where}.apiVersion", version, reason)


def _bad_endpoint(endpoint: str) -> str:
    try:
        scheme = parse_url(endpoint).scheme
    except URLError as error:
        return f"invalid endpoint for kms provider, error: {error}"
    return "" if scheme == "unix" else f"unsupported scheme {quoted(scheme)} for KMS provider, only unix is supported"


# Validation.


def _rules(decoded: Sequence[JSONObject]) -> Iterator[Rule]:
    seen: set[GroupResource] = set()
    for rule in decoded:
        providers = tuple(_provider(provider) for provider in rule["providers"])
        resources = tuple(parse_group_resource(text) for text in rule["resources"])
        for resource in resources:
            for wider in (GroupResource(resource.group, "*"), _EVERYTHING):
                if wider in seen:
                    raise ValueError(
                        f"resource {quoted(shown(resource))} is masked by earlier rule {quoted(shown(wider))}"
                    )
            seen.add(resource)
        yield Rule(resources, providers)


def _provider(provider: JSONObject) -> Provider:
    kind = next(kind for kind in (AESGCM, AESCBC, SECRETBOX, KMS, IDENTITY) if provider[kind] is not None)
    value: Any = provider[kind]
    if kind == IDENTITY:
        return Provider(kind)
    if kind != KMS:
        return Provider(kind, tuple(Key(key["name"], _decoded(key["secret"])) for key in value["keys"]))
    if value["apiVersion"] == "v1":
        raise ValueError(_KMS_V1)
    path = os.fsdecode(parse_url(value["endpoint"]).path)
    # A path that begins with "@" is an abstract socket, outside the file system.
    path = path.removeprefix("/") if path.startswith("/@") else path
    return Provider(kind, service=KeyService(value["name"], path, value["timeout"] / 1_000_000_000))

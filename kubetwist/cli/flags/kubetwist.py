"""Flags that kube-apiserver does not have: data directory, Kubernetes version, web UI."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from ...api.flagvalues import FlagValues
from ..flagtypes import BOOLEAN, NATURAL, PAIR, STRING, STRINGS, FlagType, flag_group

#: Default of --kubernetes-version.
DEFAULT_KUBERNETES_VERSION: Final = "1.36"

#: Maximum of --workers.
_MAX_WORKERS: Final = 64


def parse_workers(text: str) -> int:
    """
    Parse the value of C{--workers}.

    @raise ValueError: It is neither C{auto} nor a number up to 64.
    """
    if text == "auto":
        return min(max(len(os.sched_getaffinity(0)) - 1, 1), _MAX_WORKERS)
    try:
        count: int = NATURAL.parse(text)
    except ValueError:
        count = -1
    if not 0 <= count <= _MAX_WORKERS:
        raise ValueError(f"it must be auto, or a number between 0 and {_MAX_WORKERS}")
    return count


FLAGS: Final = flag_group(
    "kubetwist",
    [
        (
            "data-dir",
            STRING,
            "./kubetwist-data",
            "Directory of certificates, keys, admin.kubeconfig and the embedded store. Created at the first start.",
        ),
        (
            "in-memory",
            BOOLEAN,
            False,
            "Persist nothing: objects are kept in memory. Without --data-dir, the data directory is a temporary one"
            " that is removed at exit.",
        ),
        (
            "kubernetes-version",
            STRING,
            DEFAULT_KUBERNETES_VERSION,
            "The Kubernetes release whose API is served, 1.25 or later.",
        ),
        (
            "workers",
            FlagType(parse_workers, "count"),
            0,
            "Number of processes that serve requests, beside a process with the storage and the controllers. 0 for one"
            " process that does everything; auto for one per CPU but one.",
        ),
        (
            "hardened",
            BOOLEAN,
            False,
            "Secure settings: TLS 1.3, anonymous requests for health checks only, an audit log and a key for Secrets in"
            " the data directory, the baseline policy for pods, no external IPs, NodeRestriction and"
            " OwnerReferencesPermissionEnforcement, no profiling. Flags that weaken these are refused.",
        ),
        ("enable-ui", BOOLEAN, True, "Serve a web UI at /ui."),
        (
            "ui-sign-in-link",
            BOOLEAN,
            True,
            "Log a sign-in link for the web UI at startup. It signs a browser on this machine in as the admin, once,"
            " within 15 minutes.",
        ),
        (
            "ui-external-url",
            STRING,
            "",
            "URL (https) at which browsers reach the web UI, without a path. Default: the host of each request, if it"
            " is this machine, the advertised address or --external-hostname.",
        ),
        (
            "ui-oidc-client-id",
            STRING,
            "",
            "Client ID for signing in to the web UI with OpenID Connect; an accepted audience of the issuer's tokens."
            " The provider must allow the redirect URI https://HOST/ui/oidc/callback.",
        ),
        (
            "ui-oidc-client-secret-file",
            STRING,
            "",
            "File with the secret of --ui-oidc-client-id; read again when it changes. Default: a public client, with"
            " PKCE only.",
        ),
        (
            "ui-oidc-issuer-url",
            STRING,
            "",
            "Issuer for signing in to the web UI. Default: --oidc-issuer-url, or the first JWT issuer of"
            " --authentication-config.",
        ),
        (
            "ui-oidc-scopes",
            STRINGS,
            ("profile", "email"),
            "Scopes that are requested in addition to openid. With offline_access, sessions outlast their ID tokens.",
        ),
        (
            "ui-oidc-button",
            STRING,
            "Sign in with OpenID Connect",
            "Text of the button of the web UI that begins this.",
        ),
        (
            "enable-swagger-ui",
            BOOLEAN,
            True,
            "Serve Swagger UI at /swagger-ui, if --enable-ui is set.",
        ),
        (
            "plugin-config-file",
            PAIR,
            {},
            "Configuration file of an authenticator or authorizer that is a plugin, as NAME=PATH with the plugin's"
            " name; repeat it for several plugins. The file is reloaded when it changes.",
        ),
    ],
)

#: An origin of https: a host, and optionally a port.
_ORIGIN: Final = re.compile(r"https://([a-zA-Z0-9.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?/?")


def check_flags(options: FlagValues) -> None:
    """
    Validate the flags of the web UI.

    @raise ValueError: Flags are invalid; the text lists all problems.
    """
    problems = "; ".join(_ui(options))
    if problems:
        raise ValueError(problems)


def _ui(options: FlagValues) -> Iterator[str]:
    if options["ui-external-url"] and not _ORIGIN.fullmatch(options["ui-external-url"]):
        yield "--ui-external-url must be https://HOST or https://HOST:PORT"
    if not options["ui-oidc-client-id"]:
        if any(name.startswith("ui-oidc-") for name in options.changed):
            yield "--ui-oidc-* flags need --ui-oidc-client-id"
        return
    if not options["enable-ui"]:
        yield "--ui-oidc-client-id needs --enable-ui"
    if not options["oidc-issuer-url"] and not options["authentication-config"]:
        yield "--ui-oidc-client-id needs --oidc-issuer-url or --authentication-config"
    if not options["ui-oidc-button"].strip():
        yield "--ui-oidc-button must not be empty"
    for scope in options["ui-oidc-scopes"]:
        if not re.fullmatch(r"[!#-\[\]-~]+", scope):
            yield f"--ui-oidc-scopes: {scope!r} is not a scope"

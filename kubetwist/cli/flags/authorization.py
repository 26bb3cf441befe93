"""Authorization flags."""

from __future__ import annotations

from typing import Final

from ...api.featuregates import FeatureGates
from ...api.flagvalues import FlagValues
from ..flagtypes import DURATION, STRING, STRINGS, flag_group, one_of

FLAGS: Final = flag_group(
    "Authorization",
    [
        (
            "authorization-mode",
            STRINGS,
            (),
            "Ordered list of authorizers. Members of system:masters are always allowed.",
        ),
        (
            "authorization-policy-file",
            STRING,
            "",
            "File with the ABAC policy: one JSON object per line. Reloaded when it changes.",
        ),
        (
            "authorization-config",
            STRING,
            "",
            "File with an AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*:"
            " several webhooks with match conditions. Reloaded when it changes.",
        ),
        (
            "authorization-webhook-config-file",
            STRING,
            "",
            "Kubeconfig of the authorization webhook (mode Webhook). Reloaded when it changes.",
        ),
        (
            "authorization-webhook-cache-authorized-ttl",
            DURATION,
            300.0,
            "How long to cache allowed responses of the webhook; 0 disables the cache.",
        ),
        (
            "authorization-webhook-cache-unauthorized-ttl",
            DURATION,
            30.0,
            "How long to cache denied responses of the webhook; 0 disables the cache.",
        ),
        (
            "authorization-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "API version of SubjectAccessReviews sent to the webhook.",
        ),
    ],
)


def check_flags(options: FlagValues, features: FeatureGates) -> None:
    """
    Validate the authorization flags before files are read.

    @raise ValueError: A flag needs a feature gate.
    """
    gate = "StructuredAuthorizationConfiguration"
    if options["authorization-config"] and not features.enabled(gate):
        raise ValueError(f"--authorization-config cannot be used without enabling {gate} feature flag")

"""Authorization flags."""

from __future__ import annotations

from typing import Final

from ..flagtypes import DURATION, STRING, STRINGS, flag_group, one_of

FLAGS: Final = flag_group(
    "Authorization",
    [
        (
            "authorization-mode",
            STRINGS,
            (),
            "Who is asked whether a request is allowed, in this order. Members of system:masters may do everything.",
        ),
        (
            "authorization-policy-file",
            STRING,
            "",
            "What the mode ABAC allows: a JSON object a line. Read again when it changes.",
        ),
        (
            "authorization-config",
            STRING,
            "",
            "A file with an AuthorizationConfiguration, instead of --authorization-mode and --authorization-webhook-*:"
            " several webhooks, and what they are asked about. Read again when it changes.",
        ),
        (
            "authorization-webhook-config-file",
            STRING,
            "",
            "A kubeconfig that says how to call the webhook of the mode Webhook. Read again when it changes.",
        ),
        (
            "authorization-webhook-cache-authorized-ttl",
            DURATION,
            300.0,
            "For how long it is remembered what that webhook allows; 0 for not at all.",
        ),
        (
            "authorization-webhook-cache-unauthorized-ttl",
            DURATION,
            30.0,
            "For how long it is remembered what that webhook does not allow; 0 for not at all.",
        ),
        (
            "authorization-webhook-version",
            one_of("v1", "v1beta1"),
            "v1beta1",
            "The version of the SubjectAccessReviews that it is sent.",
        ),
    ],
)

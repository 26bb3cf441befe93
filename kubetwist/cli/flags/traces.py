"""Tracing flags."""

from __future__ import annotations

from typing import Final

from ..flagtypes import STRING, flag_group

FLAGS: Final = flag_group(
    "Traces",
    [
        (
            "tracing-config-file",
            STRING,
            "",
            "A file with an apiserver.config.k8s.io/v1 TracingConfiguration: how many requests are traced, and which"
            " OpenTelemetry collector is sent their spans. Needs kubetwist[tracing].",
        ),
    ],
)

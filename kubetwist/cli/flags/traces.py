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
            "File with an apiserver.config.k8s.io/v1 TracingConfiguration: sampling rate and OpenTelemetry collector."
            " Needs kubetwist[tracing].",
        ),
    ],
)

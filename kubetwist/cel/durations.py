"""The durations of expressions in this process, for metrics of servers that do not import CEL."""

from __future__ import annotations

from typing import Final

from kubetwist.metrics.registry import Histogram

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Seconds of compilations, and of evaluations.
COMPILATION: Final = Histogram(_BOUNDS)
EVALUATION: Final = Histogram(_BOUNDS)

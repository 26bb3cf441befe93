"""The emulated Kubernetes version, and the content of C{/version}."""

from __future__ import annotations

import platform
import re
import sys
from typing import Final

from ..api.featuregates import FeatureGates, format_release
from ..schema.releasefiles import available_versions

_VERSION: Final = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.[0-9]+)?")
#: The patch releases that kubetwist is compared with; the first release of other versions.
_PATCH: Final = {"1.31": 14, "1.32": 13, "1.33": 13, "1.34": 9, "1.35": 6, "1.36": 2}


def check_kubernetes_version(text: str) -> str:
    """
    Read C{--kubernetes-version}.

    @return: The minor version, such as C{"1.36"}.
    @raise ValueError: There are no types of the version.
    """
    match = _VERSION.fullmatch(text)
    version = f"{match[1]}.{match[2]}" if match else text
    available = available_versions()
    if version not in available:
        raise ValueError(f"--kubernetes-version must be one of {', '.join(available)}, not {text}")
    return version


def git_version(version: str) -> str:
    """Return C{"v1.36.2"} for C{"1.36"}."""
    return f"v{version}.{_PATCH.get(version, 0)}"


def version_document(features: FeatureGates) -> dict[str, str]:
    """Return the content of C{/version}."""
    major, minor = features.release
    document = {"major": str(major), "minor": str(minor)}
    if features.since(1, 33):
        document |= {
            "emulationMajor": str(features.emulated[0]),
            "emulationMinor": str(features.emulated[1]),
            "minCompatibilityMajor": str(features.minimum[0]),
            "minCompatibilityMinor": str(features.minimum[1]),
        }
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return document | {
        "gitVersion": git_version(format_release(features.release)),
        "gitCommit": "",
        "gitTreeState": "archive",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{machine}",
    }

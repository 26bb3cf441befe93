"""Pods for tests of validation, and their validation errors."""

from __future__ import annotations

from typing import Any

import orjson

from kubetwist.registry.strategies import strategy_for

CONTAINER = {"name": "c", "image": "app:1"}
METADATA = {"name": "x", "namespace": "ns", "uid": "u"}
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_C = "container.seccomp.security.alpha.kubernetes.io/c"
APP_ARMOR_C = "container.apparmor.security.beta.kubernetes.io/c"
MIRROR = "kubernetes.io/config.mirror"


def pod(annotations: dict[str, str] | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a pod with defaults, as it is validated."""
    metadata = {**METADATA, **({"annotations": annotations} if annotations else {})}
    obj: dict[str, Any] = orjson.loads(
        orjson.dumps({"metadata": metadata, "spec": {"containers": [CONTAINER], **spec}})
    )
    strategy_for("", "Pod").default(obj)
    strategy_for("", "Pod").prepare_for_create(obj)
    if status is not None:
        obj["status"] = status
    return obj


def problems(annotations: dict[str, str] | None = None, **spec: Any) -> list[str]:
    """Return the validation errors of a new pod."""
    return [str(cause) for cause in strategy_for("", "Pod").validate(pod(annotations, **spec))]


def in_container(**parts: Any) -> list[str]:
    """Return the errors of a pod whose container has C{parts}, without the path of the container."""
    return [
        one.removeprefix("spec.containers[0].")
        for one in problems(containers=[{**CONTAINER, **parts}], volumes=VOLUMES)
    ]


def in_volume(**source: Any) -> list[str]:
    """Return the errors of a volume, without its path."""
    found = problems(volumes=[{"name": "v", **source}], serviceAccountName="a")
    return [one.removeprefix("spec.volumes[0]").removeprefix(".") for one in found]


VOLUMES = [{"name": "e", "emptyDir": {}}, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}]

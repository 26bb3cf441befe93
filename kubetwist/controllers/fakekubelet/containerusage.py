"""
Usage of resources by one simulated container.

It is stated, in this order, by an annotation of its pod for this container (C{kubetwist.dev/usage-cpu.NAME}), for all
its containers (C{kubetwist.dev/usage-cpu}), and by the configuration of its image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.quantity import Quantity
from ..fakeimages import Usage

#: Prefix of annotations; the name of the resource follows, and after a dot the name of a container.
ANNOTATION: Final = "kubetwist.dev/usage-"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
#: The usage of a container for which nothing is configured.
DEFAULTS: Final[Mapping[str, Quantity]] = {
    "cpu": Quantity.parse("1m"),
    "memory": Quantity.parse("16Mi"),
    EPHEMERAL_STORAGE: Quantity.parse("1Mi"),
}


def container_usage(
    annotations: Mapping[str, str], container: str, configured: Usage | None, resource: str
) -> Quantity:
    """
    Return what a running container uses of a resource. Invalid annotations are ignored.

    @param annotations: The annotations of the pod.
    @param container: The name of the container.
    @param configured: The usage of its image; L{None} if nothing is configured.
    @param resource: C{"cpu"}, C{"memory"} or C{"ephemeral-storage"}.
    """
    amount = DEFAULTS[resource] if configured is None else getattr(configured, resource.replace("-", "_"))
    # The more specific annotation is last.
    for key in (f"{ANNOTATION}{resource}", f"{ANNOTATION}{resource}.{container}") if annotations else ():
        annotated = _amount(annotations.get(key))
        amount = amount if annotated is None else annotated
    return amount


def _amount(text: str | None) -> Quantity | None:
    """Return the amount in an annotation; L{None} if it is missing or invalid."""
    if not text:
        return None
    try:
        amount = Quantity.parse(text)
    except ValueError:
        return None
    return amount if amount.sign() >= 0 else None

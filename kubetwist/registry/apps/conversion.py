"""
The annotations of apps/v1 that represent fields of internal types.

See kubernetes, C{pkg/apis/apps/v1/conversion.go}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.listoptions import parse_int64
from ...api.resource import GroupVersionKind, JSONObject
from ..generic.internaltypes import ConversionError, InternalType, replace_annotations

#: Generation of a DaemonSet's template.
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
#: Revision of a Deployment for a rollback.
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"


def _template_generation(gvk: GroupVersionKind, obj: JSONObject) -> None:
    annotations = obj["metadata"]["annotations"]
    text = annotations.get(TEMPLATE_GENERATION)
    if text is not None:
        try:
            annotations[TEMPLATE_GENERATION] = str(parse_int64(text))
        except ValueError as error:
            raise ConversionError(str(error)) from None


def _rollback_to(gvk: GroupVersionKind, obj: JSONObject) -> None:
    annotations = obj["metadata"]["annotations"]
    text = annotations.get(ROLLBACK_TO)
    if text:
        try:
            annotations[ROLLBACK_TO] = str(parse_int64(text))
        except ValueError as error:
            raise ConversionError(f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}") from None
    elif text is not None:
        del annotations[ROLLBACK_TO]
        replace_annotations(obj["metadata"], annotations)


def _zero_replicas(zero: JSONObject) -> None:
    # A number in the internal type, a pointer in v1.
    zero["spec"] = {"replicas": 0, **zero["spec"]}


def _zero_template_generation(zero: JSONObject) -> None:
    zero["metadata"] = {**zero["metadata"], "annotations": {TEMPLATE_GENERATION: "0"}}


#: By group and kind.
INTERNAL_TYPES: Final[Mapping[tuple[str, str], InternalType]] = {
    ("apps", "DaemonSet"): InternalType((TEMPLATE_GENERATION,), _template_generation, _zero_template_generation),
    ("apps", "Deployment"): InternalType((ROLLBACK_TO,), _rollback_to, _zero_replicas),
    ("apps", "ReplicaSet"): InternalType(convert_zero=_zero_replicas),
    ("apps", "StatefulSet"): InternalType(convert_zero=_zero_replicas),
}

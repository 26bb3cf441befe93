"""
Functions for JSON patches in MutatingAdmissionPolicies: C{jsonpatch.escapeKey}.

See kubernetes/apiserver, C{pkg/cel/library/jsonpatch.go}.
"""

from __future__ import annotations

from typing import Final

from kubetwist.cel.functions import Library, function, overload
from kubetwist.cel.types import STRING


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


JSON_PATCHES: Final = Library(
    "kubernetes.jsonpatch",
    [function("jsonpatch.escapeKey", overload("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escape))],
)

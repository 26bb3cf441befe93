"""
The condition C{NonStructuralSchema} of CRDs from older versions, which may keep schemas that are not structural.

See kubernetes/apiextensions-apiserver, C{pkg/controller/nonstructuralschema}.
"""

from __future__ import annotations

from ...api.errors import aggregate, invalid
from ...api.resource import JSONObject
from ...schema.structuralrules import unsupported, validate_structural


def non_structural_condition(crd: JSONObject) -> tuple[str, str, str] | None:
    """
    Return status, reason and message of the condition C{NonStructuralSchema}; L{None} if all schemas are structural.
    """
    errors = []
    if crd["spec"].get("preserveUnknownFields"):
        errors.append(invalid("spec.preserveUnknownFields", True, "must be false"))
    for index, version in enumerate(crd["spec"].get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        reason = unsupported(schema)
        if reason:
            name = version.get("name", "")
            return "Unknown", "StructuralError", f"failed to check validation schema for version {name}: {reason}"
        errors += validate_structural(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
    return ("True", "Violations", aggregate(errors).removeprefix(": ")) if errors else None

"""
The values of the API's enumerated types with their descriptions, as OpenAPI documents publish them.

They are in C{enums.txt} beside this module, which is read when the first document is built. Decoding does not use them,
since validation checks the values.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from ..api.featuregates import DEFAULT_RELEASE, FeatureGates, Release

#: Descriptions by value; they may be empty.
EnumDescriptions = dict[str, str]

#: Fields, by the last part of the type's name, whose Go doc comment ends with an empty line, which precedes the list of
#: values in the published text. All enum fields of the group resource.k8s.io have it.
_EMPTY_LINE: Final = frozenset(
    (
        ("Mutation", "patchType"),
        ("NamedRuleWithOperations", "scope"),
        ("PodGroupSpec", "disruptionMode"),
        ("PodGroupTemplate", "disruptionMode"),
        ("RuleWithOperations", "scope"),
    )
)
_EMPTY_LINE_PACKAGE: Final = "io.k8s.api.resource."


def enum_values(definition: str, go_type: str, release: Release = DEFAULT_RELEASE) -> EnumDescriptions | None:
    """
    Return the values of a field with their descriptions; L{None} if the field is not an enum.

    @param definition: The type that contains the field; the type of the field is in the same group or the core group.
    @param go_type: The type of the field, or of the items of a list or map, as Go prints it.
    @param release: The release of the definition.
    """
    package = definition.rpartition(".")[0].split(".")
    version, _, name = go_type.rpartition("]")[2].rpartition(".")
    table = _values(release)
    for group in (package[-2], "core"):
        values = table.get(f"{group}.{version}.{name}", table.get(f"{group}.{name}"))
        if values is not None:
            return values or None
    return None


def described_values(definition: str, field: str, description: str, values: EnumDescriptions) -> str:
    """
    Return a field's description with the list of its values.

    See k8s.io/kube-openapi, C{pkg/generators/enum.go}.

    @param definition: The type that contains the field.
    @param field: The name of the field.
    @param description: The description of the field.
    @param values: The values with their descriptions.
    """
    key = definition.rpartition(".")[2], field
    lines = [description]
    if key in _EMPTY_LINE or definition.startswith(_EMPTY_LINE_PACKAGE):
        lines.append("")
    lines += ["", "Possible enum values:"]
    lines += [f' - `"{value}"` {text}' if text else f' - `"{value}"`' for value, text in values.items()]
    return "\n".join(lines)


@cache
def _values(release: Release) -> dict[str, EnumDescriptions]:
    """Return the table of a release, by C{group.Type} or C{group.version.Type}."""
    enums: dict[str, EnumDescriptions] = {}
    group = ""
    values: EnumDescriptions = {}
    features = FeatureGates(release)
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines():
        if line.startswith(" "):
            head, _, text = line[1:].partition("|")
            value, _, condition = head.partition(" if ")
            if features.meets(condition):
                values[value] = text
        elif line.startswith("["):
            group = line[1:-1]
        elif not line.startswith("#"):
            name, _, condition = line.partition(" if ")
            values = {}
            if features.meets(condition):
                enums[f"{group}.{name}"] = values
    return enums

"""
Protobuf field numbers of the built-in types.

The table C{fieldnumbers.txt} beside this module is read when the first protobuf body is decoded. Source: the
C{generated.proto} and C{types.go} files of k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator,
releases 1.25 to 1.37; field numbers never change. Types that are only sent in responses, such as C{APIResourceList},
are missing.

A line C{[group]} begins the types of an API group. Each following line has one type: its name, prefixed by a version if
the line applies to that version only, and its fields by their JSON names in the order of their numbers. A number is one
higher than the previous one, beginning with 1, unless it is explicit: C{name=7}. C{*Name} is a message of the type
C{Name} whose fields are inlined in the JSON of the enclosing type. A line that begins with a blank continues the
previous one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

#: Fields by name.
FieldNumbers = dict[str, int]


def field_numbers(group: str, version: str, type_name: str) -> FieldNumbers:
    """
    Return the field numbers of a type.

    @raise KeyError: The type has no known protobuf form.
    """
    lines = _lines()
    fields = lines.get(f"{group}.{version}.{type_name}")
    return _numbered(lines[f"{group}.{type_name}"] if fields is None else fields)


def _numbered(fields: str) -> FieldNumbers:
    numbers = {}
    number = 0
    for word in fields.split():
        name, _, explicit = word.partition("=")
        number = int(explicit) if explicit else number + 1
        numbers[name] = number
    return numbers


@cache
def _lines() -> dict[str, str]:
    """Return the entry of each type, by C{group.Type} or C{group.version.Type}."""
    return lines_by_type(Path(__file__).with_suffix(".txt").read_text(encoding="ascii"))


def lines_by_type(text: str) -> dict[str, str]:
    """Return the entry of each type in a table of the form described in the module docstring."""
    lines = {}
    group = ""
    for line in text.replace("\n ", " ").splitlines():
        if line.startswith("["):
            group = line[1:-1]
        elif not line.startswith("#"):
            name, _, fields = line.partition(" ")
            lines[f"{group}.{name}"] = fields
    return lines

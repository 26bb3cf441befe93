"""
The numbers that the fields of the built-in types have in protobuf.

They stand in C{fieldnumbers.txt} beside this module, which is read when the first protobuf body comes. They are facts
of the wire protocol, those of the C{generated.proto} and C{types.go} files of k8s.io/api, apimachinery,
apiextensions-apiserver and kube-aggregator, releases 1.25 to 1.37; a number, once given, stays. What is only answered,
never sent (C{APIResourceList}), is not there.

A line C{[group]} begins the types of an API group. Then comes a line for each type: its name, with a version in front
if it is about that version only, and its fields by their JSON names, in the order of their numbers. A number is one
more than the one before it, beginning with 1, unless it is given: C{name=7}. C{*Name} is a message of the type C{Name}
whose fields are, in JSON, those of the type itself. A line that begins with a blank continues the one before.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

#: Fields by name.
FieldNumbers = dict[str, int]


def field_numbers(group: str, version: str, type_name: str) -> FieldNumbers:
    """
    Return the numbers of the fields of a type.

    @raise KeyError: It has no form in protobuf that is known.
    """
    lines = _lines()
    fields = lines.get(f"{group}.{version}.{type_name}")
    return _numbered(lines[f"{group}.{type_name}"] if fields is None else fields)


def _numbered(fields: str) -> FieldNumbers:
    numbers = {}
    number = 0
    for word in fields.split():
        name, _, said = word.partition("=")
        number = int(said) if said else number + 1
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

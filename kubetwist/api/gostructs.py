"""
Objects in the form of the reference's internal Go structs.

Some messages show an object as C{encoding/json} encodes a struct without tags: with all fields, by their Go names, in
the order of their declaration. C{gostructs.txt} has these names and orders; it is loaded for the first such message.
They are facts of kubernetes, C{pkg/apis/core/types.go}, and, for types named with their group, of the packages beside
it.

Each line has a type and its fields by their JSON names: C{name=GoName:zero}. The default of the Go name is the
capitalized JSON name. The zero value of an absent field is C{""} unless given: C{*} null; C{selector} null, else a
label selector; C{*Type} null, else a struct; C{[]Type} null, else a list of structs; C{{}Type} null, else a map of
structs; C{|[]Type} and C{|?Type} for a struct, or a list of structs, or a boolean; C{Type} a struct; C{0}, C{"0"} and
C{f} the same values. C{+Type} is an embedded struct, C{+metadata} one that is encoded with tags. A line that starts
with a blank continues the previous one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from .jsontypes import JSONValue
from .objectmeta import METADATA
from .resource import JSONObject

_ZEROS: Final[JSONObject] = {"": "", "*": None, "selector": None, "0": 0, '"0"': "0", "f": False}
#: Fields of a pod's security context in the internal type, which are in the pod spec in JSON.
_HOST_FIELDS: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


class _GoField(NamedTuple):
    """
    A field.

    @ivar struct: The type of structs in it, or C{""}.
    @ivar shape: The prefix of C{struct} in the table.
    """

    name: str
    go_name: str
    zero: JSONValue
    struct: str
    shape: str


def pod_spec_struct(spec: JSONObject) -> JSONObject:
    """Return the Go struct of a pod spec."""
    return go_struct(_host_fields_within(spec), "PodSpec")


def pod_template_struct(template: JSONObject) -> JSONObject:
    """Return the Go struct of a pod template."""
    return go_struct({**template, "spec": _host_fields_within(template.get("spec") or {})}, "PodTemplateSpec")


def _host_fields_within(spec: JSONObject) -> JSONObject:
    security = {**(spec.get("securityContext") or {}), **{name: spec[name] for name in _HOST_FIELDS if name in spec}}
    if security or "securityContext" in spec:
        return {**spec, "securityContext": security}
    return spec


def go_struct(value: JSONObject, type_name: str) -> JSONObject:
    """
    Encode a struct as C{encoding/json} does.

    @param value: The object.
    @param type_name: A type in the table.
    @return: All fields in order; values without a type in the table are unchanged.
    """
    shown: JSONObject = {}
    for field in _struct(type_name):
        item = value.get(field.name)
        if field.struct == "metadata":
            shown.update((name, _written(item[name])) for name in METADATA if item and item.get(name))
        elif not field.struct:
            shown[field.go_name] = field.zero if item is None else _written(item, field.shape == "selector")
        else:
            shown[field.go_name] = _shaped(item, field)
    return shown


def _shaped(item: JSONValue, field: _GoField) -> JSONValue:
    if field.shape == "[]":
        return None if item is None else [go_struct(one, field.struct) for one in item]
    if item is None and field.shape:
        return None
    if field.shape == "{}":
        return {name: go_struct(one, field.struct) for name, one in sorted(item.items())}
    if field.shape == "|[]":
        several = [go_struct(one, field.struct) for one in item] if isinstance(item, list) else None
        return {"Schema": None if several is not None else go_struct(item, field.struct), "JSONSchemas": several}
    if field.shape == "|?":
        one = None if isinstance(item, bool) else go_struct(item, field.struct)
        return {"Allows": one is not None or item, "Schema": one}
    return go_struct(item or {}, field.struct)


def _written(value: JSONValue, selector: bool = False) -> JSONValue:
    """Encode a value without a struct definition here: maps by key, and label selectors in struct order."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    if selector:
        return label_selector_struct(value)
    return {name: _written(value[name]) for name in sorted(value)}


def label_selector_struct(selector: JSONObject) -> JSONObject:
    """
    Return the output of C{encoding/json} for a label selector, whose fields have tags in the internal types too.

    @return: Its fields in the order of the struct, without empty lists and maps.
    """
    shown: JSONObject = {}
    if labels := selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    if expressions := selector.get("matchExpressions"):
        shown["matchExpressions"] = [
            {
                "key": one.get("key") or "",
                "operator": one.get("operator") or "",
                **({"values": one["values"]} if one.get("values") else {}),
            }
            for one in expressions
        ]
    return shown


@cache
def _struct(type_name: str) -> tuple[_GoField, ...]:
    fields: list[_GoField] = []
    for word in _lines()[type_name].split():
        if word == "+metadata":
            fields.append(_GoField("metadata", "", None, "metadata", ""))
        elif word.startswith("+"):
            fields += _struct(word[1:])
        else:
            fields.append(_field(word))
    return tuple(fields)


def _field(word: str) -> _GoField:
    names, _, what = word.partition(":")
    name, _, go_name = names.partition("=")
    go_name = go_name or name[0].upper() + name[1:]
    if what in _ZEROS:
        return _GoField(name, go_name, _ZEROS[what], "", what)
    struct = what.lstrip("[]{}*|?")
    return _GoField(name, go_name, None, struct, what.removesuffix(struct))


@cache
def _lines() -> dict[str, str]:
    """Return the definition for each type name."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="ascii")
    lines = {}
    for line in text.replace("\n ", " ").splitlines():
        if not line.startswith("#"):
            name, _, fields = line.partition(" ")
            lines[name] = fields
    return lines

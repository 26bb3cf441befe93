"""Encode JSON documents as YAML, in the reference's style."""

from __future__ import annotations

import re
from typing import Final

import yaml

from ..api.jsontypes import JSONValue


class YAMLDumper(yaml.CSafeDumper):
    """YAML encoder in the style of the reference's, a port of libyaml with the same folding and indentation."""

    def ignore_aliases(self, data: JSONValue) -> bool:
        """Write equal objects twice, without aliases."""
        return True


#: Strings that a YAML 1.1 parser would read as another type.
_NOT_A_STRING: Final = re.compile(
    r"""
    | ~ | null | Null | NULL | <<
    | [yYnN] | yes | Yes | YES | no | No | NO | on | On | ON | off | Off | OFF
    | true | True | TRUE | false | False | FALSE
    | [-+]?\.(?:inf|Inf|INF) | \.(?:nan|NaN|NAN)
    | [-+]?(?:0[xX][0-9a-fA-F_]+ | 0[bB][01_]+ | 0[oO][0-7_]+ | [0-9][0-9_]*)
    | [-+]?(?:\.[0-9]+ | [0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?
    | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
      (?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9:]+))?)?
    """,
    re.VERBOSE,
)


def _represent_string(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        style = "|"
    elif _NOT_A_STRING.fullmatch(text):
        style = '"'
    else:
        style = None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


YAMLDumper.add_representer(str, _represent_string)


def encode_yaml(document: JSONValue) -> bytes:
    """
    Encode a JSON document as YAML, in the reference's style.

    It takes about 25 ms for 100 kB, so large documents are better encoded in a thread.
    """
    encoded: bytes = yaml.dump(document, Dumper=YAMLDumper, encoding="utf-8", allow_unicode=True, sort_keys=True)
    return encoded

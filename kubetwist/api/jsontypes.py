"""
Type aliases of JSON values.

mypy does not check the content of a L{JSONValue}: the schema of an object defines its fields at run time. Signatures
use the alias instead of C{Any}, which marks a missing type.
"""

from __future__ import annotations

from typing import Any, TypeAlias

#: A dict with string keys, a list, a string, a number, a boolean or L{None}, in any nesting.
JSONValue: TypeAlias = Any

#: A JSON object: its fields by their names.
JSONObject: TypeAlias = dict[str, Any]

"""
Type aliases of JSON values.

mypy does not check what is in a L{JSONValue}: the schema of an object decides at run time which fields it has. A
signature names the alias instead of C{Any}, which stands for a missing type.
"""

from __future__ import annotations

from typing import Any, TypeAlias

#: A dict with text keys, a list, a text, a number, a boolean or L{None}, in any nesting.
JSONValue: TypeAlias = Any

#: A JSON object: its fields by their names.
JSONObject: TypeAlias = dict[str, Any]

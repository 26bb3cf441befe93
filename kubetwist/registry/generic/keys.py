"""What objects are looked up by where a body names them, rather than a path."""

from __future__ import annotations

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.names import validate_path_segment_name


def check_key(name: str, namespace: str | None = None) -> None:
    """
    Look whether there can be such an object at all.

    @param namespace: L{None} for what is in none.
    @raise APIStatusError: A part is missing, or the name is no valid path segment (400).
    """
    if namespace == "":
        raise APIStatusError.bad_request("Namespace parameter required.")
    if not name:
        raise APIStatusError.bad_request("Name parameter required.")
    problems = validate_path_segment_name(name)
    if problems:
        raise APIStatusError.bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")

"""Checks of names that come from the body of a request instead of its path."""

from __future__ import annotations

from ...api.errors import APIStatusError
from ...api.go.quote import quoted
from ...api.names import validate_path_segment_name


def check_key(name: str, namespace: str | None = None) -> None:
    """
    Check the key of an object (Go: C{NamespaceKeyFunc} and C{NoNamespaceKeyFunc}).

    @param namespace: The namespace; L{None} for cluster-scoped objects.
    @raise APIStatusError: The name or namespace is missing, or the name is not a valid path segment (400).
    """
    if namespace == "":
        raise APIStatusError.bad_request("Namespace parameter required.")
    if not name:
        raise APIStatusError.bad_request("Name parameter required.")
    problems = validate_path_segment_name(name)
    if problems:
        raise APIStatusError.bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")

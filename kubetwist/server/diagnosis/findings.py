"""Findings of checks: their severities, the report, its formats and its exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from textwrap import wrap
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject

API_VERSION: Final = "doctor.kubetwist.dev/v1"
KIND: Final = "Report"
#: Exit codes, by the worst finding.
EXIT_OK: Final = 0
EXIT_WARNINGS: Final = 1
EXIT_ERRORS: Final = 2
_WIDTH: Final = 100


class Severity(IntEnum):
    """The severity of a finding; the server does not start, or does not work, with an C{ERROR}."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in reports."""
        return self.name.lower()


@frozen
class Finding:
    """
    The result of one check.

    @ivar id: Stable identifier: the part and the finding, such as C{disk/space}.
    @ivar severity: How bad it is.
    @ivar message: One sentence about what was found. Never contains secrets.
    @ivar remedy: What to do; C{""} if nothing is to be done.
    """

    id: str
    severity: Severity
    message: str
    remedy: str = ""


def ok(identifier: str, message: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(identifier, Severity.OK, message)


def note(identifier: str, message: str, remedy: str = "") -> Finding:
    """Return a finding that is worth knowing and no problem."""
    return Finding(identifier, Severity.NOTE, message, remedy)


def warning(identifier: str, message: str, remedy: str) -> Finding:
    """Return a finding that can become a problem."""
    return Finding(identifier, Severity.WARNING, message, remedy)


def error(identifier: str, message: str, remedy: str) -> Finding:
    """Return a finding that prevents the start, or the work of the server."""
    return Finding(identifier, Severity.ERROR, message, remedy)


def exit_code(findings: Iterable[Finding], *, strict: bool) -> int:
    """
    Return the exit code of a report.

    @param strict: Whether warnings are failures.
    """
    worst = max((one.severity for one in findings), default=Severity.OK)
    if worst is Severity.ERROR:
        return EXIT_ERRORS
    return EXIT_WARNINGS if strict and worst is Severity.WARNING else EXIT_OK


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return the number of findings of each severity, by its name."""
    result = {severity.label: 0 for severity in reversed(Severity)}
    for one in findings:
        result[one.severity.label] += 1
    return result


def as_document(findings: Sequence[Finding], version: str) -> JSONObject:
    """
    Return a report as JSON.

    @param version: The version of kubetwist.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "version": version,
        "counts": counts(findings),
        "findings": [
            {"id": one.id, "severity": one.severity.label, "message": one.message, "remedy": one.remedy}
            for one in findings
        ],
    }


def as_text(findings: Sequence[Finding]) -> str:
    """Return a report as a table for people, the worst findings first."""
    width = max((len(one.id) for one in findings), default=0)
    indent = " " * (width + 11)
    lines: list[str] = []
    for one in sorted(findings, key=lambda one: -one.severity):
        head = f"{one.severity.label:<8} {one.id:<{width}}  "
        lines += _wrap(one.message, head, indent)
        if one.remedy:
            lines += _wrap(f"-> {one.remedy}", indent, indent)
    total = ", ".join(
        f"{number} {label}{'s' if number != 1 and label != 'ok' else ''}" for label, number in counts(findings).items()
    )
    return "\n".join([*lines, "", total, ""])


def _wrap(text: str, first: str, following: str) -> list[str]:
    """Break a text into lines; paths and flags remain whole, so that they can be copied."""
    return wrap(
        _one_line(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=following,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)

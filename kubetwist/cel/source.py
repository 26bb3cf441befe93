"""Text of an expression, with positions and the format of errors."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kubetwist.cel.errors import CompileErrors, Issue

#: Lines with more bytes than this are not repeated in errors.
_MAX_SNIPPET = 16384
_MAX_ISSUES = 100

#: Position of errors that belong to no part of the expression.
NO_POSITION = (-1, -1)


class Source:
    """The text of an expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line, counted from 1, and column, counted from 0, of an offset in code points."""
        if offset < 0:
            return NO_POSITION
        if not self.text:
            # The only line is empty.
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def line(self, number: int) -> str | None:
        """Return a line without its line break, or C{None} if it does not exist."""
        if not 1 <= number <= len(self._starts):
            return None
        return self.text.split("\n")[number - 1]

    def errors(self, issues: Sequence[Issue]) -> CompileErrors:
        """Return an exception with the issues sorted by position."""
        ordered = sorted(issues[:_MAX_ISSUES], key=lambda issue: (issue.line, issue.column))
        lines = [self._display(issue) for issue in ordered]
        if len(issues) > _MAX_ISSUES:
            lines.append(f"{len(issues) - _MAX_ISSUES} more errors were truncated")
        return CompileErrors(ordered, "\n".join(lines))

    def _display(self, issue: Issue) -> str:
        location = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
        line = self.line(issue.line)
        if line is None or issue.column < 0 or len(line.encode()) > _MAX_SNIPPET:
            return location
        line = line.replace("\t", " ")
        # Characters that are two columns wide are underlined with wide characters.
        dots = "".join("．" if char > "\x7f" else "." for char in line[: issue.column])
        wide = issue.column < len(line) and line[issue.column] > "\x7f"
        return f"{location}\n | {line}\n | {dots}{'＾' if wide else '^'}"

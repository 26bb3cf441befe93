"""The text of an expression: where in it something stands, and how errors show it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kubetwist.cel.errors import CompileErrors, Issue

#: Lines longer than this are not repeated in errors.
_MAX_SNIPPET = 16384
_MAX_ISSUES = 100

#: The position of errors without a place in the text.
NO_POSITION = (-1, -1)


class Source:
    """A text with lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line, counted from 1, and column, counted from 0, of an offset in code points."""
        if offset < 0:
            return NO_POSITION
        if not self.text:
            # There is a line, but nothing on it.
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def line(self, number: int) -> str | None:
        """Return one line of the text without its end."""
        if not 1 <= number <= len(self._starts):
            return None
        return self.text.split("\n")[number - 1]

    def errors(self, issues: Sequence[Issue]) -> CompileErrors:
        """Return the errors in the order of their positions."""
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

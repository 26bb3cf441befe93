"""Tests of the log calls in the whole package."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from twisted.trial.unittest import SynchronousTestCase

import kubetwist

METHODS = {"debug", "info", "warn", "error", "critical", "failure"}


def missing_fields(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the field of each log format whose field has no value in the call."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in METHODS:
            continue
        given = {keyword.arg for keyword in call.keywords}
        if None in given:
            continue  # **values
        for constant in (node for argument in call.args for node in ast.walk(argument)):
            if not isinstance(constant, ast.Constant) or not isinstance(constant.value, str):
                continue
            try:
                fields = [field for _, field, _, _ in Formatter().parse(constant.value) if field]
            except ValueError:
                continue  # no format
            for field in fields:
                name = re.split(r"[.\[(]", field)[0]
                if name not in given and not name.startswith("log_"):
                    yield call.lineno, name


class LogCallTests(SynchronousTestCase):
    """Formats of log lines."""

    def test_fields(self) -> None:
        """Every field of a log line has a value, since a line without one is logged as a formatting error."""
        root = Path(kubetwist.__file__).parent
        found = [
            f"{path.relative_to(root)}:{line}: {name}"
            for path in sorted(root.rglob("*.py"))
            for line, name in missing_fields(path.read_text("utf-8"))
        ]
        self.assertEqual(found, [])

    def test_missing(self) -> None:
        """A missing value is detected, also for a field with an attribute or a call."""
        source = 'log.warn("{a} {b.c} {d()}" if x else "{e}", a=1)\nlog.info("{f}", **values)\nlog.info("{g}", g=1)\n'
        self.assertEqual(list(missing_fields(source)), [(1, "b"), (1, "d"), (1, "e")])

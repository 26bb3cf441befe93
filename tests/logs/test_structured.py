"""Tests for L{kubetwist.logs.structured} and L{kubetwist.logs.redaction}."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from twisted.logger import Logger, LogLevel, LogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.logs.structured import (
    file_observer,
    format_key_values,
    log_structured,
)
from kubetwist.logs.verbosity import Verbosity


class LineTests(SynchronousTestCase):
    """Formats of log lines."""

    def logged(self, call: Any, *, as_json: bool, level: int = 0, lowest: Any = LogLevel.info) -> str:
        """Return the content of the log file after an event."""
        file, publisher = StringIO(), LogPublisher()
        publisher.addObserver(file_observer(file, Verbosity(level), json=as_json, lowest=lowest))
        call(Logger("some.module", observer=publisher))
        return file.getvalue()

    def test_text(self) -> None:
        """A text line quotes values as Go does, so that they cannot contain line breaks."""
        line = format_key_values("HTTP", {"URI": '/a"b\n', "resp": 200, "hijacked": True})
        self.assertEqual(line, r'"HTTP" URI="/a\"b\n" resp=200 hijacked=true')
        text = self.logged(lambda log: log_structured(log, 3, "HTTP", {"a": "{b}\r\n"}), as_json=False)
        self.assertTrue(text.endswith(' [some.module#info] "HTTP" a="{b}\\r\\n"\n'), text)

    def test_worker(self) -> None:
        """Lines of a front have its number, in text and in JSON."""
        for as_json, expected in ((False, "[some.module#info worker=2] started\n"), (True, '"worker":2')):
            file, publisher = StringIO(), LogPublisher()
            publisher.addObserver(file_observer(file, Verbosity(0), json=as_json, worker=2))
            Logger("some.module", observer=publisher).info("started")
            self.assertIn(expected, file.getvalue())

    def test_json(self) -> None:
        """A JSON line has the time, module, message and level, and a key for each value."""
        (line,) = self.logged(
            lambda log: log_structured(log, 3, "HTTP", {"resp": 200, "verb": "GET"}), as_json=True
        ).splitlines()
        document = json.loads(line)
        self.assertGreater(document.pop("ts"), 1e12)
        self.assertEqual(document, {"caller": "some.module", "msg": "HTTP", "v": 3, "resp": 200, "verb": "GET"})

    def test_json_of_other_events(self) -> None:
        """A JSON line of other events has the message only, without the fields of the event."""
        text = self.logged(lambda log: log.warn("of {who}", who="a\nb", secret="s3cret"), as_json=True)
        document = json.loads(text)
        self.assertEqual((document["msg"], document["severity"]), ("of a\nb", "warning"))
        self.assertNotIn("s3cret", text)
        self.assertEqual(text.count("\n"), 1)

    def test_json_failure(self) -> None:
        """A failure is one line with its traceback."""
        text = self.logged(lambda log: log.failure("it broke", Failure(ValueError("why"))), as_json=True)
        document = json.loads(text)
        self.assertEqual((document["msg"], document["err"]), ("it broke", "ValueError: why"))
        self.assertIn("ValueError", document["stacktrace"])

    def test_levels(self) -> None:
        """Debug events are written from -v=4 on. Events below the level of twist are never written."""
        self.assertEqual(self.logged(lambda log: log.debug("x"), as_json=False, level=3), "")
        self.assertIn("x", self.logged(lambda log: log.debug("x"), as_json=False, level=4))
        self.assertEqual(self.logged(lambda log: log.info("x"), as_json=False, lowest=LogLevel.error), "")

    @given(some.text(), some.dictionaries(some.text(min_size=1), some.text(), max_size=4))
    def test_one_line(self, head: str, values: dict[str, str]) -> None:
        """Every event is one line, as text and as JSON."""
        for as_json in (False, True):
            text = self.logged(
                lambda log: log_structured(log, 0, head, {f"k{key}": values[key] for key in values}), as_json=as_json
            )
            lines = text.encode("utf-8", "surrogatepass").split(b"\n")
            if as_json:
                self.assertEqual(len(lines), 2, text)
                json.loads(text)

"""Tests for L{kubetwist.testing.envtest._etcd}."""

from __future__ import annotations

import io
import json
import sys
from email.message import Message
from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, from_regex, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing.envtest import _etcd
from kubetwist.testing.envtest._etcd import DESCRIPTION_PATH, FlagError, Handler, parse, parse_bool, parse_urls


class FlagTests(SynchronousTestCase):
    """The command line."""

    def test_forms(self) -> None:
        """Flags have one or two dashes, and their values follow after an equals sign or as the next argument."""
        arguments = ["-data-dir", "a", "--wal-dir=b", "--unsafe-no-fsync", "--name", "c", "--force-new-cluster"]
        self.assertEqual(
            parse(arguments),
            {"data-dir": "a", "wal-dir": "b", "unsafe-no-fsync": "true", "name": "c", "force-new-cluster": "true"},
        )

    @given(dictionaries(from_regex(r"[a-z][a-z-]{0,9}", fullmatch=True), text()))
    def test_values(self, values: dict[str, str]) -> None:
        """Any value can be given with an equals sign."""
        self.assertEqual(parse([f"--{name}={value}" for name, value in values.items()]), values)

    def test_no_flag(self) -> None:
        """Arguments that are no flags are errors."""
        for argument in ("start", "-", "--", ""):
            self.assertRaises(FlagError, parse, [argument])

    def test_booleans(self) -> None:
        """Booleans have Go's forms."""
        self.assertEqual([parse_bool(one) for one in ("1", "T", "true", "0", "False")], [True] * 3 + [False] * 2)
        self.assertRaises(FlagError, parse_bool, "yes")

    def test_urls(self) -> None:
        """Client URLs are addresses of TCP without TLS."""
        self.assertEqual(parse_urls("http://127.0.0.1:1,http://[::1]:2"), [("127.0.0.1", 1), ("::1", 2)])
        for url in (
            "https://127.0.0.1:1",
            "http://127.0.0.1",
            "http://:1",
            "unix://a",
            "http://a:99999",
            "",
            "http://a:1,",
        ):
            self.assertRaises(FlagError, parse_urls, url)


class MainTests(SynchronousTestCase):
    """The program, as far as it does not listen."""

    def run_main(self, *arguments: str) -> tuple[int, str, str]:
        """Return the exit code and the output."""
        out, error = io.StringIO(), io.StringIO()
        self.patch(sys, "stdout", out)
        self.patch(sys, "stderr", error)
        code = _etcd.main(arguments)
        return code, out.getvalue(), error.getvalue()

    def test_texts(self) -> None:
        """The help has each flag at the start of a line, which programs search; the version is one of etcd."""
        code, out, _ = self.run_main("--help")
        self.assertEqual(code, 0)
        self.assertIn("\n  --unsafe-no-fsync ", out)
        self.assertTrue(self.run_main("--version")[1].startswith("etcd Version: 3."))

    def test_errors(self) -> None:
        """Errors are one line."""
        code, out, error = self.run_main("--unsafe-no-fsync=perhaps")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(error, "etcd: invalid boolean value 'perhaps'; see etcd --help\n")

    def test_data_dir(self) -> None:
        """A data directory that cannot be made is named."""
        path = self.mktemp()
        with open(path, "w"):
            pass
        code, _, error = self.run_main(f"--data-dir={path}/below", "--listen-client-urls=http://127.0.0.1:0")
        self.assertEqual(code, 1)
        self.assertIn(f"{path}/below: Not a directory", error)


class HandlerTests(SynchronousTestCase):
    """Answers."""

    def get(self, path: str) -> tuple[bytes, bytes]:
        """Return the first line and the body of an answer."""

        class Memory(Handler):
            def __init__(self) -> None:
                self.server: Any = type("Server", (), {"documents": {"/health": b'{"health":"true"}'}})
                self.wfile: Any = io.BytesIO()
                self.path, self.request_version, self.requestline = path, "HTTP/1.1", f"GET {path} HTTP/1.1"
                self.headers: Any = Message()

        handler = Memory()
        handler.do_GET()
        head, _, body = handler.wfile.getvalue().partition(b"\r\n\r\n")
        return head.splitlines()[0], body

    def test_answers(self) -> None:
        """Health checks are answered, other paths are not there."""
        self.assertEqual(json.loads(self.get("/health?x=y")[1]), {"health": "true"})
        self.assertIn(b" 200 ", self.get("/health")[0])
        self.assertIn(b" 404 ", self.get("/v3/kv/range")[0])
        self.assertIn(b" 404 ", self.get(DESCRIPTION_PATH)[0])

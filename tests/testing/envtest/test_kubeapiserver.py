"""Tests for L{kubetwist.testing.envtest._kubeapiserver}."""

from __future__ import annotations

import http.client
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flagtypes import FlagError
from kubetwist.testing.envtest import _kubeapiserver
from kubetwist.testing.envtest._kubeapiserver import StandIn, command_line, find_stand_in, without_flag

ETCD = "--etcd-servers=http://127.0.0.1:2379"


class CommandLineTests(SynchronousTestCase):
    """The arguments of C{twist kubeapi}."""

    def setUp(self) -> None:
        """Use a stand-in for etcd."""
        self.found: StandIn | None = StandIn(Path("/etcd"), synced=False)
        self.patch(_kubeapiserver, "find_stand_in", lambda url: self.found)

    def test_stand_in(self) -> None:
        """With the stand-in the objects are in its directory, without etcd."""
        line = command_line(["--secure-port=1", "--etcd-servers", "http://127.0.0.1:2379", "--v=2"])
        self.assertEqual(
            line, ["--enable-ui=false", "--secure-port=1", "--v=2", "--data-dir=/etcd/kubetwist", "--unsafe-no-fsync"]
        )
        defaults = ["--storage-backend=etcd3", "--storage-media-type=application/vnd.kubernetes.protobuf"]
        self.assertEqual(command_line([ETCD, *defaults]), command_line([ETCD]))
        self.assertIn("--storage-backend=memory", command_line([ETCD, "--storage-backend=memory"]))
        self.found = StandIn(Path("/etcd"), synced=True)
        self.assertNotIn("--unsafe-no-fsync", command_line([ETCD]))
        self.assertIn("--data-dir=/mine", command_line([ETCD, "--data-dir=/mine"]))
        self.assertNotIn("--data-dir=/etcd/kubetwist", command_line([ETCD, "--data-dir=/mine"]))

    def test_real_etcd(self) -> None:
        """With a real etcd the flag stays, and the data directory is in the directory of certificates."""
        self.found = None
        self.assertEqual(command_line([ETCD]), ["--enable-ui=false", ETCD])
        line = command_line([ETCD, "--cert-dir=/certs", "--secure-port=7"])
        self.assertEqual(line[-1], "--data-dir=/certs/kubetwist-7")
        self.assertIn("--data-dir=/mine", command_line([ETCD, "--cert-dir=/certs", "--data-dir=/mine"]))

    def test_in_memory(self) -> None:
        """A server in memory needs no etcd."""
        self.assertEqual(command_line(["--in-memory"]), ["--enable-ui=false", "--in-memory"])

    def test_errors(self) -> None:
        """Unknown flags and a missing etcd are errors, as for kube-apiserver."""
        self.assertIn("must be specified", str(self.assertRaises(FlagError, command_line, [])))
        self.assertIn("unknown flag", str(self.assertRaises(FlagError, command_line, ["--insecure-port=0"])))

    @given(lists(sampled_from(["--a=1", "--a", "--b=1", "--c_d=2", "--e", "x"])))
    def test_without_flag(self, arguments: list[str]) -> None:
        """The other flags stay in their order; a line without the flag is unchanged."""
        self.assertEqual(without_flag(arguments, "unknown"), arguments)
        for name, removed in (("b", "--b=1"), ("c-d", "--c_d=2")):
            self.assertEqual(without_flag(arguments, name), [one for one in arguments if one != removed])

    def test_separate_value(self) -> None:
        """A value in a separate argument is removed with its flag."""
        self.assertEqual(without_flag(["--a", "1", "--b", "2", "--a=3"], "a"), ["--b", "2"])
        self.assertEqual(without_flag(["--b=2", "--a"], "a"), ["--b=2"])


class StandInTests(SynchronousTestCase):
    """The question to etcd."""

    def ask(self, status: int, content: bytes) -> StandIn | None:
        """Ask an etcd with one answer."""

        class Answer:
            def __init__(self, host: str, port: int, timeout: float) -> None:
                self.status = status

            def request(self, method: str, path: str) -> None:
                pass

            def getresponse(self) -> Any:
                return self

            def read(self, size: int) -> bytes:
                return content[:size]

            def close(self) -> None:
                pass

        self.patch(http.client, "HTTPConnection", Answer)
        return find_stand_in("http://127.0.0.1:2379")

    def test_answers(self) -> None:
        """Only a complete description is one of the stand-in."""
        description = json.dumps({"data-dir": "/a", "unsafe-no-fsync": True}).encode()
        self.assertEqual(self.ask(200, description), StandIn(Path("/a"), synced=False))
        for status, content in ((404, description), (200, b"{}"), (200, b"404 page not found"), (200, b"[]")):
            self.assertIsNone(self.ask(status, content))

    def test_tls(self) -> None:
        """The stand-in has no TLS."""
        self.assertIsNone(find_stand_in("https://127.0.0.1:2379"))
        self.assertIsNone(find_stand_in("nothing"))

    def test_unreachable(self) -> None:
        """An etcd that does not answer is reported by the server."""

        def refuse(*arguments: object, **keywords: object) -> None:
            raise ConnectionRefusedError

        self.patch(http.client, "HTTPConnection", refuse)
        self.assertIsNone(find_stand_in("http://127.0.0.1:2379"))


class MainTests(SynchronousTestCase):
    """The program."""

    def run_main(self, *arguments: str) -> str:
        """Return the standard output."""
        out = io.StringIO()
        self.patch(sys, "stdout", out)
        _kubeapiserver.main(arguments)
        return out.getvalue()

    def test_texts(self) -> None:
        """The help has each flag at the start of a line; the version names the release."""
        self.assertIn("\n    --etcd-servers ", self.run_main("--help"))
        self.assertTrue(self.run_main("--version", "--kubernetes-version=1.33").startswith("Kubernetes v1.33."))

    def test_started(self) -> None:
        """C{twist kubeapi} runs in the same process."""
        ran: list[tuple[str, list[str]]] = []
        self.patch(sys, "argv", ["kube-apiserver"])
        self.patch(runpy, "run_module", lambda name, **keywords: ran.append((name, sys.argv[1:])))
        _kubeapiserver.main(["--in-memory"])
        self.assertEqual(ran, [("twisted", ["kubeapi", "--enable-ui=false", "--in-memory"])])

    def test_error(self) -> None:
        """An error is one line, and the exit code 1."""
        error = io.StringIO()
        self.patch(sys, "stderr", error)
        self.assertEqual(self.assertRaises(SystemExit, _kubeapiserver.main, ["--secure-port=x"]).code, 1)
        self.assertRegex(error.getvalue(), r"\Akube-apiserver: invalid argument .*; see kube-apiserver --help\n\Z")

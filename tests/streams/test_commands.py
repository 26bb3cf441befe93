"""Tests for L{kubetwist.streams.commands}."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.channels import V1, V2, V3, V4, V5
from kubetwist.streams.commands import (
    SUCCESS,
    Command,
    TerminalSizeDecoder,
    encode_size,
    encode_status,
    exit_status,
    final_status,
)


def exited(causes: Any) -> bytes:
    """The final status of a command."""
    return json.dumps({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}).encode()


class FinalStatusTests(SynchronousTestCase):
    """Return the final status of a command."""

    def message(self, message: bytes, version: str = V4) -> str:
        """Return the message of a status that is an internal error."""
        status = json.loads(final_status(message, version))
        self.assertEqual((500, "InternalError", "Failure"), (status["code"], status["reason"], status["status"]))
        self.assertEqual(
            {"causes": [{"message": status["message"].removeprefix("Internal error occurred: ")}]}, status["details"]
        )
        return str(status["details"]["causes"][0]["message"])

    def test_success(self) -> None:
        """Success is encoded in the reference's bytes."""
        self.assertEqual(b'{"metadata":{},"status":"Success"}', final_status(b'{"status":"Success","code":200}', V4))
        self.assertEqual(SUCCESS, final_status(b"", V5))

    def test_exit_code(self) -> None:
        """An exit code is encoded in the reference's bytes."""
        self.assertEqual(
            b'{"metadata":{},"status":"Failure",'
            b'"message":"command terminated with non-zero exit code: command terminated with exit code 3",'
            b'"reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}',
            final_status(exited([{"reason": "Other"}, {"reason": "ExitCode", "message": "3"}]), V4),
        )
        self.assertEqual(exit_status(255), final_status(exited([{"reason": "ExitCode", "message": "255"}]), V4))

    def test_odd_exit_codes(self) -> None:
        """Invalid exit codes are internal errors, as in the reference."""
        prefix = "error stream protocol error: "
        self.assertEqual(prefix + "no ExitCode cause given", self.message(exited([])))
        self.assertEqual(prefix + "no ExitCode cause given", self.message(exited(None)))
        for code in ("256", "-1", "x", "", "9" * 5000):
            self.assertEqual(
                f'{prefix}invalid exit code value "{code}"',
                self.message(exited([{"reason": "ExitCode", "message": code}])),
            )
        self.assertEqual(
            prefix + "details must be set", self.message(b'{"status":"Failure","reason":"NonZeroExitCode"}')
        )

    def test_failure(self) -> None:
        """Failures of the kubelet are internal errors."""
        self.assertEqual("no <shell>", self.message(b'{"status":"Failure","message":"no <shell>"}'))
        self.assertIn(b"no \\u003cshell\\u003e", final_status(b'{"status":"Failure","message":"no <shell>"}', V4))
        self.assertEqual("error stream protocol error: unknown error", self.message(b'{"status":"Odd"}'))
        self.assertEqual("error stream protocol error: unknown error", self.message(b"[]"))
        self.assertEqual(
            "error stream protocol error: invalid character 'b' looking for beginning of value in \"boom\"",
            self.message(b"boom"),
        )

    def test_old_versions(self) -> None:
        """Old stream protocols report errors as text."""
        self.assertEqual("error executing remote command: boom", self.message(b"boom", V3))
        self.assertEqual("error executing remote command: boom", self.message(b"boom", V2))
        self.assertEqual("Error executing remote command: boom", self.message(b"boom", V1))

    @given(st.binary(max_size=80), st.sampled_from([V1, V2, V3, V4, V5]))
    def test_any_bytes(self, message: bytes, version: str) -> None:
        """Any message of a kubelet becomes a Status."""
        self.assertIn(json.loads(final_status(message, version))["status"], ("Success", "Failure"))

    def test_encode_status(self) -> None:
        """A Status in the error channel has no kind."""
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "code": 404,
            "status": "Failure",
            "reason": "NotFound",
        }
        self.assertEqual(b'{"metadata":{},"status":"Failure","reason":"NotFound","code":404}', encode_status(status))


class StreamTypesTests(SynchronousTestCase):
    """The streams to open at the kubelet."""

    def test_stream_types(self) -> None:
        """Streams are in the reference's order; with a terminal there is a resize stream and no C{stderr}."""
        everything = Command(True, True, True, False)
        self.assertEqual(["error", "stdin", "stdout", "stderr"], everything.stream_types(V4))
        terminal = Command(True, True, True, True)
        self.assertEqual(["error", "stdin", "stdout", "resize"], terminal.stream_types(V5))
        self.assertEqual(["error", "stdin", "stdout"], terminal.stream_types(V2))
        self.assertEqual(["error"], Command().stream_types(V4))


class TerminalSizes(SynchronousTestCase):
    """Terminal sizes."""

    @given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535)), max_size=6), st.integers(1, 30))
    def test_roundtrip(self, sizes: list[tuple[int, int]], cut: int) -> None:
        """Sizes are decoded correctly however their bytes are split."""
        data = b"".join(encode_size(*size) for size in sizes)
        reader = TerminalSizeDecoder()
        result = [size for at in range(0, len(data), cut) for size in reader.feed(data[at : at + cut])]
        self.assertEqual(sizes, result)

    def test_lenient(self) -> None:
        """Field names are case-insensitive, unknown fields are ignored, missing fields are 0."""
        self.assertEqual(
            [(80, 0), (0, 24)], TerminalSizeDecoder().feed(b' {"width":80,"X":[1]}{"HEIGHT":24,"Width":null}')
        )

    def test_broken(self) -> None:
        """After an invalid size, all further data is ignored."""
        for data in (
            b"x",
            b"[]",
            b"{]" + b" " * 5000,
            b'{"Width":65536}',
            b'{"Width":-1}',
            b'{"Width":1.5}',
            b'{"a":' * 2000,
        ):
            reader = TerminalSizeDecoder()
            self.assertEqual([], reader.feed(data))
            self.assertEqual([], reader.feed(b'{"Width":1}'))
            self.assertEqual("", reader._text)

    @given(st.lists(st.binary(max_size=30), max_size=4))
    def test_any_bytes(self, pieces: list[bytes]) -> None:
        """Any bytes of a client are handled without other errors."""
        reader = TerminalSizeDecoder()
        for piece in pieces:
            reader.feed(piece)

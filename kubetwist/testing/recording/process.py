"""
The proxy in a separate process, which does not use the reactor of the tests.

Both ends exchange lines of JSON: first the settings, and the connection or an error; then, when the standard input
ends, the recording or an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from attrs import asdict

from .._connection import Connection, ServerHandle
from .cassette import Cassette

#: Seconds to wait for the end of the process.
_PATIENCE: Final = 60.0


class RecordingError(Exception):
    """A cluster cannot be recorded; the text is the reason."""


class RecordedCluster(ServerHandle):
    """
    A cluster that is being recorded, behind a proxy on a free port of 127.0.0.1.

    C{start()}, then C{finish()} or C{stop()}.
    """

    def __init__(self, kubeconfig: Sequence[Path], context: str, limit: int) -> None:
        """
        @param kubeconfig: The files of the cluster's kubeconfig.
        @param context: The context; C{""} for the current one.
        @param limit: Maximum size of all recorded objects as JSON, in bytes.
        """
        self._settings = {"kubeconfig": [str(path) for path in kubeconfig], "context": context, "limit": limit}
        self._process: subprocess.Popen[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> RecordedCluster:
        """
        Start the proxy.

        @raise RecordingError: The kubeconfig is invalid, or the cluster does not answer.
        """
        self._temporary = tempfile.TemporaryDirectory(prefix="kubetwist-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kubetwist.testing.recording.process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        path = Path(self._temporary.name) / "kubeconfig"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({**self._settings, "write": str(path)}).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read()
        except BaseException:
            self.stop()
            raise
        self._connection = Connection.from_kubeconfig(path, answer["token"])
        return self

    def finish(self) -> Cassette:
        """
        Stop the proxy, and return the recording, with its secrets.

        @raise RecordingError: Something was not recorded.
        """
        process = self._process
        assert process is not None and process.stdin is not None, "it was not started"
        try:
            process.stdin.close()
            answer = self._read()
        finally:
            self.stop()
        return Cassette(
            version=answer["version"],
            objects=tuple(answer["objects"]),
            writes=tuple(answer["writes"]),
            later=tuple(answer["later"]),
            omitted=answer["omitted"],
        )

    def stop(self) -> None:
        """Stop the proxy, and drop the recording. Idempotent."""
        process, self._process = self._process, None
        temporary, self._temporary = self._temporary, None
        try:
            if process is not None:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.close()
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                process.stdout.close()
        finally:
            if temporary is not None:
                temporary.cleanup()

    def _read(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RecordingError(f"the proxy has ended with exit code {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RecordingError(answer["error"])
        return answer["result"]


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Run the proxy until the standard input ends."""
    from .._reactorthread import running_reactor, wait_for
    from ._proxy import RecordingProxy
    from .upstream import read_upstream

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value).encode() + b"\n")
        answers.flush()

    settings = json.loads(requests.readline())
    reactor = running_reactor()
    try:
        upstream = read_upstream([Path(path) for path in settings["kubeconfig"]], settings["context"])
        proxy = RecordingProxy(upstream, reactor, settings["limit"])
        wait_for(reactor, proxy.start)
        proxy.write_kubeconfig(Path(settings["write"]))
    except Exception as error:
        answer({"error": str(error) or type(error).__name__})
        return
    try:
        answer({"result": {"token": proxy.token}})
        requests.read()
        answer({"result": asdict(wait_for(reactor, proxy.finish), recurse=False)})
    except Exception as error:
        answer({"error": str(error) or type(error).__name__})
    finally:
        wait_for(reactor, proxy.stop)


def main() -> None:
    """Serve on the standard pipes, which other code can no longer use."""
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        serve(requests, answers)


if __name__ == "__main__":
    main()

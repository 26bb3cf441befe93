# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.commands.completion}, and of the completion that its scripts request."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import main
from kubetwist.cli.commands.completion import SHELLS
from kubetwist.cli.flagtable import FLAGS

#: Completes the command line in the environment variable LINE as bash does when the user presses the tabulator key.
BASH = """
source "$SCRIPT"
set -- $(complete -p kubetwist)
while [ "$1" != -F ]; do shift; done
function=$2
read -ra COMP_WORDS <<< "$LINE"
[[ $LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$function kubetwist
printf '%s\\n' "${COMPREPLY[@]}"
"""


class CompletionTests(SynchronousTestCase):
    """Completion in shells."""

    def script(self, shell: str) -> str:
        """Return the script for a shell."""
        result = CliRunner().invoke(main.command, ["completion", shell])
        self.assertEqual(result.exit_code, 0, result.output)
        return result.output

    def complete(self, line: str) -> list[str]:
        """Return the completions of the last word of a command line, by bash."""
        folder = Path(self.mktemp())
        folder.mkdir()
        program = folder / "kubetwist"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kubetwist "$@"\n')
        program.chmod(0o755)
        (folder / "script").write_text(self.script("bash"))
        environment = {
            **os.environ,
            "PATH": f"{folder.absolute()}{os.pathsep}{os.environ['PATH']}",
            "SCRIPT": str(folder / "script"),
            "LINE": line,
        }
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", BASH], env=environment, capture_output=True, text=True
        )
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout.splitlines()

    def test_scripts(self) -> None:
        """There is a script for each shell, which the shell can parse if it is installed."""
        for shell in SHELLS:
            script = self.script(shell)
            self.assertIn(f"_KUBETWIST_COMPLETE={shell}_complete", script)
            if shutil.which(shell):
                ended = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_unknown(self) -> None:
        """Another shell is refused."""
        self.assertEqual(CliRunner().invoke(main.command, ["completion", "tcsh"]).exit_code, 2)

    def test_commands(self) -> None:
        """Subcommands are completed."""
        if shutil.which("bash") is None:
            self.skipTest("needs bash")
        self.assertEqual(self.complete("kubetwist re"), ["restore"])
        self.assertEqual(self.complete("kubetwist token "), ["create", "signin-link", "user"])

    def test_flags(self) -> None:
        """Flags of commands and of the server are completed."""
        if shutil.which("bash") is None:
            self.skipTest("needs bash")
        self.assertEqual(self.complete("kubetwist restore --bump"), ["--bump-revision"])
        etcd = [f"--{flag.name}" for flag in FLAGS if flag.name.startswith("etcd-")]
        self.assertEqual(self.complete("kubetwist serve --secure-port=0 --etcd-"), etcd)
        self.assertEqual(self.complete("kubetwist why get pods -o "), ["text", "json"])

"""C{kubetwist plugin}: write a package with plugins."""

from __future__ import annotations

from ..flagcommand import flag_command
from ..plugin import Options, run

command = flag_command(Options, run)

"""C{kubetwist backup}: back up a data directory."""

from __future__ import annotations

from ..backup import Options, run
from ..flagcommand import flag_command

command = flag_command(Options, run)

"""C{kubetwist restore}: create a data directory from a backup."""

from __future__ import annotations

from ..flagcommand import flag_command
from ..restore import Options, run

command = flag_command(Options, run)

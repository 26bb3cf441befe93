"""C{kubetwist migrate}: copy all objects to another storage backend."""

from __future__ import annotations

from ..flagcommand import flag_command
from ..migrate import Options, run

command = flag_command(Options, run)

"""What a front inherits from the storage process: two sockets, and a description in its environment."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from typing import Final

from attrs import asdict, frozen

#: The environment variable with the description. It contains no secret.
VARIABLE: Final = "KUBETWIST_FRONT"
#: The descriptors of the control connection, and of the socket that passes connections of clients.
CONTROL: Final = 3
PASSING: Final = 4


@frozen
class FrontDescription:
    """
    The description of a front.

    @ivar number: Its number, from 1 on.
    @ivar count: The number of fronts.
    @ivar port: The port at which the storage process listens.
    @ivar data_dir: The data directory.
    """

    number: int
    count: int
    port: int
    data_dir: str

    def encode(self) -> str:
        """Return the value of the environment variable."""
        return json.dumps(asdict(self))


def take_description(environment: MutableMapping[str, str] = os.environ) -> FrontDescription | None:
    """
    Return the description of this process, and remove it from the environment; L{None} if this process is not a front.
    """
    value = environment.pop(VARIABLE, None)
    return None if value is None else FrontDescription(**json.loads(value))

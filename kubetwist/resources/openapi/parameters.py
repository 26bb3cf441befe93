"""
The parameters of the API's operations: names, types and descriptions as in the reference.

The query parameters are in C{parameters.txt} beside this module, by the options type that the reference decodes them
into.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import frozen


@frozen
class Parameter:
    """
    A parameter of a URL.

    @ivar place: C{"path"} or C{"query"}.
    @ivar type: The JSON type.
    """

    name: str
    place: str
    type: str
    description: str

    @property
    def key(self) -> tuple[str, str]:
        """Return the key that is unique among the parameters of an operation."""
        return self.name, self.place


def _options() -> dict[str, tuple[Parameter, ...]]:
    """Return the table C{parameters.txt}, by options type."""
    text = Path(__file__).with_name("parameters.txt").read_text(encoding="ascii")
    _, *parts = re.split(r"^\[(\w+)\] (\w+) (\w+)\n", text, flags=re.M)
    found: dict[str, list[Parameter]] = {}
    for options, name, kind, description in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True):
        found.setdefault(options, []).append(Parameter(name, "query", kind, description.rstrip("\n")))
    return {options: tuple(parameters) for options, parameters in found.items()}


#: By options type of the reference: options of connections, of logs, and the ones below.
OPTIONS: Final[Mapping[str, tuple[Parameter, ...]]] = _options()

#: Parameters of every operation on resources.
PRETTY: Final = OPTIONS["Any"]
#: Lists and watches, from 1.36 on.
_SHARD_SELECTOR: Final = "shardSelector"
#: Deletes, from 1.32 on.
_UNSAFE_DELETE: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"

CREATE: Final = OPTIONS["CreateOptions"]
UPDATE: Final = CREATE
PATCH: Final = OPTIONS["PatchOptions"]

#: For lists, and for reading custom resources.
RESOURCE_VERSION: Final = next(one for one in OPTIONS["ListOptions"] if one.name == "resourceVersion")

NAMESPACE: Final = Parameter(
    "namespace", "path", "string", "object name and auth scope, such as for teams and projects"
)
PATH: Final = Parameter("path", "path", "string", "path to the resource")


def listing(minor: int) -> tuple[Parameter, ...]:
    """Return the parameters of lists and watches in a minor release."""
    return tuple(one for one in OPTIONS["ListOptions"] if minor >= 36 or one.name != _SHARD_SELECTOR)


def deletion(minor: int) -> tuple[Parameter, ...]:
    """Return the parameters of deletes in a minor release."""
    return tuple(one for one in OPTIONS["DeleteOptions"] if minor >= 32 or one.name != _UNSAFE_DELETE)


def name_of(kind: str) -> Parameter:
    """Return the parameter of the object's name."""
    return Parameter("name", "path", "string", f"name of the {kind}")

"""Users and groups that the API itself knows."""

from __future__ import annotations

from typing import Final

#: Who sends requests without credentials.
ANONYMOUS: Final = "system:anonymous"
#: Everyone else.
AUTHENTICATED: Final = "system:authenticated"
#: The group of L{ANONYMOUS}.
UNAUTHENTICATED: Final = "system:unauthenticated"
#: May do everything, whatever the rules are.
MASTERS: Final = "system:masters"

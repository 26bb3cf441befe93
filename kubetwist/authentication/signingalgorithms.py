"""The signature algorithms that OpenID Connect tokens may use."""

from __future__ import annotations

from typing import Final

#: The accepted signature algorithms of OpenID Connect tokens; symmetric ones are excluded.
SIGNING_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")

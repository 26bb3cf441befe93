"""The server's own issuer of service account tokens, and the keys for them, as the command line has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..registry.tokenkeys import BadVerificationKey, TokenKey, load_token_keys
from ..registry.tokens import BadSigningKey, TokenIssuer
from .datadir import DataDirectory
from .errors import StartError


def make_token_issuer(options: Any, data: DataDirectory) -> TokenIssuer:
    """
    Read the key of C{--service-account-signing-key-file}, or without it that of the data directory.

    @raise StartError: It can not be read, or not be used.
    """
    given = options["service-account-signing-key-file"]
    path = Path(given) if given else data.service_account_keys()[0]
    issuers = options["service-account-issuer"]
    audiences = options["api-audiences"] or issuers
    try:
        return TokenIssuer.load(path.read_bytes(), issuers[0], audiences)
    except OSError as error:
        raise StartError(f"can not read {path}: {error.strerror}") from error
    except BadSigningKey as error:
        raise StartError(f"can not use {path}: {error}") from error


def read_token_keys(options: Any, data: DataDirectory) -> tuple[TokenKey, ...]:
    """
    What service account tokens are verified by: the keys of C{--service-account-key-file}, or the one that signs.

    @raise StartError: They can not be read, or not be used.
    """
    signing = options["service-account-signing-key-file"]
    paths = [Path(path) for path in options["service-account-key-file"]]
    keys: list[TokenKey] = []
    for path in paths or [Path(signing) if signing else data.service_account_keys()[1]]:
        try:
            keys += load_token_keys(path.read_bytes())
        except OSError as error:
            raise StartError(f"can not read {path}: {error.strerror}") from error
        except BadVerificationKey as error:
            raise StartError(f"can not use {path}: {error}") from error
    return tuple(keys)

"""
Replace the secrets in objects of a cluster by fixed texts.

Masked are: the data of Secrets; in all other places tokens, private keys and the credentials of kubeconfigs; values of
environment variables that are named like secrets; and the same in C{last-applied-configuration} annotations.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from ...api.jsontypes import JSONObject, JSONValue

#: Replaces a secret.
MASK: Final = "masked"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MASK_BASE64: Final = b64encode(MASK.encode()).decode()
#: Keys of Secrets whose values the server parses: what it accepts without a secret.
_PARSED_KEYS: Final = {".dockerconfigjson": '{"auths":{}}', ".dockercfg": "{}"}
#: Longer texts are not searched for encoded secrets.
_MAX_ENCODED: Final = 1024 * 1024

_JWT: Final = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+")
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(?:-----END \1-----|\Z)", re.DOTALL)
_BEARER: Final = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{20,}")
#: Fields of a kubeconfig inside a text, in YAML or JSON.
_CREDENTIAL_FIELD: Final = re.compile(
    r"""(?mx) (["']?\b(?:client-key-data|token|id-token|refresh-token|access-token|password)["']?\s*:\s*["']?)
        [^\s"',}]+"""
)
_SECRET_NAME: Final = re.compile(
    r"(?i)(passw(or)?d|passphrase|secret|token|credential|api[_-]?key|private[_-]?key|access[_-]?key)"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]{32,}={0,2}\s*")


def mask_object(obj: JSONObject) -> JSONObject:
    """Return a copy of an object without secrets. Masking a masked object changes nothing."""
    if obj.get("kind") == "CustomResourceDefinition":
        # Schemas contain no secrets, but large texts about them.
        return deepcopy(obj)
    masked: JSONObject = _mask_value(obj)
    annotations = (masked.get("metadata") or {}).get("annotations") or {}
    if obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1":
        _mask_secret(masked)
    applied = (obj.get("metadata") or {}).get("annotations") or {}
    if isinstance(applied, dict) and isinstance(applied.get(LAST_APPLIED), str):
        text = _mask_applied(applied[LAST_APPLIED])
        if text is None:
            del annotations[LAST_APPLIED]
        else:
            annotations[LAST_APPLIED] = text
    return masked


def _mask_applied(text: str) -> str | None:
    """Return the annotation of C{kubectl apply} without secrets; L{None} if it is not an object."""
    try:
        applied = json.loads(text)
    except ValueError:
        return None
    if not isinstance(applied, dict):
        return None
    # kubectl writes a line end.
    return json.dumps(mask_object(applied), separators=(",", ":"), ensure_ascii=False) + "\n"


def _mask_secret(secret: JSONObject) -> None:
    for field, encode in (("data", _encoded), ("stringData", str)):
        values = secret.get(field)
        if isinstance(values, dict):
            secret[field] = {key: encode(_PARSED_KEYS.get(key, MASK)) for key in values}


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _mask_value(value: JSONValue) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [_mask_value(item) for item in value]
    if isinstance(value, dict):
        masked = {key: _mask_value(item) for key, item in value.items()}
        name = masked.get("name")
        if isinstance(name, str) and isinstance(masked.get("value"), str) and _SECRET_NAME.search(name):
            # An environment variable, a header, or a parameter.
            masked["value"] = MASK
        return masked
    return value


def mask_text(text: str) -> str:
    """Return a text without tokens, private keys and credentials, plain or in base64."""
    if len(text) >= 32 and len(text) <= _MAX_ENCODED and _BASE64.fullmatch(text):
        return _mask_base64(text)
    masked = _PRIVATE_KEY.sub(rf"-----BEGIN \1-----\n{MASK}\n-----END \1-----", text)
    masked = _JWT.sub(MASK, masked)
    masked = _BEARER.sub(rf"\1 {MASK}", masked)
    return _CREDENTIAL_FIELD.sub(rf"\1{MASK}", masked)


def _mask_base64(text: str) -> str:
    try:
        decoded = b64decode("".join(text.split()), validate=True).decode("utf-8")
    except (Base64Error, UnicodeDecodeError):
        return text
    masked = mask_text(decoded)
    return text if masked == decoded else _encoded(masked)


#: Changes an object in place; returns False to leave it out.
MaskRule = Callable[[JSONObject], object]


def masked_by(rules: list[MaskRule], obj: JSONObject) -> JSONObject | None:
    """
    Return a copy of an object without secrets, changed by further rules.

    @param rules: Each changes the object in place, or returns C{False} to leave it out.
    @return: L{None} if it is left out.
    """
    masked = mask_object(obj)
    for rule in rules:
        if rule(masked) is False:
            return None
    return masked

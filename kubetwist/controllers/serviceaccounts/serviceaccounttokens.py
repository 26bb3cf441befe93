"""
Creates the tokens of service account Secrets, and deletes the Secrets of deleted service accounts.

@see: kubernetes, C{pkg/controller/serviceaccount/tokens_controller.go}.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import JSONObject
from ...api.users import service_account_user
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.controller import Controller

TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
#: The issuer claim of Secret-based tokens (Go: serviceaccount.LegacyIssuer).
ISSUER: Final = "kubernetes/serviceaccount"
_CLAIM: Final = "kubernetes.io/serviceaccount/"


class Key(NamedTuple):
    """
    The key of a Secret, or of a deleted service account.

    @ivar secret: The name of the Secret; C{""} if the service account was deleted.
    @ivar secret_uid: The uid of the Secret.
    @ivar account_uid: The uid of the service account; C{""} if the Secret does not contain it.
    """

    namespace: str
    account: str
    account_uid: str
    secret: str = ""
    secret_uid: str = ""


def is_service_account_token(record: Record) -> bool:
    """Return whether a Secret has the type of service account tokens."""
    return record.fields.get("type") == TYPE


def _annotations(record: Record) -> JSONObject:
    return decoded_object(record)["metadata"].get("annotations") or {}


def service_account_of(record: Record) -> Iterable[tuple[str, str]]:
    """Return the namespace and name of the service account of a Secret. An index function."""
    account = _annotations(record).get(ACCOUNT_NAME) if is_service_account_token(record) else None
    return ((record.namespace, account),) if account else ()


def claims(account: JSONObject, secret: JSONObject) -> JSONObject:
    """Return the claims of a Secret-based token, which does not expire."""
    meta = account["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    return {
        "iss": ISSUER,
        f"{_CLAIM}namespace": namespace,
        f"{_CLAIM}secret.name": secret["metadata"]["name"],
        f"{_CLAIM}service-account.name": name,
        f"{_CLAIM}service-account.uid": meta["uid"],
        "sub": service_account_user(namespace, name),
    }


class TokensController(Controller[Key]):
    """Creates tokens in Secrets, and deletes Secrets of deleted service accounts."""

    name: ClassVar[str] = "serviceaccount-token-controller"
    service_account: ClassVar[str] = "system:kube-controller-manager"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for service account token Secrets and deleted service accounts."""
        self._secrets = self.context.informer("", "secrets")
        self._by_account = self._secrets.index("token account", service_account_of)
        self._accounts = self.watch("", "serviceaccounts", self._account_changed)
        self.watch("", "secrets", self._secret_changed)
        self.context.on_root_ca_changed(self._ca_bundle_changed)

    def _account_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            self.queue.add(Key(record.namespace, record.name, decoded_object(record)["metadata"]["uid"]))

    def _secret_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if is_service_account_token(record):
            annotations = _annotations(record)
            account, uid = annotations.get(ACCOUNT_NAME), annotations.get(ACCOUNT_UID) or ""
            if account:
                meta = decoded_object(record)["metadata"]
                self.queue.add(Key(record.namespace, account, uid, record.name, meta["uid"]))

    def _ca_bundle_changed(self) -> None:
        for record in self._secrets.list():
            self._secret_changed("MODIFIED", record, None)

    def _account(self, namespace: str, name: str, uid: str) -> JSONObject | None:
        account = self._accounts.get_decoded(namespace, name)
        return account if account is not None and uid in ("", account["metadata"]["uid"]) else None

    async def sync(self, key: Key) -> None:
        """See L{Controller.sync}."""
        if not key.secret:
            await self._account_deleted(key)
            return
        account = self._account(key.namespace, key.account, key.account_uid)
        record = self._secrets.get(key.namespace, key.secret)
        if record is None or decoded_object(record)["metadata"]["uid"] != key.secret_uid:
            if account is not None:
                await self._forget(account, key.secret)
        elif account is None:
            await self._delete(record)
        else:
            await self._fill(account, record)

    async def _account_deleted(self, key: Key) -> None:
        if self._account(key.namespace, key.account, key.account_uid) is not None:
            return
        for record in self._by_account.get((key.namespace, key.account)):
            if _annotations(record).get(ACCOUNT_UID) in (None, "", key.account_uid):
                await self._delete(record)

    async def _delete(self, record: Record) -> None:
        uid = decoded_object(record)["metadata"]["uid"]
        try:
            await self.client.delete("", "secrets", record.namespace, record.name, uid=uid)
        except APIStatusError as error:
            if error.code not in (404, 409):
                raise

    async def _forget(self, account: JSONObject, secret: str) -> None:
        """Remove a deleted Secret from the C{secrets} of a service account."""

        def drop(obj: JSONObject) -> None:
            obj["secrets"] = [one for one in obj.get("secrets") or () if one.get("name") != secret]

        if any(one.get("name") == secret for one in account.get("secrets") or ()):
            meta = account["metadata"]
            await self.client.update("", "serviceaccounts", meta["namespace"], meta["name"], drop, uid=meta["uid"])

    async def _fill(self, account: JSONObject, record: Record) -> None:
        ca = b64encode(self.context.root_ca.encode()).decode()
        namespace = b64encode(record.namespace.encode()).decode()
        meta = account["metadata"]

        def missing(secret: JSONObject) -> dict[str, str]:
            data = secret.get("data") or {}
            fields = {} if data.get("ca.crt", "") == ca or not ca else {"ca.crt": ca}
            return fields | {name: namespace for name in ("namespace",) if not data.get(name)}

        def complete(secret: JSONObject) -> None:
            data = {**(secret.get("data") or {}), **missing(secret)}
            if not data.get("token"):
                issuer = self.context.config.token_issuer
                assert issuer is not None, "a server with this controller signs tokens"
                token = issuer.sign(claims(account, secret))
                data["token"] = b64encode(token.encode()).decode()
            secret["data"] = data
            annotations = secret["metadata"].setdefault("annotations", {})
            annotations[ACCOUNT_NAME], annotations[ACCOUNT_UID] = meta["name"], meta["uid"]

        secret = decoded_object(record)
        if missing(secret) or not (secret.get("data") or {}).get("token"):
            uid = secret["metadata"]["uid"]
            await self.client.update("", "secrets", record.namespace, record.name, complete, uid=uid)

"""
Conversion of custom resources between versions by a webhook, or by a plugin in this process.

Both can be asynchronous, while stores and encoders read objects synchronously. Therefore objects are converted in
batches before they are read (L{kubetwist.registry.customresources.store.CustomStore.ensure_converted}), and the results
are cached with the records. A conversion that changes only the apiVersion needs none of this.

@see: kubernetes, C{apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go}.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.plugin import getPlugins
from twisted.python.failure import Failure

from ...api.errors import APIStatusError, FieldError
from ...api.go.text import go_type
from ...api.jsontypes import JSONValue
from ...api.objectmeta import validate_annotations, validate_labels
from ...api.providers import interface_error
from ...api.resource import GroupVersionKind, JSONObject
from ...client.clientconfig import rest_config_for
from ...client.errors import (
    CallError,
    InvalidRESTConfig,
    Unreachable,
)
from ...client.responses import raise_for_status
from ...interfaces import IConversionPlugin
from ...tracing.spans import Value, current_span
from .crd import converting_plugin

if TYPE_CHECKING:
    from ...client.factory import ClientFactory
    from ...client.httpclient import WebhookClient

#: Maximum number of objects, and bytes of JSON, of one call.
BATCH_OBJECTS: Final = 500
BATCH_BYTES: Final = 4 << 20
#: Maximum size of a response, in bytes; conversion may add to objects.
ANSWER_LIMIT: Final = 32 << 20
#: Timeout of one call, in seconds.
TIMEOUT: Final = 30.0
#: Seconds by which the timeout of a webhook is shorter, as its error is more specific.
GRACE: Final = 1.0
#: Maximum number of objects of one call to a plugin, which runs in the reactor's thread.
PLUGIN_BATCH: Final = 50
REVIEW_VERSIONS: Final = ("v1", "v1beta1")

#: Converts objects of one kind to an apiVersion; returns as many objects in the same order.
Convert = Callable[[Sequence[JSONObject], str], Any]


class ConversionFailed(ValueError):
    """The converter failed; the text has the reason and is sent to clients."""


class CRConverter:
    """
    Converts the objects of one CRD to other versions, and validates the results.

    @ivar name: The converter, for messages: C{"conversion webhook"}.
    """

    _log = Logger()

    def __init__(
        self,
        name: str,
        convert: Convert,
        reactor: IReactorTime,
        *,
        batch_size: int = BATCH_OBJECTS,
        close: Callable[[], object] | None = None,
    ) -> None:
        """
        @param convert: Raises C{ValueError} with the reason of a failure; other exceptions are bugs of the converter.
        @param batch_size: Maximum number of objects of one call. The reactor runs between calls.
        @param reactor: The clock of the timeout.
        @param close: Called when the converter is no longer used.
        """
        self.name = name
        self._convert = convert
        self._reactor = reactor
        self._batch_size = batch_size
        self._close = close

    def close(self) -> None:
        """Release the resources of C{convert}."""
        if self._close is not None:
            self._close()

    async def convert(self, objects: Sequence[JSONObject], gvk: GroupVersionKind) -> list[JSONObject]:
        """
        Convert objects.

        @param objects: Objects of the same kind and apiVersion, which they contain; they are not changed.
        @param gvk: The target version.
        @return: As many objects, in the same order.
        @raise APIStatusError: The conversion failed (500 without a reason, as in the reference).
        """
        converted: list[JSONObject] = []
        for batch in _split_batches(objects, self._batch_size):
            if converted:
                await deferLater(self._reactor, 0)
            converted += await self._batch(batch, gvk)
        return converted

    async def _batch(self, objects: Sequence[JSONObject], gvk: GroupVersionKind) -> list[JSONObject]:
        about = f"{self.name} for {objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
        try:
            result = self._convert(objects, gvk.api_version)
            if isinstance(result, Awaitable):
                result = await _with_timeout(result, self._reactor)
        except TimeoutError:
            raise APIStatusError.unknown(f"{about} failed: it took longer than {TIMEOUT:.0f} s") from None
        except ValueError as error:
            raise APIStatusError.unknown(f"{about} failed: {error}") from None
        except Exception:
            self._log.failure("{about} failed", about=about)
            raise APIStatusError.unknown(
                f"{about} failed: the converter raised an exception; see the server log"
            ) from None
        if not isinstance(result, list) or len(result) != len(objects):
            count = len(result) if isinstance(result, list) else 0
            raise APIStatusError.unknown(f"{about} returned {count} objects, expected {len(objects)}")
        noun = "object" if len(objects) == 1 else "converted object"
        return [
            _validate_converted(before, after, gvk, f"{about} returned invalid", f"{noun} at index {index}")
            for index, (before, after) in enumerate(zip(objects, result, strict=True))
        ]


async def _with_timeout(awaitable: Awaitable[Any], reactor: IReactorTime) -> Any:
    """
    Return the result of an awaitable.

    @raise TimeoutError: The timeout expired; the awaitable is cancelled.
    """
    waited = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(_await_result(awaitable))
    return await waited.addTimeout(TIMEOUT + GRACE, reactor, _raise_timeout)


async def _await_result(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _raise_timeout(result: Any, timeout: float) -> Any:
    if isinstance(result, Failure) and result.check(CancelledError):
        raise TimeoutError
    return result


def _split_batches(objects: Sequence[JSONObject], batch_size: int) -> list[list[JSONObject]]:
    if len(objects) == 1:
        return [list(objects)]
    batches: list[list[JSONObject]] = []
    room = 0
    for obj in objects:
        size = len(orjson.dumps(obj))
        if not batches or len(batches[-1]) == batch_size or size > room:
            batches.append([])
            room = BATCH_BYTES
        batches[-1].append(obj)
        room -= size
    return batches


def _validate_converted(
    before: JSONObject, after: JSONValue, gvk: GroupVersionKind, about: str, which: str
) -> JSONObject:
    """Return a converted object with the metadata of the original; only labels and annotations may change."""
    if not isinstance(after, dict):
        raise APIStatusError.unknown(f"{about} {which}: {go_type(after)} is no object")
    expected_version, api_version = gvk.api_version, after.get("apiVersion") or ""
    if expected_version != api_version:
        raise APIStatusError.unknown(
            f"{about} {which}: invalid groupVersion (expected {expected_version}, received {_format(api_version)})"
        )
    kind = after.get("kind") or ""
    if gvk.kind != kind:
        raise APIStatusError.unknown(f"{about} {which}: invalid kind (expected {gvk.kind}, received {_format(kind)})")
    which = "object" if which.startswith("object") else which
    meta, old = after.get("metadata"), before.get("metadata")
    if old is None:
        # An incomplete object, converted for field ownership.
        return {name: value for name, value in after.items() if name != "metadata"}
    if not isinstance(meta, dict):
        reason = "missing metadata" if meta is None else f"invalid metadata of type {go_type(meta)}"
        raise APIStatusError.unknown(f"{about} metadata{_index_suffix(which)}: {reason} in converted object")
    for name, label in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (old.get(name) or "") != (meta.get(name) or ""):
            raise APIStatusError.unknown(
                f"{about} {which}: must have the same {label}: {old.get(name, '')} != {_format(meta.get(name, ''))}"
            )
    restored = dict(old)
    for name, check, path in (
        ("labels", validate_labels, "metadata.labels"),
        ("annotations", validate_annotations, "metadata.annotation"),
    ):
        try:
            values = _validate_map(name, meta.get(name), old.get(name) or {}, check, path)
        except ValueError as error:
            raise APIStatusError.unknown(f"{about} metadata{_index_suffix(which)}: {error}") from None
        if values is None:
            restored.pop(name, None)
        else:
            restored[name] = values
    return {**after, "metadata": restored}


def _validate_map(
    name: str, values: JSONValue, old: JSONObject, check: Callable[..., list[FieldError]], path: str
) -> JSONValue:
    """
    Return converted labels or annotations; L{None} for none.

    @raise ValueError: They are invalid.
    """
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ValueError(f"invalid metadata.{name} of type {go_type(values)} in converted object")
    for key, value in values.items():
        if not isinstance(value, str):
            raise ValueError(f"metadata.{name}[{key}] must be a string, but is {go_type(value)} in converted object")
    if values != old:
        errors = check(values, path)
        if errors:
            texts = [f"{field_error.field}: {field_error.message}" for field_error in errors]
            raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return values


def _index_suffix(which: str) -> str:
    return "" if which == "object" else f" in {which.replace('converted ', '')}"


def _format(value: JSONValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


class WebhookConversion:
    """Calls the conversion webhook of a CRD."""

    def __init__(self, webhook: JSONObject, outgoing: ClientFactory) -> None:
        """
        @param webhook: The definition's C{spec.conversion.webhook}.
        """
        self._config: JSONObject = webhook.get("clientConfig") or {}
        versions = webhook.get("conversionReviewVersions") or ()
        self._version: str = next((one for one in versions if one in REVIEW_VERSIONS), "")
        self._outgoing = outgoing
        self._client: WebhookClient | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    async def __call__(self, objects: Sequence[JSONObject], api_version: str) -> list[JSONObject]:
        """See L{Convert}."""
        if not self._version:
            raise ConversionFailed("no supported conversion review versions")
        uid = str(uuid.uuid4())
        review_version = f"apiextensions.k8s.io/{self._version}"
        review = {
            "kind": "ConversionReview",
            "apiVersion": review_version,
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
        try:
            if self._client is None:
                settings = rest_config_for(self._config, self._outgoing)
                self._client = self._outgoing.client(settings, limit=ANSWER_LIMIT)
            about: dict[str, Value] = {"desired-api-version": api_version, "object-count": len(objects), "UID": uid}
            with current_span().child("Call conversion webhook", about) as span:
                answer = await self._client.post(orjson.dumps(review), timeout=TIMEOUT)
                raise_for_status(answer)
                span.add_event("Request completed")
        except (CallError, Unreachable, InvalidRESTConfig) as error:
            raise ConversionFailed(str(error)) from None
        except APIStatusError as error:
            raise ConversionFailed(error.message) from None
        try:
            result = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise ConversionFailed(f"couldn't get version/kind; json parse error: {error}") from None
        return _response_objects(result, review_version, uid)


def _response_objects(review: JSONValue, api_version: str, uid: str) -> list[JSONObject]:
    """Return the objects in the response of a webhook."""
    if not isinstance(review, dict):
        raise ConversionFailed("couldn't get version/kind; json parse error: the answer is no object")
    group, _, version = api_version.partition("/")
    review_kind = f"{review.get('apiVersion') or ''}, Kind={review.get('kind') or ''}"
    if version == "v1" and review_kind != f"{api_version}, Kind=ConversionReview":
        raise ConversionFailed(
            f"expected webhook response of {group}/{version}, Kind=ConversionReview, got {review_kind}"
        )
    response = review.get("response")
    if not isinstance(response, dict):
        raise ConversionFailed("no response provided")
    if version == "v1" and response.get("uid", "") != uid:
        raise ConversionFailed(f'expected response.uid="{uid}", got {orjson.dumps(response.get("uid", "")).decode()}')
    result = response.get("result")
    status = result.get("status") if isinstance(result, dict) else None
    if status != "Success":
        message = result.get("message") if isinstance(result, dict) else None
        raise ConversionFailed(
            str(message) if message else f"response.result.status was '{status or ''}', not 'Success'"
        )
    return response.get("convertedObjects") or []


class CRConverterFactory:
    """Creates the converters of CRDs."""

    def __init__(self, outgoing: ClientFactory, reactor: IReactorTime, installed: Iterable[Any] | None = None) -> None:
        """
        @param installed: Plugins to choose from instead of the installed ones.
        """
        self._outgoing = outgoing
        self._reactor = reactor
        self._installed = installed

    def __call__(self, crd: JSONObject) -> CRConverter | None:
        """Return the converter of a CRD; L{None} if conversion only changes the apiVersion."""
        conversion = crd["spec"].get("conversion") or {}
        if conversion.get("strategy") == "Webhook":
            webhook = WebhookConversion(conversion.get("webhook") or {}, self._outgoing)
            return CRConverter("conversion webhook", webhook, self._reactor, close=webhook.close)
        name = converting_plugin(crd)
        if not name:
            return None
        return CRConverter(
            f'conversion plugin "{name}"', self._plugin(name, crd), self._reactor, batch_size=PLUGIN_BATCH
        )

    def _plugin(self, name: str, crd: JSONObject) -> Convert:
        plugins = getPlugins(IConversionPlugin) if self._installed is None else self._installed
        matches = [one for one in plugins if one.name == name]
        if len(matches) != 1:
            many = "two plugins of that name are" if matches else "no plugin of that name is"
            return _failing_converter(f"{many} installed")
        plugin = matches[0]
        error = interface_error(plugin, IConversionPlugin)
        if error:
            return _failing_converter(error)

        def convert(objects: Sequence[JSONObject], api_version: str) -> Any:
            # The plugin may change its arguments.
            return plugin.convert(orjson.loads(orjson.dumps(objects)), api_version)

        return convert


def _failing_converter(reason: str) -> Convert:
    def convert(objects: Sequence[JSONObject], api_version: str) -> Any:
        raise ConversionFailed(reason)

    return convert


class InFlightConversions:
    """Running conversions: concurrent requests for the same object wait for one conversion."""

    def __init__(self) -> None:
        self._waiting: dict[Any, list[Deferred[None]]] = {}

    def start_or_join(self, key: object) -> bool:
        """Return whether a conversion of C{key} is in flight; if not, register the caller's."""
        if key in self._waiting:
            return True
        self._waiting[key] = []
        return False

    async def wait(self, key: object) -> None:
        """Return a Deferred that fires when the conversion of C{key} has succeeded or failed."""
        waiters = self._waiting.get(key)
        if waiters is not None:
            waiter: Deferred[None] = Deferred()
            waiters.append(waiter)
            await waiter

    def finish(self, keys: Sequence[object]) -> None:
        """Resume the callers that wait for C{keys}."""
        for key in keys:
            for waiter in self._waiting.pop(key, ()):
                waiter.callback(None)

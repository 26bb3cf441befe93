"""Unit tests of conversion plugins: objects and a version in, objects out; no server is started."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import orjson

from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from ..api.jsontypes import JSONObject
from ..api.providers import interface_error
from ..api.resource import GroupVersion, GroupVersionKind
from ..interfaces import IConversionPlugin
from ..registry.customresources.conversion import CRConverter, CRConverterFactory
from ..registry.customresources.crd import PLUGIN_ANNOTATION
from .manifests import objects_of
from .memory import MemoryServer, Objects, kind_of

Convert = Callable[[list[JSONObject], str], "list[JSONObject] | Awaitable[list[JSONObject]]"]


@implementer(IConversionPlugin)
class _FunctionConverter:
    """The plugin of a function that converts."""

    def __init__(self, convert: Convert) -> None:
        self.name = getattr(convert, "__name__", "convert")
        self._convert = convert

    def convert(self, objects: list[JSONObject], api_version: str) -> list[JSONObject] | Awaitable[list[JSONObject]]:
        """See L{IConversionPlugin.convert}."""
        return self._convert(objects, api_version)


class ConverterHarness:
    """
    A conversion plugin, called as the server calls it: with copies, in small batches, and with its checks of results.

    Only labels and annotations of the metadata may change. Name, namespace and uid must remain, and the number and
    order of the objects.
    """

    def __init__(self, plugin: IConversionPlugin | Convert | str, *, clock: IReactorTime | None = None) -> None:
        """
        @param plugin: The plugin, a function C{convert}, or the name of an installed plugin.
        @param clock: The reactor; by default a clock that L{convert} advances while the plugin waits.
        @raise ValueError: The plugin lacks a method of the interface.
        """
        self.server = MemoryServer(clock=clock)
        installed: Iterable[Any] | None = None
        if isinstance(plugin, str):
            name = plugin
        else:
            provider: Any = plugin if hasattr(plugin, "convert") else _FunctionConverter(plugin)
            problem = interface_error(provider, IConversionPlugin)
            if problem:
                raise ValueError(f"the conversion plugin cannot be used: {problem}")
            name, installed = provider.name, [provider]
        factory = CRConverterFactory(None, self.server.clock, installed)  # type: ignore[arg-type] # no webhooks
        converter = factory({"metadata": {"annotations": {PLUGIN_ANNOTATION: name}}, "spec": {}})
        assert converter is not None, "the annotation names a plugin"
        self._converter: CRConverter = converter

    def convert(self, objects: Objects, api_version: str) -> list[JSONObject]:
        """
        Return converted objects. The clock advances while the plugin waits for it.

        @param objects: Objects of one kind and version: YAML, a file, or dictionaries.
        @param api_version: The version to convert to: C{"stable.example.com/v2"}.
        @raise APIStatusError: The conversion failed, or the server does not accept its results (500).
        @raise NoResult: The plugin waits for something else, such as a connection: use L{convert_async}.
        """
        return self.server.run(self.convert_async(objects, api_version))

    async def convert_async(self, objects: Objects, api_version: str) -> list[JSONObject]:
        """
        Return converted objects; see L{convert}.

        @raise ValueError: The objects are of several kinds or versions.
        """
        sources: list[JSONObject] = orjson.loads(orjson.dumps(objects_of(objects)))
        kinds = {kind_of(obj) for obj in sources}
        if len(kinds) != 1:
            raise ValueError("the objects are not of one kind and version")
        for obj in sources:
            # As stored objects have them.
            obj.setdefault("metadata", {}).setdefault("uid", "00000000-0000-0000-0000-000000000000")
        before = orjson.dumps(sources)
        gvk = GroupVersionKind(*GroupVersion.parse(api_version), kinds.pop().kind)
        converted = await self._converter.convert(sources, gvk)
        assert orjson.dumps(sources) == before, "the plugin gets copies"
        return converted

    def check_round_trip(self, objects: Objects, api_versions: Sequence[str]) -> None:
        """
        Check that objects are the same after a conversion to each version and back.

        @param objects: Objects of one kind and version.
        @param api_versions: The versions to convert to.
        @raise AssertionError: A conversion loses or changes something; the text has both objects.
        """
        sources = objects_of(objects)
        api_version = kind_of(sources[0]).api_version
        for version in api_versions:
            for source in sources:
                [there] = self.convert([source], version)
                [back] = self.convert([there], api_version)
                expected = {**source, "metadata": {**back["metadata"], **source["metadata"]}}
                if back != expected:
                    raise AssertionError(f"conversion to {version} and back changed {expected} to {back}")

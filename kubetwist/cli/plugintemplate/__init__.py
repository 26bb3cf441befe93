"""
Packages with plugins, written from templates.

The templates are the files of this folder with the suffix F{.txt}: L{string.Template} with the names of the package.
"""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from attrs import frozen

#: Maximum number of characters of a name, which is part of file names.
MAX_NAME_LENGTH: Final = 40
#: The names of projects in PEP 508.
_PROJECT: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
#: Packages that a new one would hide.
_TAKEN: Final = frozenset(("kubetwist", "twisted", "zope", "test", "tests", *sys.stdlib_module_names))


class TemplateError(ValueError):
    """The package cannot be written; the text is one line."""


@frozen
class PluginKind:
    """
    A kind of plugin.

    @ivar description: What the plugin is, for the README.
    @ivar factory: The module and name of the factory in the drop-in module.
    @ivar arguments: The arguments of the factory, as templates.
    @ivar flags: The flags that enable the plugin, as a template.
    """

    description: str
    factory: tuple[str, str]
    arguments: tuple[str, ...]
    flags: str = ""


_SERVER: Final = "kubetwist.server.plugins"
#: The kinds by name, which is the name of the module too, in the order of the drop-in module.
KINDS: Final = {
    "admission": PluginKind(
        "an admission plugin",
        ("kubetwist.admission.factory", "AdmissionPluginFactory"),
        ('"$class_name"', '"$package.admission:$class_name"'),
    ),
    "authorizer": PluginKind(
        "an authorizer",
        (_SERVER, "AuthorizerFactory"),
        ('"$class_name"', '"$package.authorizer:make_authorizer"'),
        "--authorization-mode=$class_name,Node,RBAC",
    ),
    "authenticator": PluginKind(
        "an authenticator",
        (_SERVER, "AuthenticatorFactory"),
        ('"$class_name"', "250", '"$package.authenticator:make_authenticator"'),
        "--plugin-config-file=$class_name=users.json",
    ),
    "controller": PluginKind(
        "a controller",
        ("kubetwist.controllers.machinery.factory", "ControllerFactory"),
        ('"$name-controller"', '"$package.controller:${class_name}Controller"', 'needs=("configmaps",)'),
    ),
    "storage": PluginKind(
        "a storage backend",
        (_SERVER, "StorageBackendFactory"),
        ('"$name"', '"$package.storage:make_storage"'),
        "--storage-backend=$name",
    ),
    "converter": PluginKind(
        "a conversion of custom resources",
        (_SERVER, "ConversionPlugin"),
        ('"$name"', '"$package.converter:convert"'),
    ),
}


def check_name(name: str) -> str:
    """
    Return the name of the Python package for the name of a project.

    @raise TemplateError: The name is not allowed.
    """
    if not _PROJECT.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise TemplateError(
            f"invalid name {name!r}: it must have up to {MAX_NAME_LENGTH} letters, digits, '.', '_' and '-', and begin"
            " and end with a letter or digit"
        )
    package = re.sub(r"[-_.]+", "_", name).lower()
    if not package.isidentifier() or keyword.iskeyword(package):
        raise TemplateError(f"invalid name {name!r}: {package} cannot be the name of a Python package")
    if package in _TAKEN:
        raise TemplateError(f"invalid name {name!r}: there is a Python package {package}")
    return package


def render_package(name: str, kinds: Sequence[str]) -> dict[str, str]:
    """
    Return the files of a package, by their paths.

    @param name: The name of the project: C{"team-labels"}.
    @param kinds: Names in L{KINDS}.
    @raise TemplateError: The name is not allowed, or a kind is unknown.
    """
    package = check_name(name)
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown or not kinds:
        raise TemplateError(f"unknown kind {', '.join(unknown) or 'of plugin'}: must be {', '.join(KINDS)}")
    chosen = {kind: KINDS[kind] for kind in KINDS if kind in kinds}
    values = {
        "name": re.sub(r"[-_.]+", "-", name).lower(),
        "package": package,
        "class_name": "".join(part.capitalize() for part in package.split("_")),
        "kinds": ", ".join(kind.description for kind in chosen.values()),
    }
    values["flags"] = _substitute(" ".join(kind.flags for kind in chosen.values() if kind.flags), values)
    rendered = {
        "pyproject.toml": _render("pyproject.toml", values),
        "README.md": "\n".join(line.rstrip() for line in _render("README.md", values).split("\n")),
        f"{package}/__init__.py": '"""Plugins for the Kubernetes API server kubetwist."""\n',
        f"{package}/test/__init__.py": f'"""Run them with trial: C{{trial {package}}}."""\n',
        f"twisted/plugins/{package}_plugins.py": "\n".join(_drop_in(chosen, values)) + "\n",
    }
    for kind in chosen:
        rendered[f"{package}/{kind}.py"] = _render(f"{kind}.py", values)
        rendered[f"{package}/test/test_{kind}.py"] = _render(f"test_{kind}.py", values)
    return rendered


def write_package(name: str, kinds: Sequence[str], folder: Path) -> list[str]:
    """
    Write a package to a folder that does not exist.

    @param name: See L{render_package}.
    @param kinds: See L{render_package}.
    @param folder: The folder of the project. Without its parents, nothing is written.
    @return: The paths of the written files in the folder, sorted.
    @raise TemplateError: See L{render_package}; or the folder exists, or cannot be written.
    """
    rendered = render_package(name, kinds)
    try:
        folder.mkdir()
    except FileExistsError:
        raise TemplateError(f"{folder} exists: nothing was written") from None
    except OSError as error:
        raise TemplateError(f"cannot create {folder}: {error.strerror}") from error
    try:
        for path, text in rendered.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise TemplateError(f"cannot write to {folder}: {error.strerror}") from error
    return sorted(rendered)


def _render(path: str, values: dict[str, str]) -> str:
    return _substitute((files(__package__) / f"{path}.txt").read_text("utf-8"), values)


def _substitute(text: str, values: dict[str, str]) -> str:
    return Template(text).substitute(values)


def _drop_in(chosen: dict[str, PluginKind], values: dict[str, str]) -> Iterator[str]:
    """Return the lines of the drop-in module."""
    yield '"""Names the plugins. Twisted imports every drop-in to list it, so nothing else is imported here."""'
    yield ""
    imports: dict[str, list[str]] = {}
    for kind in chosen.values():
        imports.setdefault(kind.factory[0], []).append(kind.factory[1])
    for module in sorted(imports):
        yield f"from {module} import {', '.join(sorted(imports[module]))}"
    yield ""
    for name, kind in chosen.items():
        yield f"{name} = {kind.factory[1]}("
        for argument in kind.arguments:
            yield f"    {_substitute(argument, values)},"
        yield ")"

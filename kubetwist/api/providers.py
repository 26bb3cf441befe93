"""Check plugins against the interfaces that they provide."""

from __future__ import annotations

from zope.interface.exceptions import BrokenImplementation, BrokenMethodImplementation, DoesNotImplement, Invalid
from zope.interface.interface import InterfaceClass, Method
from zope.interface.verify import verifyObject


def interface_error(provider: object, interface: InterfaceClass, *alternatives: InterfaceClass) -> str:
    """
    Return why C{provider} does not provide C{interface}, in one line; C{""} if it does.

    @param provider: The object to check.
    @param interface: The expected interface.
    @param alternatives: Further interfaces. The provider must declare one of all, and implement each that it declares.
    """
    interfaces = (interface, *alternatives)
    declared = [one for one in interfaces if one.providedBy(provider)]
    if not declared:
        names = " or ".join(one.__name__ for one in interfaces)
        return f"{type(provider).__name__} does not provide {names}; declare it with @implementer"
    problems: dict[str, None] = {}
    for one in declared:
        try:
            verifyObject(one, provider)
        except Invalid as error:
            problems.update(dict.fromkeys(_described(error, provider)))
    return "; ".join(problems)


def _described(error: Invalid, provider: object) -> list[str]:
    # zope.interface reports several problems as one exception that contains all of them.
    several: tuple[Invalid, ...] | None = getattr(error, "exceptions", None)
    if several is not None:
        return [text for one in several for text in _described(one, provider)]
    name = type(provider).__name__
    if isinstance(error, BrokenMethodImplementation):
        return [f"{name}.{_plain(error.method)}() does not fit {error.interface.__name__}: {error.mess}"]  # type: ignore[attr-defined] # the stubs lack it
    if isinstance(error, BrokenImplementation):
        is_method = isinstance(error.name, Method)
        described = "" if is_method or not error.name.__doc__ else f" ({error.name.__doc__})"
        part = "method" if is_method else "attribute"
        return [f"{name} lacks the {part} {_plain(error.name)} of {error.interface.__name__}{described}"]
    if isinstance(error, DoesNotImplement):
        return [f"{name} does not provide {error.interface.__name__}"]
    return [" ".join(str(error).split())]


def _plain(name: object) -> str:
    return getattr(name, "__name__", None) or str(name).strip("'")

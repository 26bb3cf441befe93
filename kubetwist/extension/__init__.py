"""
Extension API servers behind a Kubernetes API server; see C{docs/extension.md}.

An extension server consists of L{Resource}s, and of C{make_service} in a Twisted plugin.
"""

from ..registry.generic.fieldmanager.resetfields import fields_except
from ._options import ExtensionOptions
from ._resources import Resource
from ._server import make_service

__all__ = ["ExtensionOptions", "Resource", "fields_except", "make_service"]

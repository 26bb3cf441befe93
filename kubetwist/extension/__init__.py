"""
Extension API servers behind a Kubernetes API server; see C{docs/extension.md}.

A few L{Resource}s, and C{make_service} for a drop-in of C{twist}: that is a server.
"""

from ._options import ExtensionOptions
from ._resources import Resource
from ._server import make_service

__all__ = ["ExtensionOptions", "Resource", "make_service"]

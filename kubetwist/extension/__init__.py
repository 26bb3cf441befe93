"""
API servers of one's own, behind a Kubernetes API server: what C{docs/extension.md} tells of.

A few L{Resource}s, and C{make_service} for a drop-in of C{twist}: that is a server.
"""

from ._options import ExtensionOptions
from ._resources import Resource
from ._server import make_service

__all__ = ["ExtensionOptions", "Resource", "make_service"]

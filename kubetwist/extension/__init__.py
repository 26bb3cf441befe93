"""
API servers of one's own, behind a Kubernetes API server: what C{docs/extension.md} tells of.

A few L{Resource}s, and C{make_service} for a drop-in of C{twist}: that is a server.
"""

from .options import ExtensionOptions
from .resources import Resource
from .server import make_service

__all__ = ["ExtensionOptions", "Resource", "make_service"]

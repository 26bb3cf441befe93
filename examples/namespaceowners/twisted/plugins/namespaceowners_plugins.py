"""Names the authorizer. Twisted imports every drop-in to list it, so nothing else is imported here."""

from kubetwist.server.plugins import AuthorizerFactory

namespace_owners = AuthorizerFactory("NamespaceOwners", "namespaceowners.authorizer:make")

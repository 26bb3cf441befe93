"""Names the plugins. Twisted imports every drop-in merely to list it, so nothing else is imported here."""

from kubetwist.admission.factory import AdmissionPluginFactory
from kubetwist.server.plugins import AuthorizerFactory

house_rules = AdmissionPluginFactory("HouseRules", "houserules.admission:HouseRules")
own_namespace = AuthorizerFactory("OwnNamespace", "houserules.authorizer:make")

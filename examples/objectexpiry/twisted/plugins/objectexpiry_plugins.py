"""Names the controller. Twisted imports every drop-in to list it, so nothing else is imported here."""

from kubetwist.controllers.machinery.factory import ControllerFactory

object_expiry = ControllerFactory("object-expiry-controller", "objectexpiry.controller:ObjectExpiryController")

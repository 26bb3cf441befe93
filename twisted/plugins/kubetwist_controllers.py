from kubetwist.controllers.factory import ControllerFactory

service_accounts = ControllerFactory(
    "serviceaccount-controller",
    "kubetwist.controllers.serviceaccounts:ServiceAccountController",
    needs=("serviceaccounts",),
)

from kubetwist.controllers.factory import ControllerFactory

service_accounts = ControllerFactory(
    "serviceaccount-controller",
    "kubetwist.controllers.serviceaccounts:ServiceAccountController",
    needs=("serviceaccounts",),
)

policy_status = ControllerFactory(
    "validatingadmissionpolicy-status-controller",
    "kubetwist.controllers.policystatus:PolicyStatusController",
    needs=("validatingadmissionpolicies.admissionregistration.k8s.io",),
)

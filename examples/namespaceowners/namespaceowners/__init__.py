"""An authorizer for kubetwist: what the owners of a namespace may do in it."""

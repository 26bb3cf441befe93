"""
Programs in the place of kube-apiserver, etcd and kubectl, for test frameworks that start these by their flags.

Such frameworks are envtest of controller-runtime ($KUBEBUILDER_ASSETS), and kube-api-test of fabric8.
"""

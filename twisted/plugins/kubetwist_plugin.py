from twisted.application.service import ServiceMaker

kubeapi = ServiceMaker("kubetwist", "kubetwist.tap", "The Kubernetes API server.", "kubeapi")

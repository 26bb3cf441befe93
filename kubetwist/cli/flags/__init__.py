"""The flags of C{twist kubeapi}, one module for each flag group of C{kube-apiserver -h}."""

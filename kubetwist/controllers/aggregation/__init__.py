"""Controllers of APIServices (kube-aggregator): autoregistration of served versions and availability of servers."""

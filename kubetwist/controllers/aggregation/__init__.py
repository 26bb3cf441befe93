"""Controllers of APIServices, after kube-aggregator: registration of served versions, availability of API servers."""

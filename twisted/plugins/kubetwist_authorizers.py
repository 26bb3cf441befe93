from kubetwist.server.plugins import AuthorizerFactory

always_allow = AuthorizerFactory("AlwaysAllow", "kubetwist.authorizers.always:make_allow")
always_deny = AuthorizerFactory("AlwaysDeny", "kubetwist.authorizers.always:make_deny")
rbac = AuthorizerFactory("RBAC", "kubetwist.authorizers.rbac:make")
node = AuthorizerFactory("Node", "kubetwist.authorizers.node:make")
abac = AuthorizerFactory("ABAC", "kubetwist.authorizers.abac:make")
webhook = AuthorizerFactory("Webhook", "kubetwist.authorizers.webhook:make")

from kubetwist.server.plugins import AuthorizerFactory

always_allow = AuthorizerFactory("AlwaysAllow", "kubetwist.authorization.always:make_allow")
always_deny = AuthorizerFactory("AlwaysDeny", "kubetwist.authorization.always:make_deny")
rbac = AuthorizerFactory("RBAC", "kubetwist.authorization.rbac:make")
node = AuthorizerFactory("Node", "kubetwist.authorization.node:make")
abac = AuthorizerFactory("ABAC", "kubetwist.authorization.abac:make")
webhook = AuthorizerFactory("Webhook", "kubetwist.authorization.webhook:make")

from kubetwist.server.plugins import AuthenticatorFactory

page_sessions = AuthenticatorFactory("PageSessions", 10, "kubetwist.authentication.sessions:make", ("enable-ui",))
front_proxy = AuthenticatorFactory("FrontProxy", 50, "kubetwist.authentication.requestheader:make")
client_certificates = AuthenticatorFactory("ClientCertificates", 100, "kubetwist.authentication.certificates:make")
token_file = AuthenticatorFactory("TokenFile", 200, "kubetwist.authentication.tokenfile:make", ("token-auth-file",))
user_tokens = AuthenticatorFactory(
    "UserTokens", 250, "kubetwist.authentication.usertokens:make", ("plugin-config-file",)
)
service_accounts = AuthenticatorFactory("ServiceAccountTokens", 300, "kubetwist.authentication.serviceaccounts:make")
bootstrap_tokens = AuthenticatorFactory(
    "BootstrapTokens", 400, "kubetwist.authentication.bootstraptokens:make", ("enable-bootstrap-token-auth",)
)
webhook_tokens = AuthenticatorFactory(
    "WebhookTokens", 600, "kubetwist.authentication.webhook:make", ("authentication-token-webhook-config-file",)
)
open_id_connect = AuthenticatorFactory(
    "OpenIDConnectTokens", 500, "kubetwist.authentication.oidc:make", ("authentication-config", "oidc-issuer-url")
)
unclaimed_tokens = AuthenticatorFactory(
    "UnclaimedTokens", 900, "kubetwist.authentication.bearer:invalid_token_authenticator"
)
anonymous = AuthenticatorFactory("Anonymous", 1000, "kubetwist.authentication.anonymous:make")

"""Names the authenticator. Twisted imports every drop-in to list it, so nothing else is imported here."""

from kubetwist.server.plugins import AuthenticatorFactory

# Before the other authenticators of bearer tokens, which have rank 200 and more.
hashed_tokens = AuthenticatorFactory(
    "HashedTokens", 150, "hashedtokens.authenticator:make", needs=("plugin-config-file",)
)

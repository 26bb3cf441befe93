"""Controllers of service accounts and of their tokens in Secrets."""

"""Controllers of service accounts and their tokens in secrets."""

"""ServiceAccounts and their tokens."""

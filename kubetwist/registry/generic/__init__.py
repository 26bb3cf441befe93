"""What every kind shares: the generic store, strategies, selectors, subresources, field management."""

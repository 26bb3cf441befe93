"""Request matching that webhooks and policies share: rules, selectors and equivalent resources."""

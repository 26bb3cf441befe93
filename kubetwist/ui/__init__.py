"""The web page at C{/ui}: its files, and signing in and out. What it shows it asks the API for, as any client."""

"""Discovery: C{/api}, C{/apis} and the paths directly below them."""

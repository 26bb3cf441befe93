"""The namespace controller: deletes the content of namespaces, including content of aggregated API servers."""

"""
Diagnosis of a server's environment and configuration: checks that change nothing, for C{kubetwist doctor}.

Each module has functions that read the facts of one part, and functions without I/O that judge them.
"""

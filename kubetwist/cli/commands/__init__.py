"""The subcommands of C{kubetwist}, one module each; L{kubetwist.cli.main} has the table and the rules."""

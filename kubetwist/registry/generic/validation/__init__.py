"""
What makes objects of the built-in kinds valid, in the reference's words, with its field paths and in its order.

L{kubetwist.registry.generic.validation.fields} is the vocabulary; the other modules are the rules of kinds or of parts
that several kinds share. A rule takes what it looks at, the path of it, and the list that it adds errors to; the rules
that strategies call return such a list.
"""

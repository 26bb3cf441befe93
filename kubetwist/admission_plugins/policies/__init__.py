"""Policies in CEL: ValidatingAdmissionPolicy and MutatingAdmissionPolicy."""

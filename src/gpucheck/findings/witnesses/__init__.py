"""Witnesses: what the self-tests, a pre-flight and several sections together say of a cause.

Derived facts answer a question; a witness says in words what is wrong and what to do. A check asks
for a witness by its type, as it asks for derived facts.
"""

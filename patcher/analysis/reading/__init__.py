"""The text of one file -> what it says: uses, bindings, classes, functions. Pure, and the same for every target.

A walk visits the code in the order in which it runs, and keeps for each name the value that it has at that point. Ways
that part (`if`, `try`, loops) come together as `Union`, whose `conditions` say which way gives which value. The body of
a function is visited when the code around it is through.

- A name that the module binds in several ways stands for itself in functions: `Named("module.name")`, whose
  `bindings` have their conditions. One that a class or function shares with another binding has definitions with the
  line in their key: `classes["Name@12"]`, which a binding `Named("module.Name@12")` leads to. What is bound once more
  without condition replaces what was bound before.
- `None` is `Union(())`: nothing that has members.
- Values of Python's own library are not followed, apart from the functions that `calls` knows.
- `module.name = value` and `Class.name = value` are soft uses: where the name is gone, the patch has no effect, but
  nothing fails. A function put so into a class is read as a method of it: `self` is an instance.
- Keywords that a dict gets under conditions are calls of their own under those conditions, with that keyword alone.
- What asks about more than single expressions (`settings`) looks at the tree itself, and asks the walk for the
  `Context` of a node with `context_of`.
"""

from patcher.analysis.reading.reader import read_file, read_syntax, unreadable

__all__ = ["read_file", "read_syntax", "unreadable"]

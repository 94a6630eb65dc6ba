"""What a secret is and how a text loses it: one policy for every text that leaves, here and on hosts.

A value is a secret because of its name (`names`, with what it is given in `assignments` and `tables`), its own look
(`tokens`, `values`), the place where it stands (`contexts`), or because it is known on this machine (`known`). Texts go
through `redacting`: decoded where they are escaped (`decoding`), and of long ones only the parts that `prefilter` names.

The standard library of Python 3.8 alone: this room is sent to hosts together with `patcher.agent`.
"""

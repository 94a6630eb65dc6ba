"""A fork's own edits, made by hand, into records: the commands `record`, `adopt`, `backport`, `rebase` and `new`.

base -> reading -> hunks -> inferring, declared, keyed_values -> proof -> grouping, needs -> recording -> ordering

What differs from the base becomes changes of whole statements; for each the most specific edit is found that provably
makes it; changes of one purpose become one record; and all records together, in an order that is found, must give the
fork's files.
"""

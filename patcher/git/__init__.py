"""Git: the checkout that a tree lies in, what it knows of files, and the commits that `apply` and `rebase` make."""

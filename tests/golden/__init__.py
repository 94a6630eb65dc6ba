"""`make golden`: what every command prints and every plan writes, held against what is committed. See README.md."""

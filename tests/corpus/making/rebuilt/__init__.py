"""Logs that no machine here can really make, rebuilt from the words that the released programs print."""

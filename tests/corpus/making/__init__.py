"""Makes the real logs of the corpus anew: each scene breaks one thing, or nothing, and keeps what was printed."""

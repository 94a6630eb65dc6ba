"""What Python code says, without running it: a fork's files, the packages that it uses, and values between them."""

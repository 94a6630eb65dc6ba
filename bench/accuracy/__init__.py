"""Labels made by execution, and how `check` and other tools do on them."""

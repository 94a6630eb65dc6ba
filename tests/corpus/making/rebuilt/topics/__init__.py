"""The rebuilt logs, by what goes wrong, or by how all is well."""

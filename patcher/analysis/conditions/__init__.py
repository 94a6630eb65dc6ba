"""When does a use run? Version tests, feature tests, `try`: evaluated for one target without running the tree."""

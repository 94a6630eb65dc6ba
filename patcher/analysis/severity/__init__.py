"""How much a finding matters: what guards it, what the jobs reach, what a module refuses."""

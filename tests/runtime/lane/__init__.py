"""What the records and `check` say of verl on a real vLLM, held against what a real interpreter does."""

"""What a report about a run needs from the machine that it ran on. Looks only; secrets do not leave the machine."""

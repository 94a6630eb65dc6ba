"""Real trainings on a GPU, by the tool's own commands: what docs/gpu-runs.md tells.

`tiny.py` makes models and data, `scenes.py` runs the commands, `report.py` makes tables of what they came to.
"""

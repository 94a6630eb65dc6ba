"""The examples at the end of each command's help: a line that runs as it stands, and what it does.

Names in them (the host `trainer`, the log `train.log`, `requirements.txt`) are the reader's to change; ids are those of
shipped records and symptoms.
"""

from __future__ import annotations

from collections.abc import Mapping

Examples = tuple[tuple[str, str], ...]

EXAMPLES: Mapping[str, Examples] = {
    "": (
        ("uky-patch status", "Which records the fork in this folder needs, for what is installed."),
        ("uky-patch --python ~/envs/train/bin/python apply --dry-run", "What apply would do for another environment."),
    ),
    "demo": (
        ("uky-patch demo", "The whole round in a scratch folder that is removed at the end."),
        ("uky-patch demo --verl 0.7.0 --keep verl-demo", "Another release, in a new folder that stays."),
    ),
    "list": (
        ("uky-patch list", "Every record, one a line."),
        ("uky-patch list --format json", "The same for a program, with versions, files and tags."),
    ),
    "explain": (
        ("uky-patch explain vllm-log-requests", "Why this record is needed here or not, and its change."),
        ("uky-patch explain vllm-log-requests --assume vllm==0.11.0", "The same if vLLM 0.11.0 were installed."),
    ),
    "status": (
        ("uky-patch status", "The records that are needed here, and how each stands."),
        ("uky-patch status --all --assume vllm==0.20.2", "Every record, as if vLLM 0.20.2 were installed."),
    ),
    "apply": (
        ("uky-patch apply --dry-run", "What would change; nothing is written."),
        ("uky-patch apply", "Make every edit that is needed here."),
    ),
    "revert": (
        ("uky-patch revert --dry-run", "What would change; nothing is written."),
        ("uky-patch revert", "Put every file back."),
    ),
    "verify": (
        ("uky-patch verify", "Do the edits hold? It takes less than a second."),
        ("uky-patch verify --level env", "Do torch, vLLM, verl and Ray load as well?"),
    ),
    "record": (
        ("uky-patch record", "Records for what is edited here since the last commit."),
        (
            "uky-patch record --from upstream --against vllm==0.20.2",
            "Records for all edits of this fork, and from which vLLM on each is needed.",
        ),
    ),
    "new": (
        ("uky-patch new our-port --at verl/trainer/main_ppo.py:42", "Begin a record for the statement at this line."),
        ("uky-patch new our-port --at verl/trainer/main_ppo.py:42 --dry-run", "Print it; nothing is written."),
    ),
    "adopt": (
        ("uky-patch adopt --all --dry-run", "What would be taken over; nothing is written."),
        ("uky-patch adopt vllm-log-requests", "This edit, made by hand, as if apply had made it."),
    ),
    "backport": (
        ("uky-patch backport 5cef3ca8d --upstream ../verl --dry-run", "What a commit of verl comes to on this tree."),
        ("uky-patch backport v0.7.0..5cef3ca8d --diff", "A range, as one change."),
    ),
    "rebase": (
        ("uky-patch rebase 0.7.1 --dry-run", "What becomes of each of this fork's records on verl 0.7.1."),
        ("uky-patch rebase upstream/main --branch onto-main", "The same onto a commit, as a branch of this name."),
    ),
    "docs": (
        ("uky-patch docs", "What this fork changes, as Markdown."),
        ("uky-patch docs --write", "As MIGRATION.md and MIGRATION.zh-CN.md; verify then says when they are stale."),
    ),
    "check": (
        ("uky-patch check --against vllm==0.20.2", "What this fork loses with vLLM 0.20.2."),
        ("uky-patch check --verl 0.7.0 --against vllm==0.20.2", "The same for a verl release instead of a fork."),
    ),
    "pins": (
        ("uky-patch pins --to vllm==0.20.2", "What a change to vLLM 0.20.2 alone would mean."),
        (
            "uky-patch pins --newest --draft drafts --markdown newest.md",
            "What the newest releases would mean, with drafts of what no record repairs.",
        ),
    ),
    "migrate": (
        ("uky-patch migrate trainer --dry-run", "What would be sent to the host and done there; nothing is written."),
        ("uky-patch migrate trainer --until environment", "All but the debug job."),
    ),
    "diff": (
        ("uky-patch diff trainer", "Everything that was edited there, as a diff."),
        ("uky-patch diff trainer verl/workers --new", "One folder, with the files that are new there."),
    ),
    "pull": (
        ("uky-patch pull trainer --diff", "What would change here; nothing is written."),
        ("uky-patch pull trainer verl/trainer/main_ppo.py", "Take over the edits of one file."),
    ),
    "prune": (
        ("uky-patch prune trainer --dry-run", "What may go on a host, and how much room it takes."),
        ("uky-patch prune --keep 1 --days 30", "Here: all but the newest, if it is a month old."),
    ),
    "render": (
        ("uky-patch render run_debug.sh", "Print the script for this machine."),
        ("uky-patch render git_ignore.py --diff", "How the file that is here differs from it."),
    ),
    "data": (
        ("uky-patch data report train.parquet", "Rows and columns of a file on this machine."),
        ("uky-patch data tiny train.parquet --rows 4", "Write its first four rows as train_tiny.parquet."),
    ),
    "data report": (
        ("uky-patch data report train.parquet", "Rows and columns of a file on this machine."),
        ("uky-patch data report --host trainer", "The train.parquet of a host's data folder."),
    ),
    "data tiny": (
        ("uky-patch data tiny train.parquet", "Write its first two rows as train_tiny.parquet."),
        ("uky-patch data tiny train.parquet --rows 4 --to four.parquet", "Four rows, in a file of another name."),
    ),
    "model": (
        ("uky-patch model newest ~/models", "The newest model below a folder."),
        ("uky-patch model warm --host trainer", "Read a host's newest model into its memory."),
    ),
    "model newest": (
        ("uky-patch model newest ~/models", "The newest model below a folder."),
        ("uky-patch model newest --host trainer", "The newest model in a host's model folder."),
    ),
    "model warm": (
        ("uky-patch model warm ~/models", "Read the newest model below a folder into memory."),
        ("uky-patch model warm --host trainer", "The same on a host."),
    ),
    "run": (
        ("uky-patch run debug", "The smallest run, followed until it ends."),
        ("uky-patch run standard --host trainer --detach", "On a host, and left alone there."),
    ),
    "job": (
        ("uky-patch job status trainer", "What the newest job there is doing."),
        ("uky-patch job logs trainer --follow", "Its log as it grows."),
    ),
    "job status": (
        ("uky-patch job status trainer", "What the newest job there is doing."),
        ("uky-patch job status here --format json", "The same for a job on this machine, for a program."),
    ),
    "job logs": (
        ("uky-patch job logs trainer --lines 200", "The last 200 lines."),
        ("uky-patch job logs trainer --follow", "The log as it grows, until the job ends."),
    ),
    "job attach": (
        ("uky-patch job attach trainer", "Follow the newest job there."),
        ("uky-patch job attach here --id 94c21c", "A job on this machine, by the end of its id."),
    ),
    "job stop": (
        ("uky-patch job stop trainer", "Stop the newest job there."),
        ("uky-patch job stop here --grace 60", "Give a job on this machine a minute to end by itself."),
    ),
    "diagnose": (
        ("uky-patch diagnose train.log", "Why the run failed, and what to do."),
        ("uky-patch diagnose train.log --against good.log", "Also where it parts from a run that went well."),
    ),
    "watch": (
        ("uky-patch watch train.log", "Follow a log; say so when it stands still."),
        ("uky-patch watch trainer --once", "One look at the newest job on a host."),
    ),
    "probe": (
        ("uky-patch probe", "List what can be asked and what can be done."),
        ("uky-patch probe backtrace --pid 4242", "Where a process stands now."),
    ),
    "bundle": (
        ("uky-patch bundle train.log --dry-run", "List what the archive would hold; nothing is written."),
        ("uky-patch bundle trainer --output report.tgz", "Pack the newest job of a host."),
    ),
    "clean": (
        ("uky-patch clean --dry-run", "List what this machine's newest job has left; nothing is taken away."),
        ("uky-patch clean trainer --job 94c21c", "Take away what one job on a host has left."),
    ),
    "symptoms": (
        ("uky-patch symptoms", "Every known symptom, in order of where a run shows it."),
        ("uky-patch symptoms vllm-no-kv-cache-memory", "One of them in full, with its fixes."),
    ),
    "trust": (
        ("uky-patch trust", "Let the interpreter that this fork names be started."),
        ("uky-patch trust --forget", "Take that back."),
    ),
    "completion": (
        ("uky-patch completion bash >> ~/.bashrc", "Complete commands and options in every new bash."),
        ("uky-patch completion fish > ~/.config/fish/completions/uky-patch.fish", "The same in fish."),
    ),
}

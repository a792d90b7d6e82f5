"""Functions that start a training run from scratch or resume it from a checkpoint."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.utils.checkpoints import is_complete, last_complete_checkpoint, remove_checkpoints
from hf_mwp.utils.job import changed_values, describe_changes
from hf_mwp.utils.option import WITHOUT_EFFECT, options_in
from hf_mwp.utils.run_folder import CONFIG, RunFolder, last_options, last_record
from hf_mwp.utils.usage_error import UsageError

from .options.run_options import ResumeArguments, RunArguments
from .tasks.reporter import Reporter


# Options that set the length of a run. A resumed run may be longer.
LENGTHS = ("num_train_epochs", "max_steps")
# Options that may change when a run resumes: the weights do not depend on them, or only on which steps are evaluated.
MAY_DIFFER = (
    WITHOUT_EFFECT
    | {"data_dir", "tag_cache", "early_stopping_patience", "logging_steps", "save_steps"}
    | set(options_in(RunArguments))
)


def begin_run(
    folder: RunFolder, config: BaseConfig, args: ResumeArguments, reporter: Reporter
) -> tuple[str | None, dict[str, tuple]]:
    """Return the checkpoint to resume from and the changed options, or `None` and an empty dictionary for a new run.
    No files are written. Raises `UsageError` if the checkpoint does not exist, if the folder contains an earlier run
    that is not resumed, or if the weights depend on a changed option."""
    checkpoint = _checkpoint(folder, config, args)
    if checkpoint is None:
        return None, {}
    run = Path(checkpoint).parent
    last_values = last_options(run)
    changes = changed_values(last_values, folder.values)
    changes.pop("output_dir", None)
    if last_values.get("save_only_model"):
        raise UsageError(f"{run} was trained with --save_only_model and cannot resume. Start over with --overwrite.")
    processes = last_record(run).get("machine", {}).get("world_size")
    num_processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes is not None and processes != num_processes:
        changes["processes"] = (processes, num_processes)
    length = _longer(last_values, changes)
    allowed = set(MAY_DIFFER)
    if length is not None:
        allowed |= set(LENGTHS)
    refused = {name: values for name, values in changes.items() if name not in allowed}
    if refused:
        raise UsageError(
            f"{run} was made with different options ({describe_changes(refused)}), which --resume cannot change. "
            f"Resume with the old options (--config {run / CONFIG}), "
            "or start over with --overwrite or another --output_dir."
        )
    if length in changes:
        old, new = changes[length]
        reporter.print(
            f"Longer than before ({length}: {old} -> {new}): the learning rate follows the schedule of the new length "
            f"from {Path(checkpoint).name} on; earlier steps followed the schedule of the old length."
        )
    return checkpoint, changes


def begin_record(folder: RunFolder, checkpoint: str | None, changes: Mapping[str, tuple]) -> None:
    """Begin the record with the results of [`begin_run`]. Removes checkpoints of other runs."""
    elsewhere = checkpoint is None or Path(checkpoint).parent.resolve() != folder.path.resolve()
    if folder.writes and elsewhere:
        remove_checkpoints(folder.path)
    folder.begin(checkpoint, changes)


def _checkpoint(folder: RunFolder, config: BaseConfig, args: ResumeArguments) -> str | None:
    path = folder.path
    last = last_complete_checkpoint(path)
    checkpoint = config.resume_from_checkpoint
    if checkpoint and not is_complete(checkpoint):
        fault = f"{checkpoint} is not a complete checkpoint. Pass a different folder"
        raise UsageError(f"--resume_from_checkpoint: {fault}.")
    if checkpoint and Path(checkpoint).parent.resolve() == path.resolve():
        return checkpoint
    if args.resume and last is not None:
        return last
    if args.resume and not checkpoint:
        raise UsageError(f"{path} has no checkpoint to resume from. Start without --resume.")
    if last is not None and not args.overwrite:
        remedy = "Pass --resume to continue, --overwrite to start over, or another --output_dir"
        raise UsageError(f"{path} has checkpoints of an earlier run ({Path(last).name}). {remedy}.")
    folder.check_unused(args.overwrite)
    return checkpoint or None


def _longer(last_values: Mapping[str, Any], changes: Mapping[str, tuple]) -> str | None:
    """Return the option in `LENGTHS` that makes the run longer, or `None`; `max_steps` overrides epochs."""
    if not any(name in changes for name in LENGTHS):
        return None
    old_epochs = last_values.get("num_train_epochs")
    _, epochs = changes.get("num_train_epochs", (old_epochs, old_epochs))
    old_steps = last_values.get("max_steps")
    _, steps = changes.get("max_steps", (old_steps, old_steps))
    if old_steps > 0 and steps > 0:
        return "max_steps" if steps >= old_steps else None
    if old_steps <= 0 and steps <= 0 and epochs >= old_epochs:
        return "num_train_epochs"
    return None

"""Function that trains an answer verifier on the beams of a solver."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

from hf_mwp.compress.models.fingerprints import hash_model, hash_processing
from hf_mwp.runtime.plausibility.answer_verifier import CONFIG, CONFIG_KEY, FEATURE_NAMES, AnswerVerifier
from hf_mwp.runtime.plausibility.plausibility_reranker import PlausibilityError
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models.answer_verifier import AnswerVerifierConfig, AnswerVerifierModel
from hf_mwp.solver.models.mwp_solver import MwpSolver
from hf_mwp.solver.solving.kept_records import ProgressBar
from hf_mwp.solver.solving.reranker_beams import right_answer, usable_problems
from hf_mwp.solver.solving.solve_problems import find_kept_beams
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import remove_folder
from hf_mwp.utils.job import digest_of

from .verifier_rows import VerifierCollator, verifier_rows
from .verifier_trainer import VerifierTrainer


BEAMS_FOLDER = "beams"
CHECKPOINTS_FOLDER = "checkpoints"
NUM_SCALED = 5000
"""Maximum number of problems whose features determine their scale."""

MIN_SCALE = 0.05
SAVE_STEPS = 500
"""Number of steps between checkpoints."""


@checked
def fit_verifier(
    model: MwpSolver,
    processor: MwpProcessor,
    problems: Iterable[MathWordProblem | Mapping[str, Any]],
    output_dir: str | Path,
    *,
    num_beams: int = 20,
    score_margin: float | None = None,
    batch_size: int = 32,
    max_steps: int = 4000,
    learning_rate: float = 1e-3,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
    progress: ProgressBar = None,
) -> AnswerVerifier:
    """
    Train an [`AnswerVerifier`] on the beams of a solver: for each problem, one right answer against up to six wrong
    ones, with a softmax over them. It reads the features of the re-ranker, too, except the solver's probability.
    [`fit_reranker`] then weighs its score, the features and the probability.

    An interrupted call with the same arguments resumes: the beams and the last checkpoint are kept in `output_dir`
    until the training is complete.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver, whose weights do not change.
        problems (`Iterable`): Problems or rows from [`load_mwp_dataset`]. Those whose beam has no right or no wrong
            answer are left out. Tens of thousands are useful, also those that the solver was trained on.
        output_dir (`str` or `Path`): Folder for `verifier.safetensors`, beams and checkpoints.
        num_beams (`int`, *optional*, defaults to 20), score_margin (`float`, *optional*):
            Search settings, see [`solve_problems`].
        batch_size (`int`, *optional*, defaults to 32): Number of problems per batch of the search and of training.
        max_steps (`int`, *optional*, defaults to 4000): Number of training steps.
        learning_rate (`float`, *optional*, defaults to 1e-3): Maximum learning rate, with a cosine schedule.
        seed (`int`, *optional*, defaults to 0): Seed of the initial weights and of the order of the problems.
        config (`Mapping`, *optional*): Fields of [`AnswerVerifierConfig`], such as `hidden_size`.
        progress (`Callable`, *optional*): Wraps the list of chunks of the search as `tqdm.tqdm` does.

    Raises:
        PlausibilityError: No beam has both a right and a wrong answer.

    Example:

    ```python
    >>> model, processor = hf_mwp.load_solver("student")
    >>> parts = hf_mwp.load_mwp_dataset("asdiv_a", fold=0)
    >>> verifier = hf_mwp.fit_verifier(model, processor, parts["train"], "runs/verifier", max_steps=500)
    >>> reranker = hf_mwp.fit_reranker(model, processor, parts, verifier=verifier)
    >>> reranker.save_pretrained("student")
    ```
    """
    folder = Path(output_dir)
    usable = usable_problems(processor, problems)
    settings: dict[str, Any] = {"num_beams": num_beams, "top_k": num_beams}
    if score_margin is not None:
        settings["score_margin"] = score_margin
    beams = find_kept_beams(folder / BEAMS_FOLDER, model, processor, usable, batch_size, progress, **settings)
    rows = verifier_rows(processor, usable, [beam.trees for beam in beams])
    if not rows:
        raise PlausibilityError(
            f"none of the {len(usable)} problems has both a right and a wrong answer in its beam. Use more problems, "
            "more beams, or a trained solver"
        )
    set_seed(seed)
    symbols = [*processor.vocabulary.operators, *processor.vocabulary.constants]
    verifier_config = AnswerVerifierConfig(
        encoder_hidden_size=model.config.hidden_size,
        symbols=symbols,
        features=FEATURE_NAMES,
        **(config or {}),
    )
    verifier = AnswerVerifierModel(verifier_config)
    verifier.feature_scale.copy_(_feature_scale(rows))
    facts = {
        "model": hash_model(model),
        "processor": hash_processing(processor),
        "problems": [(problem.text, str(right_answer(problem))) for problem in usable],
        "config": verifier_config.to_dict(),
        "training": (batch_size, max_steps, learning_rate, seed),
    } | settings
    checkpoints = folder / CHECKPOINTS_FOLDER / digest_of(facts)
    args = TrainingArguments(
        output_dir=str(checkpoints),
        max_steps=max_steps,
        learning_rate=learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=0.02,
        weight_decay=0.01,
        per_device_train_batch_size=batch_size,
        remove_unused_columns=False,
        save_steps=SAVE_STEPS,
        save_total_limit=1,
        logging_steps=50,
        report_to="none",
        seed=seed,
        use_cpu=model.device.type == "cpu",
        dataloader_pin_memory=False,
    )
    trainer = VerifierTrainer(model, verifier, args, rows, VerifierCollator(processor, seed))
    checkpoint = None
    if checkpoints.is_dir():
        checkpoint = get_last_checkpoint(args.output_dir)
    trainer.train(resume_from_checkpoint=checkpoint)
    fitted = save_verifier(verifier, folder)
    for name in (BEAMS_FOLDER, CHECKPOINTS_FOLDER):
        remove_folder(folder / name)
    return fitted


def _feature_scale(rows: Sequence[Mapping[str, Any]]) -> Tensor:
    """Return the standard deviations of the features, at least 0.05."""
    features = []
    for row in rows[:NUM_SCALED]:
        features += row["features"]
    return torch.tensor(features).std(0).clamp_min(MIN_SCALE)


def save_verifier(verifier: AnswerVerifierModel, save_directory: str | Path) -> AnswerVerifier:
    """Save a trained verifier in half precision as `verifier.safetensors`, without the linear layer on features, and
    return it for the runtime."""
    tensors = {}
    for name, tensor in verifier.state_dict().items():
        if not name.startswith("feature_scores."):
            tensors[name] = tensor.to("cpu", torch.float16).contiguous()
    config = {name: getattr(verifier.config, name) for name in CONFIG}
    path = Path(save_directory) / AnswerVerifier.file_name
    save_file(tensors, path, metadata={CONFIG_KEY: json.dumps(config)})
    return AnswerVerifier(path)

"""Pipeline that solves math word problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader
from transformers import Pipeline
from transformers.pipelines.pt_utils import PipelineIterator

from hf_mwp.compress.models.architecture import count_positions
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.runtime.answer import answer_records, check_search
from hf_mwp.runtime.default_search import FolderSearch
from hf_mwp.runtime.problems import MathWordProblem, refusal
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import Solver
from hf_mwp.utils.downloads import download_options
from hf_mwp.utils.length_batches import BATCHES_PER_BLOCK


# Imported on first use, because this module is imported with the package.
if TYPE_CHECKING:
    from hf_mwp.solver.solving.solver_prediction import SolverPrediction


class MathWordProblemPipeline(FolderSearch, Pipeline):
    """
    Pipeline that solves math word problems: `pipeline("math-word-problem", model=folder_or_hub_id)`.

    The result for a text is a dictionary:

    - `answer` (`float` or `None`): value of the predicted equation;
    - `value` (`str` or `None`): the exact value, such as `"7/4"`;
    - `equation` (`str` or `None`): the equation in infix notation, with the numbers as written in the text;
    - `prefix` (`list[str]` or `None`): the equation in prefix notation, with slots `N0`, `N1`, ... for the numbers;
    - `numbers` (`list[str]`): the numbers in the text;
    - `score` (`float`): probability of the equation, the product of the probabilities of its symbols (not normalised
      by length or over the beams); 0 without an equation;
    - `unknown_share` (`float`), only if the text was encoded: share of unknown tokens in the text;
    - `error` (`str`), only if `answer` is `None`: reason why there is no answer, such as a text without numbers or
      with more than 100,000 characters or a division by zero, or an equation without a value;
    - `plausibility` (`float`) and `violations` (`list[str]`), only with `rerank`: probability of the answer among all
      values of the beams, and signs that the answer is implausible ("negative length", "2.4 people") which the first
      answer does not have. A negative count or measure is always a violation and has a plausibility of at most 0.1.
      With `top_k`, all values are different before they are rounded;
    - `rounded` (`"up"`, `"down"` or `"remainder"`) and `quotient` (`str`), only with `rerank` and if a quotient was
      rounded to the answer, because the question asks for whole things (50 children need 9 boats for 6 each), or if
      it asks for the remainder (how many are left over);
    - `percent` (`str`), only if the question asks for a percentage (百分之几, "what percent"): the answer as `"94%"`;
    - `instead_of` (`dict`), only if re-ranking replaced the solver's answer: its `equation`, `answer`, `violations`;
    - `status` (`"unsure"`) and `candidates` (`list[dict]`), only below `confidence_threshold`: the equations found,
      best first, each with `equation`, `answer`, `value` and `score`;
    - `capped` (`True`), only if a limit of the decoder on candidates cut the search short;
    - `warnings` (`list[str]`) and `warning` (`str`, all of them joined), only if the search was `capped`, numbers were
      cut off from a long text, numbers were read in one of several ways (`l2`) or not read (两个), or more than a
      fifth of the tokens are unknown, for example because the solver was not trained on the language of the text.

    Args:
        model ([`MwpSolver`]): The solver.
        processor ([`MwpProcessor`], *optional*): The processor. By default, it is loaded from the model's folder or
            repository, with the `revision` and `token` of the model.
        num_beams (`int`, *optional*): Number of beams. With `rerank`, defaults to the number of beams for which the
            re-ranker was fitted. If neither `num_beams` nor `rerank` is given, the model's `generation_config.json`
            ([`~runtime.default_search.DefaultSearch`]) sets both and `score_margin`; without this file, the search is
            greedy.
        rerank (`bool`, `str` or [`PlausibilityReranker`], *optional*): Whether to re-rank the answers of the beams by
            plausibility. `True` uses `plausibility.json` in the model's folder. A string is the folder of a different
            re-ranker, or `"en"` or `"zh"` for the re-rankers in this package.
        top_k (`int`, *optional*): Number of equations to return per text, as a list (with at least `top_k` beams). By
            default, only the best equation is returned.
        max_decode_length (`int`, *optional*): Maximum number of symbols in an equation; by default the decoder's.
        confidence_threshold (`float`, *optional*): Confidence (`plausibility` with `rerank`, otherwise `score`),
            between 0 and 1, below which the answer is `"unsure"` and the equations of all beams are its candidates.
        score_margin (`float`, *optional*): Margin of the search: an incomplete equation is dropped if its log
            probability is more than this below that of the best one. A small margin is faster and leaves fewer
            answers to re-rank; `math.inf` switches off that of `generation_config.json`.
        batch_size (`int`, *optional*, defaults to 1): Number of texts per batch. The texts of a list or dataset are
            sorted by length within blocks of eight batches, and the results are returned in the order of the texts.
        kwargs: Further arguments of `Pipeline`, such as `device`.

    The arguments from `num_beams` to `batch_size` may also be passed to the call. The call returns:

    - for a text or [`MathWordProblem`], a list with one dictionary or, with `top_k`, several;
    - for a list, tuple, array, or column of a dataset or data frame, a list with one dictionary or, with `top_k`, one
      list of dictionaries per problem;
    - for an iterator, streamed column or PyTorch dataset such as `KeyDataset(rows, "text")`, an iterator over results.

    Raises:
        ValueError: The model is not an [`MwpSolver`], the processor or re-ranker is missing or does not fit the model,
            or an argument is out of range.
        SolverFolderError: The folder contains no complete solver.
        TypeError: An input is neither a text nor a [`MathWordProblem`].

    Examples:

    ```python
    >>> import hf_mwp
    >>> from transformers import pipeline
    >>> solver = pipeline("math-word-problem", model="hf_mwp_quickstart/student")
    >>> solver("Tom has 4 apples and 2 pears. How many fruits does he have?")
    [{'answer': 6.0, 'value': '6', 'equation': '4+2', 'prefix': ['+', 'N0', 'N1'], 'numbers': ['4', '2'],
      'score': ...}]
    ```
    """

    _load_processor = False
    _load_image_processor = False
    _load_video_processor = False
    _load_feature_extractor = False
    _load_tokenizer = False

    def __init__(self, model: Solver, processor: MwpProcessor | str | PathLike | None = None, **kwargs):
        if not kind_of(model).is_solver:
            name = f"{type(model).__name__} ({model.name_or_path or 'not loaded from a folder'})"
            raise ValueError(f"The pipeline needs an MwpSolver, not {name}. Train a solver with `hf-mwp train`.")
        if not isinstance(processor, MwpProcessor):
            processor = _load_processor(model, processor)
        try:
            processor.check_model(model)
        except ValueError as error:
            raise ValueError(f"{model.name_or_path or 'This model'} and its processor do not fit: {error}") from error
        processor.limit_length(count_positions(model.encoder.config))
        FolderSearch.__init__(self, model.name_or_path, processor.language, model)
        if Path(model.name_or_path).is_dir():
            # Files of a repository are downloaded when they are used.
            self.check_files()
        Pipeline.__init__(self, model=model, processor=processor, **kwargs)

    def save_pretrained(self, save_directory: str | PathLike, **kwargs) -> None:
        """Save the model (with `kwargs`), the processor and, if set, the re-ranker and default search to a folder."""
        self.model.save_pretrained(save_directory, **kwargs)
        self.processor.save_pretrained(save_directory)
        if self.default_search.num_beams > 1:
            self.default_search.save_pretrained(save_directory)
        reranker = self._forward_params.get("rerank")
        if not reranker:
            reranker = self.find_reranker(self.default_search.rerank)
        if reranker:
            reranker.save_pretrained(save_directory)

    def _sanitize_parameters(
        self,
        num_beams=None,
        top_k=None,
        max_decode_length=None,
        confidence_threshold=None,
        rerank=None,
        score_margin=None,
    ):
        counts = {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length}
        check_search(confidence_threshold, score_margin, **counts)
        # `False` stays: without re-ranking, also where it is the default.
        rerank = self.find_reranker(rerank) or rerank
        postprocess_params = {"top_k": top_k, "confidence_threshold": confidence_threshold}
        forward_params = {"num_beams": num_beams, "max_decode_length": max_decode_length, "rerank": rerank}
        forward_params |= {"score_margin": score_margin} | postprocess_params
        return {}, _without_none(forward_params), _without_none(postprocess_params)

    def get_iterator(self, inputs, num_workers, batch_size, preprocess_params, forward_params, postprocess_params):
        block_size = batch_size
        if batch_size > 1 and hasattr(inputs, "__len__"):
            # All texts are available, unlike those of an iterator: more of them can be sorted by length.
            block_size = batch_size * BATCHES_PER_BLOCK
        if not hasattr(inputs, "__iter__"):  # a dataset of PyTorch
            inputs = map(inputs.__getitem__, range(len(inputs)))
        # Only one worker can read an iterator.
        problems = PipelineIterator(enumerate(inputs), self._preprocess_numbered, preprocess_params)
        for block in DataLoader(problems, num_workers=min(num_workers, 1), batch_size=block_size, collate_fn=list):
            for outputs in self.forward(block, batch_size=batch_size, **forward_params):
                yield self.postprocess(outputs, **postprocess_params)

    def run_single(self, inputs, preprocess_params, forward_params, postprocess_params):
        (outputs,) = self.forward([self.preprocess(inputs, **preprocess_params)], **forward_params)
        result = self.postprocess(outputs, **postprocess_params)
        return result if isinstance(result, list) else [result]

    def __call__(self, inputs, **kwargs):
        """Solve a text, or the texts in a list, generator or dataset; see the class."""
        if (isinstance(inputs, Sequence) or hasattr(inputs, "tolist")) and not isinstance(inputs, str | bytes):
            inputs = list(inputs)  # such as a tuple, an array, or a column of a dataset or data frame
            if not inputs:
                return []
        elif isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes | Mapping):
            inputs = (problem for problem in inputs)  # such as a column of a streamed dataset
        return super().__call__(inputs, **kwargs)

    def _preprocess_numbered(self, numbered: tuple[int, Any], **parameters) -> MathWordProblem:
        index, problem = numbered
        try:
            return self.preprocess(problem, **parameters)
        except TypeError as error:
            raise TypeError(f"inputs[{index}]: {error}") from error

    def preprocess(self, inputs: str | MathWordProblem) -> MathWordProblem:
        if not isinstance(inputs, (str, MathWordProblem)):
            raise TypeError(f"A problem is a text or a MathWordProblem, not {type(inputs).__name__}: {inputs!r:.80}")
        problem = self.processor.problem(inputs)
        # Extract the numbers in this step, which workers can run.
        refusal(problem)
        return problem

    def _forward(
        self,
        problems,
        num_beams=None,
        top_k=1,
        max_decode_length=None,
        confidence_threshold=None,
        rerank=None,
        score_margin=None,
        batch_size=None,
    ):
        from hf_mwp.solver.solving.solve_problems import solve_problems

        settings = self.search(num_beams, rerank, top_k, score_margin)
        if confidence_threshold is not None:
            # Keep all beams as candidates of an unsure answer.
            top_k = None
        options = {"top_k": top_k, "max_decode_length": max_decode_length, "batch_size": batch_size}
        return solve_problems(self.model, self.processor, problems, **options, **settings._asdict())

    def postprocess(
        self, prediction: SolverPrediction, top_k: int | None = None, confidence_threshold: float | None = None
    ) -> dict | list[dict]:
        records = answer_records(prediction, top_k or 1, confidence_threshold)
        return records[0] if top_k is None else records


def _without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _load_processor(model: Solver, source: str | PathLike | None) -> MwpProcessor:
    name = model.name_or_path if source is None else str(source)
    if not name:
        raise ValueError("The model was not loaded from a folder. Pass its processor as `processor=`.")
    try:
        return MwpProcessor.from_pretrained(name, **download_options(model, name))
    except OSError as error:
        raise ValueError(
            f"The processor of {name} ({MwpProcessor.file_name}) cannot be loaded ({error}). Save it to the model's "
            "folder with `processor.save_pretrained(folder)`, or pass `processor=`."
        ) from error

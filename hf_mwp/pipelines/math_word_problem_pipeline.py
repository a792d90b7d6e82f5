"""Text in, equation and value out."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader
from transformers import Pipeline
from transformers.pipelines.pt_utils import PipelineIterator

from ..data.batches.mwp_processor import MwpProcessor
from ..downloads import download_options
from ..models import Solver
from ..models.model_kind import kind_of
from ..problems import MathWordProblem, refusal
from ..runtime.answer_records import answer_records, check_confidence_threshold
from ..runtime.default_search import DefaultSearch


# Loaded when there is something to solve: importing the package registers this class.
if TYPE_CHECKING:
    from ..plausibility import PlausibilityReranker
    from ..solving.solver_prediction import SolverPrediction


class MathWordProblemPipeline(Pipeline):
    """
    Solves math word problems: `pipeline("math-word-problem", model=folder_or_hub_id)`.

    Each text gives a dictionary:

    - `answer` (`float` or `None`): value of the predicted equation;
    - `value` (`str` or `None`): the same exactly, `"7/4"`;
    - `equation` (`str` or `None`): the equation in infix notation, numbers put in as the text writes them;
    - `prefix` (`list[str]` or `None`): its prefix, with slots `N0`, `N1`, ... for the numbers;
    - `numbers` (`list[str]`): the numbers found in the text;
    - `score` (`float`): probability that the model gives to the equation, the product of those of its symbols, with
      beams too (not normalised by length or over the beams); 0 where there is no equation;
    - `unknown_share` (`float`): share of the text's tokens that the vocabulary lacks, only where the text was encoded;
    - `error` (`str`), only where `answer` is `None`: why there is no answer;
    - `plausibility` (`float`), only with `rerank`: share of the answer among those of the beams, all equations with
      its value voting together; the answers of `top_k` then have different values, and each its `violations`
      (`list[str]`: "negative length", "2.4 people"), what speaks against it beside the first one;
    - `instead_of` (`dict`), only where re-ranking put another answer first than the solver: `equation`, `answer` and
      `violations` of the one that the solver held for likelier;
    - `status` (`"unsure"`) and `candidates` (`list[dict]`), only where `score`, or with `rerank` `plausibility`, is
      below `confidence_threshold`: the equations found, best first, each with `equation`, `answer`, `value` and
      `score`, the score of the best one being that of the result;
    - `capped` (`True`), only where a limit of the decoder on what it tries cut the search short;
    - `warning` (`str`), only where the search was `capped`, where numbers beyond the cut of a long text could not be
      used, or where more than a fifth of its tokens are unknown, as of a text in a language that the solver was not
      trained on.

    Texts that cannot be solved have an `error` instead of raising: empty ones, without numbers, with a number of
    hundreds of digits, with half a surrogate pair, or of more than 100,000 characters; equations without a value; no
    finished tree; numbers that all lie beyond the processor's `max_length` tokens. An input that is no text raises
    `TypeError` with its place among the others.

    Args:
        model ([`MwpSolver`]): The solver.
        processor ([`MwpProcessor`], *optional*):
            Loaded from the model's folder or repository if not given, there with the `revision` and `token` of the
            model, as a re-ranker is.
        num_beams (`int`, *optional*): Beams of the search; also an argument of the call. With `rerank` those that the
            re-ranker was fitted with by default. Without `num_beams` and `rerank` the `generation_config.json` beside
            the model says both ([`~runtime.default_search.DefaultSearch`]); without that file the search is greedy.
        rerank (`bool`, `str` or [`PlausibilityReranker`], *optional*): Whether to rank the answers of the beams by how
            plausible they are; `True` takes `plausibility.json` beside the model, a text names the folder of another,
            or is `"en"` or `"zh"` for the package's own. Also an argument of the call.
        top_k (`int`, *optional*): Return a list of the `top_k` best equations for each text (the beams are raised to
            at least `top_k`); also an argument of the call. By default the best one.
        max_decode_length (`int`, *optional*): Most symbols of an equation; the decoder's own limit by default. Also an
            argument of the call.
        confidence_threshold (`float`, *optional*): Probability (plausibility with `rerank`), 0 to 1, below which the
            answer is `"unsure"`, with the equations of all beams as candidates, even where `top_k` asks for several;
            also an argument of the call. `hf-mwp evaluate` measures what the probabilities of a model are worth.
        batch_size (`int`, *optional*, defaults to 1): Texts solved at once; also an argument of the call.
        kwargs:
            Passed to `Pipeline`, such as `device`.

    Called with a text or [`MathWordProblem`] it returns a list (of one dictionary, or of `top_k`), with a list a list
    (of dictionaries, or of lists of `top_k`), with a generator or data set an iterator over the same.

    Raises:
        ValueError: the model is no [`MwpSolver`], processor or re-ranker are missing or do not suit it, or an argument
            is out of its range.
        SolverFolderError: the folder is not one of a whole solver; or none is given and the quickstart has made none.

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
            raise ValueError(
                f'The pipeline "math-word-problem" needs an MwpSolver, not {type(model).__name__} '
                f"({model.name_or_path or 'made here'}); train one with "
                "`hf-mwp train`, or put a decoder on an encoder with MwpSolver.from_encoder_decoder_pretrained."
            )
        if not isinstance(processor, MwpProcessor):
            processor = _load_processor(model, processor)
        try:
            processor.check_model(model)
        except ValueError as error:
            raise ValueError(f"{model.name_or_path or 'This model'} and its processor do not fit: {error}") from error
        self._rerankers: dict[str, PlausibilityReranker] = {}
        super().__init__(model=model, processor=processor, **kwargs)

    def save_pretrained(self, save_directory: str | PathLike, **kwargs) -> None:
        """
        Save model, processor, and re-ranker and default search if there are any, to one folder; `kwargs` are those of
        the model's `save_pretrained`.
        """
        self.model.save_pretrained(save_directory, **kwargs)
        self.processor.save_pretrained(save_directory)
        if self.default_search.num_beams > 1:
            self.default_search.save_pretrained(save_directory)
        if reranker := self._forward_params.get("rerank") or self._reranker(self.default_search.rerank):
            reranker.save_pretrained(save_directory)

    def _sanitize_parameters(
        self, num_beams=None, top_k=None, max_decode_length=None, confidence_threshold=None, rerank=None
    ):
        for name, value in (("num_beams", num_beams), ("top_k", top_k), ("max_decode_length", max_decode_length)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"`{name}` must be a whole number of at least 1, not {value!r}.")
        check_confidence_threshold(confidence_threshold)
        if rerank is not None:
            rerank = self._reranker(rerank)
        forward = {"num_beams": num_beams, "max_decode_length": max_decode_length, "rerank": rerank}
        both = {"top_k": top_k, "confidence_threshold": confidence_threshold}
        return (
            {},
            {name: value for name, value in (forward | both).items() if value is not None},
            {name: value for name, value in both.items() if value is not None},
        )

    def _reranker(self, wanted: bool | str | PathLike | PlausibilityReranker) -> PlausibilityReranker | bool:
        """The re-ranker that is asked for, read once; `False` for none."""
        from ..plausibility import PlausibilityReranker

        if isinstance(wanted, PlausibilityReranker) or not wanted:
            return wanted
        place = self.model.name_or_path if wanted is True else str(wanted)
        if place not in self._rerankers:
            options = download_options(self.model, place)
            self._rerankers[place] = PlausibilityReranker.from_pretrained(place, **options)
        return self._rerankers[place]

    def get_iterator(self, inputs, num_workers, batch_size, preprocess_params, forward_params, postprocess_params):
        # An iterator can be read by one worker only.
        problems = PipelineIterator(enumerate(inputs), self._preprocess_numbered, preprocess_params)
        for batch in DataLoader(problems, num_workers=min(num_workers, 1), batch_size=batch_size, collate_fn=list):
            for outputs in self.forward(batch, **forward_params):
                yield self.postprocess(outputs, **postprocess_params)

    def run_single(self, inputs, preprocess_params, forward_params, postprocess_params):
        (outputs,) = self.forward([self.preprocess(inputs, **preprocess_params)], **forward_params)
        result = self.postprocess(outputs, **postprocess_params)
        return result if isinstance(result, list) else [result]

    def __call__(self, inputs, **kwargs):
        """Solves one text, or the texts of a list, generator or data set; see the class."""
        if isinstance(inputs, list) and not inputs:
            return []
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
        # Numbers are found here, where workers can do it.
        refusal(problem)
        return problem

    @cached_property
    def default_search(self) -> DefaultSearch:
        """The search of calls that choose neither beams nor re-ranking."""
        name = self.model.name_or_path
        return DefaultSearch.from_pretrained(name, **download_options(self.model)) if name else DefaultSearch()

    def _forward(
        self, problems, num_beams=None, top_k=1, max_decode_length=None, confidence_threshold=None, rerank=None
    ):
        from ..solving.solve_problems import solve_problems

        if num_beams is None and rerank is None:
            num_beams, rerank = self.default_search.num_beams, self._reranker(self.default_search.rerank)
        if confidence_threshold is not None:
            # The candidates of an unsure answer are the equations of all beams.
            num_beams, top_k = max(num_beams or (rerank.num_beams if rerank else 1), top_k), None
        return solve_problems(
            self.model,
            self.processor,
            problems,
            num_beams=num_beams,
            top_k=top_k,
            max_decode_length=max_decode_length,
            reranker=rerank or None,
            batch_size=None,
        )

    def postprocess(
        self, prediction: SolverPrediction, top_k: int | None = None, confidence_threshold: float | None = None
    ) -> dict | list[dict]:
        records = answer_records(prediction, top_k or 1, confidence_threshold)
        return records[0] if top_k is None else records


def _load_processor(model: Solver, source: str | PathLike | None) -> MwpProcessor:
    name = model.name_or_path if source is None else str(source)
    if not name:
        raise ValueError("This model was not loaded from a folder, so the pipeline needs `processor=` as well.")
    try:
        return MwpProcessor.from_pretrained(name, **download_options(model, name))
    except OSError as error:
        raise ValueError(
            f"{name} has a model but no {MwpProcessor.file_name}: save the processor beside the model with "
            "`processor.save_pretrained(folder)`, or pass `processor=`."
        ) from error

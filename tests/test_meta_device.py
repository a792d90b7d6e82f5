"""
One training step on the meta device, the stand-in for a GPU: its tensors have no values, so whatever looks at one, as
a GPU would have to be waited for, raises, and so does what mixes it with a tensor of the host.
"""

from functools import partial

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hf_mwp.compress.distillation import objectives
from hf_mwp.compress.distillation.objectives import (
    DKD,
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    EmbeddingOutputs,
    HardLabels,
    HiddenStates,
    LayerObjective,
    Objective,
    PredictionObjective,
    SoftLabels,
    TeacherValues,
)
from hf_mwp.compress.losses import CKALoss, CosineLoss, GramLoss, NSTLoss, ProcrustesLoss, position_chunks
from hf_mwp.compress.models import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForMultipleChoice,
    MwpStudentForPreTraining,
    MwpStudentForQuestionAnswering,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)
from hf_mwp.compress.models.lora import add_lora
from hf_mwp.compress.models.masked_lm import as_masked_lm
from hf_mwp.compress.pruning import HeadGates, NeuronGates
from hf_mwp.compress.trainers import (
    CausalLMDistillationConfig,
    DistillationConfig,
    DistillationTrainer,
    Seq2SeqDistillationConfig,
    Seq2SeqDistillationTrainer,
)
from tests.compress.trainers.task_heads import TASKS
from tests.slow_parameters import slow_except
from tests.tiny import (
    tiny_athena_solver,
    tiny_classifier,
    tiny_masked_lm,
    tiny_processor,
    tiny_rows,
    tiny_solver,
    tiny_tokenizer,
)
from tests.tiny_causal import CAUSAL_TYPES, tiny_causal
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


META = torch.device("meta")
MASKED = torch.tensor([[-100, 5, *[-100] * 5], [-100, -100, 5, *[-100] * 4]])
ABSTRACT = {Objective, LayerObjective, PredictionObjective}


class OnMeta(TorchDispatchMode):
    """Refuses tensors of the host but for single numbers, which a kernel takes as an argument."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs, output)):
            if isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.device != META:
                raise AssertionError(f"{function} works on a tensor {tuple(leaf.shape)} of the {leaf.device}")
        return output


@pytest.fixture(autouse=True)
def mask_is_not_looked_at(monkeypatch):
    # transformers leaves a mask away that hides nothing, which it finds out by looking.
    for direction in ("bidirectional", "causal"):
        monkeypatch.setattr(f"transformers.masking_utils._ignore_{direction}_mask_sdpa", lambda *args, **kwargs: False)


def moved(batch):
    on_meta = {}
    for name, value in batch.items():
        # The cached outputs of a teacher are a dictionary.
        on_meta[name] = moved(value) if isinstance(value, dict) else value.to(META)
    return on_meta


def take_step(model, compute_loss):
    optimizer = torch.optim.AdamW(model.parameters())
    with OnMeta():
        loss = compute_loss()
        assert loss.shape == () and loss.device == META
        loss.backward()
        optimizer.step()
    trained = [parameter for parameter in model.parameters() if parameter.grad is not None]
    assert trained and all(parameter.device == META for parameter in trained)


def tokens(**labels):
    return {"input_ids": torch.full((2, 7), 6), "attention_mask": torch.ones(2, 7, dtype=torch.long), **labels}


def student(model_class, **fields):
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return model_class(MwpStudentConfig(**sizes, intermediate_size=24, max_position_embeddings=32, **fields))


def encoded_problems(processor, count=4):
    labels = [0, *[processor.vocabulary.num_symbols] * 2]
    rows = []
    for row in tiny_rows(count):
        columns = processor.encode([row["text"]])
        rows.append({name: values[0] for name, values in columns.items()} | {"labels": labels})
    return rows


def solver(processor, **fields):
    return tiny_solver(processor, dropout=0.1, **fields)


MODELS = {
    "encoder": lambda: (student(MwpStudentModel), tokens()),
    "masked language model": lambda: (student(MwpStudentForMaskedLM), tokens(labels=torch.full((2, 7), 5))),
    "pretraining": lambda: (
        student(MwpStudentForPreTraining, num_pos_tags=3),
        tokens(labels=torch.full((2, 7), 5), pos_labels=torch.full((2, 7), 1)),
    ),
    "pretraining, sparse": lambda: (
        student(MwpStudentForPreTraining, num_pos_tags=3, sparse_prediction=True),
        tokens(labels=MASKED, pos_labels=torch.full((2, 7), 1), masked_positions=torch.tensor([1, 9])),
    ),
    "masked words of another encoder": lambda: (
        as_masked_lm(student(MwpStudentModel)),
        tokens(labels=torch.full((2, 7), 5)),
    ),
    "classifier": lambda: (
        student(MwpStudentForSequenceClassification, num_labels=3),
        tokens(labels=torch.zeros(2, dtype=torch.long)),
    ),
    "classifier of tokens": lambda: (
        student(MwpStudentForTokenClassification),
        tokens(labels=torch.zeros_like(MASKED)),
    ),
    "question answering": lambda: (
        student(MwpStudentForQuestionAnswering),
        tokens(start_positions=torch.tensor([1, 9]), end_positions=torch.tensor([2, 9])),
    ),
    "multiple choice": lambda: (
        student(MwpStudentForMultipleChoice),
        {
            "input_ids": torch.full((2, 3, 7), 6),
            "attention_mask": torch.ones(2, 3, 7, dtype=torch.long),
            "labels": torch.tensor([2, -100]),
        },
    ),
    "solver": lambda: solver_and_batch(),
    "BERT with gates": lambda: gated(tiny_classifier(), tokens(labels=torch.zeros(2, dtype=torch.long))),
    "solver with gates": lambda: gated(*solver_and_batch()),
    "solver with bottlenecks": lambda: solver_and_batch(bottleneck_layers=[1], bottleneck_size=4),
    "solver with LoRA": lambda: adapted(*solver_and_batch()),
}
QUICK_MODELS = (
    "encoder",
    "pretraining",
    "multiple choice",
    "solver",
    "BERT with gates",
    "solver with gates",
    "solver with bottlenecks",
    "gemma3_text with gates",
    "gpt2 with gates",
)


for model_type in CAUSAL_TYPES:
    MODELS[f"{model_type} with gates"] = partial(lambda name: gated(*causal_model_and_batch(name)), model_type)


def causal_model_and_batch(model_type):
    return tiny_causal(model_type), tokens(labels=torch.full((2, 7), 5))


def solver_and_batch(**fields):
    processor = tiny_processor()
    model = solver(processor, **fields)
    return model, model.make_collator(processor)(encoded_problems(processor))


def gated(model, batch):
    HeadGates(model).close({0: [1]})
    NeuronGates(model).close({1: [0, 3]})
    return model, batch


def adapted(model, batch):
    return add_lora(model, rank=2, dropout=0.1, tokens=[6, 7]), batch


@pytest.mark.parametrize("name", slow_except(MODELS, *QUICK_MODELS))
def test_a_step_of_each_model(name):
    model, batch = MODELS[name]()
    model = model.to(META).train()
    batch = moved(batch)

    def compute_loss():
        output = model(**batch)
        loss = output.get("loss")
        return output.last_hidden_state.sum() if loss is None else loss

    take_step(model, compute_loss)


def decoupled():
    return DKD(name="decoupled")


OBJECTIVES = [
    SoftLabels,
    decoupled,
    HardLabels,
    HiddenStates,
    lambda: HiddenStates(NSTLoss(), name="similarities"),
    lambda: HiddenStates(CKALoss(), name="cka"),
    lambda: HiddenStates(CKALoss(unbiased=True), name="unbiased"),
    lambda: HiddenStates(CosineLoss(), name="cosine"),
    lambda: HiddenStates(GramLoss(), name="gram"),
    lambda: HiddenStates(ProcrustesLoss(), name="procrustes"),
    EmbeddingOutputs,
    AttentionMaps,
    AttentionRelations,
    FSP,
    PKD,
    ContextRelations,
]


# A solver's logits are no values to follow.
NOT_OF_SOLVERS = [lambda: TeacherValues(name="values")]


def test_no_objective_is_left_out():
    classes = {type(make()) for make in [*OBJECTIVES, *NOT_OF_SOLVERS]}
    assert classes == {getattr(objectives, name) for name in objectives.__all__} - ABSTRACT


def take_step_of(trainer, student, teacher):
    """Move both models to the device, and take a step on the first batch of a trainer."""
    batch = moved(next(iter(trainer.get_train_dataloader())))
    trainer.projections.attach(student)
    student.to(META).train()
    teacher.to(META)
    trainer.current_gradient_accumulation_steps = 2
    with OnMeta():
        totals = 2 * trainer._stack_num_items(batch)
    take_step(student, lambda: trainer.compute_loss(student, batch, num_items_in_batch=totals))


@pytest.mark.parametrize("name", slow_except(["solver", "judged candidates", "masked language model"], "solver"))
def test_a_step_of_all_objectives(name, tmp_path):
    processor = tiny_processor()
    rows = {"train_dataset": tiny_rows(4), "processing_class": processor}
    makes = list(OBJECTIVES)
    if name == "solver":
        student = solver(processor)
        teacher = solver(processor, layers=4, hidden_size=24)
    elif name == "judged candidates":
        student = tiny_athena_solver(processor, dropout=0.1)
        teacher = tiny_athena_solver(processor, layers=4, hidden_size=24)
        makes.remove(decoupled)
    else:
        student = tiny_masked_lm()
        teacher = tiny_masked_lm(num_hidden_layers=4, hidden_size=24)
        features = {"input_ids": [6] * 5, "attention_mask": [1] * 5, "labels": [-100, 6, 7, -100, 8]}
        rows = {"train_dataset": [features] * 4}
        makes += NOT_OF_SOLVERS
    for model in (student, teacher):
        model.set_attn_implementation("eager")
    # Attention is compared head by head, except closed ones.
    HeadGates(student).close({0: [1]})
    args = DistillationConfig(str(tmp_path), use_cpu=True, report_to="none")
    trainer = DistillationTrainer(student, teacher, args, objectives=[make() for make in makes], **rows)
    take_step_of(trainer, student, teacher)


@pytest.mark.parametrize("name", slow_except(["answers", "choices", "pretraining"], "choices"))
def test_a_step_of_other_heads(name, tmp_path):
    task = TASKS[name]
    models = task.make(), task.make(24, 4, 1)
    args = DistillationConfig(str(tmp_path), use_cpu=True, report_to="none", hidden_loss="mse+cka+pkd+minilm")
    trainer = DistillationTrainer(*models, args, task.collate, task.rows(4))
    take_step_of(trainer, *models)


@pytest.mark.parametrize("name", slow_except(["bart", "m2m_100", "t5"], "t5"))
def test_a_step_of_both_stacks(name, tmp_path):
    student = tiny_seq2seq(name, dropout=0.1)
    teacher = tiny_seq2seq(name, 24, 4, seed=1)
    options = {"hidden_loss": "mse+cka+minilm+fsp", "layer_mapping": "uniform"}
    args = Seq2SeqDistillationConfig(str(tmp_path), use_cpu=True, report_to="none", **options)
    rows = {"train_dataset": tiny_pairs(4), "processing_class": tiny_tokenizer()}
    trainer = Seq2SeqDistillationTrainer(student, teacher_model=teacher, args=args, **rows)
    take_step_of(trainer, student, teacher)


@pytest.mark.parametrize(
    ("model_type", "cached"),
    slow_except([*((name, False) for name in CAUSAL_TYPES), ("llama", True)], ("llama", True), ("gpt2", False)),
)
def test_a_step_of_causal_language_models(model_type, cached, tmp_path, monkeypatch):
    # Chunks of two positions.
    monkeypatch.setattr(position_chunks, "CHUNK_SIZE", 60)
    student = tiny_causal(model_type)
    teacher = tiny_causal(model_type, seed=1)
    options = {"hidden_loss": "mse+cka", "layer_mapping": "uniform", "hidden_mask": "labels", "cache_top_k": 8}
    args = CausalLMDistillationConfig(
        str(tmp_path), use_cpu=True, report_to="none", cache_teacher_outputs=cached, **options
    )
    rows = {"train_dataset": tiny_rows(4), "processing_class": tiny_tokenizer()}
    trainer = DistillationTrainer(student, teacher, args, **rows)
    take_step_of(trainer, student, teacher)

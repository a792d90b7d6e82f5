"""The study of causal language models: texts, tokenizer, figures and tables."""

import gzip
import json
import math

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from causal_study.evaluation import evaluate, generate_equations, is_right, text_losses, top_k_losses
from causal_study.results import measure, study_table, top_k_table
from causal_study.students import STUDENT_ARMS
from causal_study.texts import END, full_text, read_rows, text_row, train_tokenizer
from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.files import read_json
from hf_mwp.utils.job import Job
from reproduce.table_result import ArmRun, TableResult
from tests.examples.scripts import load_script


TEXTS = [
    "Question: Ann has N0 red pens and N1 blue pens. How many pens has she? Equation: N0+N1",
    "Question: Ben had N0 books and sold N1. How many are left? Equation: N0-N1",
    "Question: A box holds N0 eggs. How many eggs are in N1 boxes? Equation: N0*N1",
    "Question: Ivy reads 10 pages a day. Equation: 10",
]


def problem_of(text, equation, answer="5"):
    return MathWordProblem(text, equation, answer, language="en")


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=340)


def tiny_llama(tokenizer, seed=0):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.3,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config).eval()


def test_numbers_of_a_text_are_names_that_its_equation_has():
    row = text_row(problem_of("Ann has 12 pens in 2 boxes, and seven more. How many?", "x=12*2+7", "31"), "mawps")
    assert row == {
        "dataset": "mawps",
        "prompt": "Question: Ann has N0 pens in N1 boxes, and N2 more. How many? Equation:",
        "completion": " N0*N1+N2",
        "numbers": ["12", "2", "7"],
        "answer": "31",
        "key": "Annhas[NUM]pensin[NUM]boxes,and[NUM]more.Howmany?",
    }


@pytest.mark.parametrize(
    ("text", "equation"),
    [("Ann has pens.", "x=2"), ("Ann has 3 pens.", "x=3+"), (" ".join(map(str, range(30))), "x=1+2")],
    ids=["no number", "invalid equation", "too many numbers"],
)
def test_problem_that_cannot_be_scored_is_left_out(text, equation):
    assert text_row(problem_of(text, equation), "mawps") is None


@pytest.mark.slow
def test_training_texts_are_unique_and_differ_from_test_texts_in_more_than_numbers(tmp_path):
    rows = []
    for index in range(1003):
        name = "abcdefghij"[index % 10] * (1 + index // 10)
        text = f"Ann has 2 pens and 3 {name}. How many?"
        rows.append({"id": f"{index}", "original_text": text, "equation": "x=2+3", "ans": "5"})
        rows.append({"id": f"{index}b", "original_text": text.replace("2", "4"), "equation": "x=4+3", "ans": "7"})
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "math23k_en_train.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    splits = read_rows([], None, tmp_path)
    train_keys = [row["key"] for row in splits["train"]]
    test_keys = {row["key"] for row in splits["test"]}
    assert len(splits["test"]) == 1000
    assert len(train_keys) == 1003 - len(test_keys) == len(set(train_keys))
    assert not test_keys & set(train_keys)


def test_digits_and_names_of_numbers_are_single_tokens(tokenizer):
    names = ["N0", "*", "N12", "+", "3", ".", "1", "4", "N1"]
    assert tokenizer("N0*N12+3.14 N1").input_ids == tokenizer.convert_tokens_to_ids(names)
    assert tokenizer.decode(tokenizer("3.14*(N0+N1)").input_ids) == "3.14*(N0+N1)"
    assert (tokenizer.eos_token, len(tokenizer)) == (END, 340)
    prompt, completion = TEXTS[0].split(" N0+")
    prompt_ids = tokenizer(prompt).input_ids
    assert tokenizer(TEXTS[0]).input_ids[: len(prompt_ids)] == prompt_ids


def test_losses_equal_those_of_single_texts(tokenizer):
    model = tiny_llama(tokenizer)
    for text, (loss, num_tokens) in zip(TEXTS, text_losses(model, tokenizer, TEXTS), strict=True):
        input_ids = torch.tensor([[*tokenizer(text).input_ids, tokenizer.eos_token_id]])
        log_probs = model(input_ids).logits[0].log_softmax(-1)
        expected = 0.0
        for position in range(input_ids.shape[1] - 1):
            expected -= log_probs[position, input_ids[0, position + 1]].item()
        assert num_tokens == input_ids.shape[1] - 1
        assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_equations_are_the_most_likely_tokens_after_each_prompt(tokenizer):
    model = tiny_llama(tokenizer)
    prompts = [text.rpartition(" ")[0] for text in TEXTS]
    for prompt, equation in zip(prompts, generate_equations(model, tokenizer, prompts), strict=True):
        input_ids = tokenizer(prompt).input_ids
        generated = []
        while len(generated) < 40:
            token = int(model(torch.tensor([input_ids + generated])).logits[0, -1].argmax())
            generated.append(token)
            if token == tokenizer.eos_token_id:
                break
        assert equation == tokenizer.decode(generated, skip_special_tokens=True).strip()


@pytest.mark.parametrize(
    ("equation", "right"),
    [("N0*N1", True), ("N1*N0", True), ("N0+N1", False), ("N0*", False), ("N2", False), ("", False), ("N0/0", False)],
)
def test_equation_is_right_if_its_value_is_the_answer(equation, right):
    row = {"numbers": ["12", "50%"], "answer": "6"}
    assert is_right(equation, row) is right


def test_divergence_from_all_tokens_is_the_limit_of_that_from_the_most_likely(tokenizer):
    teacher = tiny_llama(tokenizer, seed=0)
    student = tiny_llama(tokenizer, seed=1)
    vocab_size = len(tokenizer)
    figures = top_k_losses(teacher, student, tokenizer, TEXTS, (1, 16, vocab_size - 1))
    assert list(figures) == [1, 16, vocab_size - 1, vocab_size]
    losses = [values["loss"] for values in figures.values()]
    assert losses[0] < losses[1] < losses[3]
    assert losses[2] == pytest.approx(losses[3], rel=1e-4)
    assert figures[1]["mass"] < figures[16]["mass"] < figures[vocab_size]["mass"] == 1.0

    total = 0.0
    num_tokens = 0
    for text in TEXTS:
        input_ids = torch.tensor([[*tokenizer(text).input_ids, tokenizer.eos_token_id]])
        student_logits = student(input_ids).logits[0, :-1]
        teacher_logits = teacher(input_ids).logits[0, :-1]
        loss = LogitDistillationLoss(temperature=1.0)(student_logits, teacher_logits).item()
        total += loss * len(student_logits)
        num_tokens += len(student_logits)
    assert losses[-1] == pytest.approx(total / num_tokens, rel=1e-4)


def test_figures_of_a_model(tokenizer):
    rows = [text_row(problem_of(f"Ann has 2 pens and {number} more.", f"x=2+{number}"), "mawps") for number in (3, 4)]
    model = tiny_llama(tokenizer)
    metrics = evaluate(model, tokenizer, rows)
    losses = text_losses(model, tokenizer, [full_text(row) for row in rows])
    assert metrics["losses"] == [round(loss, 1) for loss, _ in losses]
    assert set(metrics["outcomes"]) == {"mawps"}
    assert len(metrics["outcomes"]["mawps"]) == 2
    assert metrics["parameters"] > metrics["parameters_without_embeddings"]


def metrics_of(losses, right):
    counts = {"parameters": 2_000_000, "parameters_without_embeddings": 1_500_000}
    return {"losses": losses, "num_tokens": [10, 30], "outcomes": {"mawps": right, "gsm8k": "0" * 6}, **counts}


def test_figures_of_a_run():
    run = measure(metrics_of([12.0, 28.0], "1001"))
    expected = {"perplexity": math.e, "parameters": 2.0, "core": 1.5, "mawps": 50.0, "gsm8k": 0.0}
    assert run.figures == pytest.approx(expected, abs=1e-4)
    assert run.examples == {"perplexity": {"predictions": "12 28", "labels": "10 30"}}
    assert run.outcomes == {"mawps": "1001", "gsm8k": "000000"}


def test_table_pools_answers_and_pairs_students_with_those_without_hidden_states(tmp_path):
    runs = {"teacher": [measure(metrics_of([8.0, 20.0], "1111"))]}
    for arm in STUDENT_ARMS:
        runs[arm.name] = [ArmRun(42)]
    runs["half-none"] = [measure(metrics_of([12.0, 28.0], "0001"))]
    runs["half-cka"] = [measure(metrics_of([11.0, 25.0], "1001"))]
    table = study_table(runs, ["mawps", "gsm8k"], {"budget": "cpu", "seeds": [42]})
    table.save(tmp_path / "table.json")
    table = TableResult.load(tmp_path / "table.json")
    arms = {arm.name: arm for arm in table.arms}
    assert arms["teacher"].mean("answers") == 40.0
    assert arms["half-cka"].mean("answers") == 20.0
    assert arms["half-cka"].compare_with == "half-none half-linear"
    assert arms["quarter-linear"].states == {"waiting"}


def test_table_of_stored_tokens_has_shares_and_bytes(tmp_path):
    job = Job.named(tmp_path, "top_k", {})
    job.run(lambda: None)
    figures = {"1": {"loss": 0.2, "mass": 0.5}, "64": {"loss": 0.39, "mass": 0.99}, "4000": {"loss": 0.4, "mass": 1.0}}
    table = top_k_table(figures, job, {"budget": "cpu", "seeds": [42]})
    rows = [[arm.title, arm.mean("share"), arm.mean("bytes")] for arm in table.arms]
    assert rows == [["k = 1", 50.0, 8.0], ["k = 64", 97.5, 386.0], ["all 4,000 tokens", 100.0, 8000.0]]


@pytest.mark.slow
def test_study_resumes_and_writes_its_tables(tmp_path, capsys):
    script = load_script("causal_math.py")
    arguments = ["--budget", "quick", "--seeds", "1", "--output_dir", str(tmp_path)]
    assert script.main(arguments) == 0
    capsys.readouterr()
    records = {path: path.read_text() for path in tmp_path.glob("*/stage.json")}
    # Data, teacher, 8 students and their evaluations, and the comparison with stored tokens.
    assert len(records) == 1 + 2 + 16 + 1
    assert {path.name for path in tmp_path.glob("*.png")} == {"cka-causal-quick.png", "causal-top-k-quick.png"}
    table = TableResult.load(tmp_path / "cka-causal-quick.json")
    assert all(arm.states == {"done"} for arm in table.arms)
    assert len(read_json(next(tmp_path.glob("data-*")) / "rows.json")["test"]) == table.arms[0].runs[0].counts["mawps"]

    assert script.main(arguments) == 0
    assert records == {path: path.read_text() for path in tmp_path.glob("*/stage.json")}

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from hf_mwp.commands import solve as solve_module
from hf_mwp.commands.main import main
from hf_mwp.commands.solve import SolveArguments, solve, solve_to_output
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.problem_lines import _waiting_batches, problem_batches
from hf_mwp.utils.run_folder import RunFolder
from tests.commands.folders import write_rows


TEXT = "小明有4个苹果，又买了2个，一共有几个？"
NEXT_TEXT = "每盒3个苹果，5盒一共有几个？"


@pytest.fixture
def solved_texts(monkeypatch):
    """Texts that the command asks a solver, which divides the first two numbers of each."""
    texts = []

    def solve(batch):
        texts.extend(batch)
        solutions = []
        for text in batch:
            numbers = re.findall(r"\d+", text)
            solution = {"answer": 1.75, "value": "7/4", "equation": "7/4", "prefix": ["/", "N0", "N1"], "score": 0.5}
            solutions.append([solution | {"numbers": numbers}])
        return solutions

    monkeypatch.setattr("hf_mwp.commands.solve._load_solver", lambda args: solve)
    return texts


@pytest.fixture
def answers_of(capsys):
    """Function that runs the command with `--json`, and returns the objects that it prints."""

    def run(*argv):
        assert main(["solve", "--json", *map(str, argv)]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def use_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


@pytest.mark.parametrize("runtime", ["numpy", "torch"])
def test_arguments_are_solved(solver_folder, answers_of, runtime):
    first, second = answers_of("--model", solver_folder, "--runtime", runtime, TEXT, "没有数字")
    assert first["text"] == TEXT
    assert first["numbers"] == ["4", "2"]
    assert first["answer"] is not None
    assert second["answer"] is None
    assert "number" in second["error"]


def test_both_runtimes_print_the_same(solver_folder, output_of):
    argv = ["solve", "--model", solver_folder, TEXT, "--num_beams", 4, "--runtime"]
    assert output_of(*argv, "numpy") == output_of(*argv, "torch")


def test_options_reach_the_solver(solver_folder, monkeypatch, answers_of):
    calls = []

    def load(folder):
        def solve(texts, **options):
            calls.append((folder, texts, options))
            return [[] for _ in texts]

        return solve

    monkeypatch.setattr("hf_mwp.runtime.load_solver", load)
    argv = ["--num_beams=3", "--top_k=2", "--confidence_threshold=0.5", "--reranker=zh", "--score_margin=6"]
    answers_of("--model", solver_folder, *argv, TEXT)
    options = {"num_beams": 3, "top_k": 2, "confidence_threshold": 0.5, "rerank": "zh", "score_margin": 6}
    assert calls == [(str(solver_folder), [TEXT], options)]


@pytest.mark.parametrize("text", ["-5℃比3℃低多少度？", "-5+3=?", "-.5和-1.5的和是多少？"])
def test_argument_may_begin_with_a_negative_number(solved_texts, answers_of, text):
    answers_of("--model=a", text)
    assert solved_texts == [text]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_output_in_any_encoding(solved_texts, encoding, flags, monkeypatch):
    text = "3个😀和4个苹果"
    stream = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(stream, encoding=encoding))
    assert main(["solve", "--model=a", text, *flags]) == 0
    sys.stdout.flush()
    output = stream.getvalue().decode(encoding)
    assert (text in output) == (encoding == "utf-8")
    if flags:
        assert json.loads(output)["text"] == text


def test_two_runs_do_not_write_to_one_file(solver_folder, tmp_path, output_of, error_of):
    output = tmp_path / "answers.jsonl"
    argv = ["solve", "--model", solver_folder, TEXT, "--output", output]
    with RunFolder(tmp_path / "answers.jsonl.unfinished"):
        assert re.search("Another run writes to .*answers.jsonl.unfinished", error_of(*argv))
        assert not output.exists()
    output_of(*argv)
    assert "answers.jsonl already exists" in error_of(*argv)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_escape_sequences_are_shown_and_not_read(solver_folder, capsys, answers_of, error_of):
    text = TEXT.replace("4", "\x1b[31m4\x1b[0m").replace("？", "？\x9b\x07")
    assert main(["solve", "--model", str(solver_folder), text]) == 0
    output = capsys.readouterr().out
    assert not set("\x1b\x07\x9b") & set(output)
    assert "\\x1b[31m4\\x1b[0m" in output
    assert "31" not in output.replace("\\x1b[31m", "")
    assert main(["solve", "--model", str(solver_folder), "--json", text]) == 0
    output = capsys.readouterr().out
    assert not set("\x1b\x07\x9b") & set(output)
    answer = json.loads(output)
    assert answer["text"] == text
    assert answer["numbers"] == ["4", "2"]
    error = error_of("solve", "--model=a", "--file", "\x1b[31mnone.txt")
    assert "\\x1b[31mnone.txt" in error
    assert "\x1b" not in error


def test_tree_is_drawn_or_not(solved_texts, capsys):
    argv = ["solve", "--model=a", "7个苹果分给4人"]
    assert main(argv) == 0
    output = capsys.readouterr().out
    tree = "    /\n    ├── 7\n    └── 4\n"
    assert output == f"7个苹果分给4人\n  7/4 = 7/4 = 1.75   (probability 0.50)\n{tree}\n"
    assert main([*argv, "--no_tree"]) == 0
    assert "├" not in capsys.readouterr().out


def test_lines_of_a_file_or_of_standard_input_are_problems(solved_texts, tmp_path, answers_of, error_of, monkeypatch):
    content = f"{TEXT}\n\n{NEXT_TEXT}\n".encode()
    path = tmp_path / "problems.txt"
    path.write_bytes(content)
    assert len(answers_of("--model=a", "--file", path, "--batch_size", 1)) == 2
    use_standard_input(monkeypatch, content)
    assert len(answers_of("--model=a")) == 2
    assert solved_texts == [TEXT, NEXT_TEXT] * 2
    use_standard_input(monkeypatch, b"\n")
    assert "no problem" in error_of("solve", "--model=a")


def test_line_that_is_not_utf_8_is_reported_in_its_position(solved_texts, answers_of, monkeypatch):
    lines = [TEXT.encode(), "有4个\xff".encode("latin-1", "replace") + b"\xff", NEXT_TEXT.encode()]
    use_standard_input(monkeypatch, b"\n".join(lines))
    _, broken, _ = answers_of("--model=a")
    assert solved_texts == [TEXT, NEXT_TEXT]
    assert (broken["answer"], broken["equation"]) == (None, None)
    assert re.search("(?i)line 2.*UTF-8.*0xff.* 3", broken["error"])


def test_records_that_cannot_be_encoded_are_reported_in_their_position(solver_folder, tmp_path, answers_of, output_of):
    path = tmp_path / "problems.jsonl"
    path.write_bytes(b'{"text": "4 \xff"}\n{"id": "b", "text": "\\ud800 4"}\n{"text": "3 + 4"}\n')
    first, second, last = answers_of("--model", solver_folder, "--file", path)
    assert re.search(f"{path}, line 1.*UTF-8.*0xff", first["error"])
    assert first["text"] == "4 \ufffd"
    assert (second["id"], second["text"]) == ("b", "\ud800 4")
    assert "U+D800" in second["error"]
    assert last["numbers"] == ["3", "4"]
    output = output_of("solve", "--model", solver_folder, "--file", path)
    assert output.count("no answer: ") == 2
    assert "\\ud800 4" in output
    assert "line 1 " in output


def test_pipe_is_answered_line_by_line(solved_texts, monkeypatch):
    # As in a process of its own: both ends of two pipes, whose buffers nobody empties but the command.
    read_input, write_input = os.pipe()
    read_output, write_output = os.pipe()
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as ends:
        questions = ends.enter_context(open(write_input, "w", encoding="utf-8"))
        answers = ends.enter_context(open(read_output, encoding="utf-8"))
        monkeypatch.setattr(sys, "stdin", ends.enter_context(open(read_input, encoding="utf-8")))
        output = ends.enter_context(open(write_output, "w", encoding="utf-8"))
        monkeypatch.setattr(sys, "stdout", output)
        status = pool.submit(main, ["solve", "--model=a", "--json"])
        status.add_done_callback(lambda _: output.close())
        for number in (3, 4):
            questions.write(f"每盒{number}个苹果，5盒一共有几个？\n")
            questions.flush()
            assert json.loads(answers.readline())["numbers"] == [str(number), "5"]
        # Waiting lines are solved together, a last line without its end included.
        questions.write("6个和7个\n8个和9个")
        questions.close()
        assert [json.loads(line)["numbers"] for line in answers] == [["6", "7"], ["8", "9"]]
        assert status.result() == 0


class Pipe:
    """Standard input whose pieces arrive one after another."""

    def __init__(self, *pieces):
        self.pieces = iter(pieces)

    def read1(self, size):
        return next(self.pieces, b"")


def texts_of_batches(*pieces):
    batches = []
    for batch in _waiting_batches(Pipe(*pieces), 2):
        batches.append([problem["text"] for problem in batch])
    return batches


def test_batches_are_the_lines_that_wait():
    batches = texts_of_batches(b"a\n", b"b\nc\nd\ne", b"f\n\n", b"g")
    assert batches == [["a"], ["b", "c"], ["d"], ["ef"], ["g"]]
    assert texts_of_batches("每".encode()[:1], "每".encode()[1:] + b"\r\n") == [["每"]]
    assert texts_of_batches(b"\xef\xbb\xbfa\n") == [["a"]]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_pipe_in_utf_16(encoding):
    content = "\ufeff每\r\n\n上\n".encode(encoding)  # 上 contains the byte of a line end
    assert texts_of_batches(content[:5], content[5:]) == [["每", "上"]]


def test_line_that_is_too_long_is_reported_in_its_position(solved_texts, tmp_path, answers_of, monkeypatch):
    content = f"{TEXT}\n{'4' * 1_000_000}\n{NEXT_TEXT}\n".encode()
    use_standard_input(monkeypatch, content)
    path = tmp_path / "problems.txt"
    path.write_bytes(content)
    for source in ((), ("--file", path)):
        _, long, _ = answers_of("--model=a", *source)
        assert long["answer"] is None
        assert long["numbers"] == []
        assert "100,000 characters" in long["error"]
    assert solved_texts == [TEXT, NEXT_TEXT] * 2


@pytest.mark.slow
def test_pipe_without_line_ends_is_not_kept_in_memory():
    pieces = [b"\xe8\x8b\xb9" * 10_000] * 500
    tracemalloc.start()
    ((first, last),) = _waiting_batches(Pipe(*pieces, b"\n4\n"), 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    assert "Line 1" in first["error"]
    assert "100,000 characters" in first["error"]
    assert set(first["text"]) == {"苹"}
    assert last == {"text": "4"}


@pytest.mark.parametrize("option", ["num_beams", "top_k", "batch_size"])
def test_numbers_of_zero_are_refused(option, error_of):
    assert re.fullmatch(f"hf-mwp: solve: `{option}`.* 0.*", error_of("solve", "--model=a", f"--{option}=0", TEXT))


@pytest.mark.parametrize("value", ["1.5", "-1", "nan"])
def test_confidence_threshold_is_a_probability(solver_folder, value, error_of):
    error = error_of("solve", "--model", solver_folder, f"--confidence_threshold={value}", TEXT)
    assert re.search("`confidence_threshold`.*(a number| 0 .* 1)", error)


def test_answers_keep_the_ids_of_records(solved_texts, tmp_path, answers_of):
    path = write_rows(tmp_path / "problems.jsonl", [{"id": "a", "text": TEXT, "more": 1}])
    (answer,) = answers_of("--model=a", "--file", path)
    assert answer["id"] == "a"
    assert "more" not in answer


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "1"}\n{"text": "2', "line 2: .*JSON.*column 10.*last line"),
        ('{"text": "1"}\n{"text" 2}\n', "line 2: .*JSON"),
        ('{"words": "1"}\n', "line 1: .*The fields are words.*text=words"),
        ('{"text": 3}\n', "line 1: .*`text`"),
        ("[3]\n", "line 1: .*JSON object.* int"),
        ('{"text": "1"}\n[]\n', "line 2: .*JSON object.* list"),
    ],
)
def test_damaged_jsonl_is_named_with_its_line(solved_texts, tmp_path, error_of, content, message):
    path = tmp_path / "problems.jsonl"
    path.write_text(content, encoding="utf-8")
    error = error_of("solve", "--model=a", "--file", path, "--batch_size", 1, "--json")
    assert re.search(f"{path}, {message}", error)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", '\ufeff{"question": "3个", "ID": "a"}\n\n{"body": "有4个。", "question": "共几个？"}\n'),
        ("x.json", '\n[{"text": "3个", "id": "a"},\n{"Body": "有4个。", "Question": "共几个？", "answer": 4}]\n'),
        ("x.csv", "id, text ,body\na,3个,\n,共几个？,有4个。\n"),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_of_records_are_read_as_datasets_are(tmp_path, name, content, ending):
    path = tmp_path / f"{name}{ending}"
    path.write_bytes(gzip.compress(content.encode()) if ending else content.encode())
    problems = [{"id": "a", "text": "3个"}, {"text": "有4个。 共几个？"}]
    assert list(problem_batches([], str(path), 1)) == [[problem] for problem in problems]


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.csv", "question,id\n3个,a\n,b\n"), ("x.jsonl", '{"question": "3个"}\n{"question": null}\n')],
)
def test_record_without_text_does_not_stop_the_others(solver_folder, tmp_path, answers_of, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    first, second = answers_of("--model", solver_folder, "--file", tmp_path / name)
    assert first["numbers"] == ["3"]
    assert second["answer"] is None
    assert "empty" in second["error"]


def test_lines_of_gzipped_text_are_problems(tmp_path):
    path = tmp_path / "x.txt.gz"
    content = gzip.compress("\ufeff3个\n\n有4个。\r\n".encode() + b"\xb0")
    path.write_bytes(content)
    ((*problems, broken),) = problem_batches([], str(path), 8)
    assert problems == [{"text": "3个"}, {"text": "有4个。"}]
    assert broken["text"] == "\ufffd"
    assert re.search(f"{path}, line 4.*UTF-8.*0xb0.* 0", broken["error"])
    path.write_bytes(content[:-9])
    with pytest.raises(DataError, match="x.txt.gz, line .: .*gzip"):
        list(problem_batches([], str(path), 8))


@pytest.mark.parametrize(("name", "content"), [("x.txt", "3个\r\n"), ("X.JSONL", '{"text": "3个"}\n')])
def test_files_in_utf_16(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-16")
    assert list(problem_batches([], str(tmp_path / name), 8)) == [[{"text": "3个"}]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("binary.txt", b"\xff\xfe\x00"),
        ("binary.jsonl", b"4 apples\n\x00\x01"),
        ("binary.txt.gz", gzip.compress(b"4 apples\n\x00\x01", mtime=0)),
        ("model.safetensors", b"\x10\0\0\0\0\0\0\0{}"),
    ],
)
def test_binary_file_is_named(solved_texts, tmp_path, error_of, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    error = error_of("solve", "--model=a", "--file", path)
    assert str(path) in error
    assert "text" in error


def test_folder_missing_file_and_both_sources_are_refused(solved_texts, tmp_path, error_of):
    argv = ["solve", "--model=a", "--file"]
    assert re.fullmatch(f"hf-mwp: --file: {tmp_path} .*folder.*", error_of(*argv, tmp_path))
    assert "none.txt" in error_of(*argv, tmp_path / "none.txt")
    assert "--file" in error_of(*argv, tmp_path / "none.txt", TEXT)


def test_folders_that_are_no_solver_are_named(solver_folder, encoder, tmp_path, error_of):
    def error(folder):
        return error_of("solve", "--model", folder, TEXT, "--runtime", "torch")

    assert "config.json" in error(tmp_path)
    assert "'bert'" in error(encoder)
    student = shutil.copytree(solver_folder, tmp_path / "run" / "student")
    assert str(student) in error(tmp_path / "run")
    (student / "mwp_processor.json").unlink()
    assert "mwp_processor.json" in error(student)
    (student / "model.safetensors").rename(student / "pytorch_model.bin")
    assert "pickle" in error(student)
    (student / "config.json").write_text("{", encoding="utf-8")
    assert "config.json is damaged" in error(student)
    assert "config.json" in error(student / "config.json")


def test_below_the_threshold_the_candidates_are_shown(solver_folder, output_of, answers_of):
    argv = ["--model", solver_folder, "--num_beams", 3, TEXT, "--confidence_threshold"]
    output = output_of("solve", *argv, 1)
    assert "Unsure" in output
    (answer,) = answers_of(*argv, 1)
    assert (answer["text"], answer["status"], answer["answer"]) == (TEXT, "unsure", None)
    assert len(answer["candidates"]) == 3
    for candidate in answer["candidates"]:
        assert candidate["equation"] in output
    assert output_of("solve", *argv, 0).count("probability") == 1


def test_numpy_has_no_devices(error_of):
    assert "--device" in error_of("solve", "--model=a", TEXT, "--runtime", "numpy", "--device", "cpu")


def test_without_pytorch_a_missing_model_is_named(error_of, monkeypatch):
    monkeypatch.setattr("hf_mwp.commands.solve.find_spec", lambda name: None)
    assert "missing/config.json does not exist" in error_of("solve", "--model", "missing", TEXT)


def test_file_is_solved_with_an_export(solver_folder, tmp_path, output_of, answers_of):
    output_of("export", "--model", solver_folder, "--output_dir", tmp_path / "out", "--quantize", "int8")
    (tmp_path / "x.tsv").write_text(f"id\ttext\n7\t{TEXT}\n", encoding="utf-8")
    (answer,) = answers_of("--model", tmp_path / "out", "--file", tmp_path / "x.tsv")
    assert (answer["id"], answer["numbers"]) == ("7", ["4", "2"])


@pytest.mark.slow
def test_processes_answer_as_one_process_does(solver_folder, tmp_path, answers_of, output_of):
    path = tmp_path / "problems.jsonl"
    rows = [{"id": number, "text": f"{number}个苹果和{number + 1}个梨{'，共几个？' * number}"} for number in range(6)]
    write_rows(path, [*rows, {"id": 6, "text": "4" * 200_000}])
    argv = ["--model", solver_folder, "--file", path]
    expected = answers_of(*argv, "--runtime", "numpy")
    assert [answer["id"] for answer in expected] == list(range(7))
    assert answers_of(*argv, "--processes", 2) == expected
    output = tmp_path / "answers.jsonl"
    assert "7 problems" in output_of("solve", *argv, "--processes", 2, "--output", output)
    assert [json.loads(line) for line in output.read_text("utf-8").splitlines()] == expected


@pytest.mark.parametrize(
    ("options", "gpu", "runtime"),
    [
        ({}, False, "numpy"),
        ({"device": "cpu"}, False, "torch"),
        ({"file": "problems.txt"}, False, "torch"),
        ({"file": "problems.txt", "processes": 2}, False, "numpy"),
        ({"file": "problems.txt", "processes": 2}, True, "torch"),
        ({"file": "problems.txt", "processes": 2, "runtime": "torch"}, False, "torch"),
    ],
)
def test_library_that_runs_the_model(solver_folder, monkeypatch, options, gpu, runtime):
    monkeypatch.setattr(solve_module, "has_gpu", lambda: gpu)
    assert solve_module._runtime(SolveArguments(model=str(solver_folder), **options)) == runtime


def test_library_for_a_model_that_the_runtime_does_not_support(tmp_path, monkeypatch):
    monkeypatch.setattr(solve_module, "has_gpu", lambda: False)
    assert solve_module._runtime(SolveArguments(model=str(tmp_path))) == "torch"
    assert solve_module._runtime(SolveArguments(model=str(tmp_path), file="problems.txt", processes=2)) == "torch"


@pytest.mark.slow
def test_error_in_a_process_is_the_error_of_the_command(solver_folder, tmp_path, error_of):
    (tmp_path / "problems.txt").write_text(f"{TEXT}\n{TEXT}\n", encoding="utf-8")
    argv = ["solve", "--model", tmp_path, "--runtime", "numpy", "--processes", 2]
    assert "config.json" in error_of(*argv, "--file", tmp_path / "problems.txt")


@pytest.mark.parametrize("source", [[], ["-"], ["--file", "-"]])
def test_standard_input_is_solved_by_one_process(source, error_of):
    assert "--file" in error_of("solve", "--model=a", "--processes=2", *source)


def test_python_solves_what_the_command_solves(solver_folder, tmp_path):
    args = SolveArguments(model=str(solver_folder), problems=[TEXT, NEXT_TEXT], top_k=2, num_beams=2)
    first, second = solve(args)
    assert first[0] == {"text": TEXT}
    assert [len(results) for _, results in (first, second)] == [2, 2]
    args.output = str(tmp_path / "answers.jsonl")
    assert solve_to_output(args) == 2
    lines = (tmp_path / "answers.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [TEXT, TEXT, NEXT_TEXT, NEXT_TEXT]


def test_file_of_weights_is_no_folder(solver_folder, error_of):
    error = error_of("solve", "--model", solver_folder / "model.safetensors", TEXT, "--runtime", "numpy")
    assert "Pass the folder of a saved solver" in error

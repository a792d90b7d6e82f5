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

from hf_mwp.commands.main import main
from hf_mwp.utils.run_folder import RunFolder


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


def run(capsys, *argv):
    status = main(["solve", *map(str, argv)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_arguments(solver_folder, capsys):
    status, shown, _ = run(capsys, "--model", solver_folder, TEXT, "每盒3个苹果，5盒一共有几个？")
    assert status == 0
    assert TEXT in shown and "每盒3个苹果" in shown
    assert shown.count("probability") == 2


@pytest.mark.parametrize("text", ["-5℃比3℃低多少度？", "-5+3=?", "-.5和-1.5的和是多少？"])
def test_an_argument_may_begin_with_a_negative_number(solver_folder, capsys, text):
    status, shown, _ = run(capsys, "--model", solver_folder, text, "--json")
    assert status == 0 and json.loads(shown)["text"] == text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_output_in_any_encoding(solver_folder, encoding, monkeypatch):
    text = "3个😀和4个苹果"
    for flags in ((), ("--json",)):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
        assert main(["solve", "--model", str(solver_folder), text, *flags]) == 0
        sys.stdout.flush()
        shown = written.getvalue().decode(encoding)
        assert json.loads(shown)["text"] == text if flags else "3" in shown
        assert (text in shown) == (encoding == "utf-8")


def test_two_runs_do_not_write_to_one_file(solver_folder, tmp_path, capsys):
    output = tmp_path / "answers.jsonl"
    with RunFolder(tmp_path / "answers.jsonl.unfinished"):
        status, _, error = run(capsys, "--model", solver_folder, TEXT, "--output", output)
        assert status == 1 and re.search("Another run writes to .*answers.jsonl.unfinished", error)
        assert not output.exists()
    assert run(capsys, "--model", solver_folder, TEXT, "--output", output)[0] == 0
    status, _, error = run(capsys, "--model", solver_folder, TEXT, "--output", output)
    assert status == 1 and "answers.jsonl already exists" in error
    assert [path.name for path in tmp_path.iterdir()] == ["answers.jsonl"]


def test_json_lines(solver_folder, capsys):
    status, shown, _ = run(capsys, "--model", solver_folder, "--json", TEXT, "没有数字")
    first, second = (json.loads(line) for line in shown.splitlines())
    assert status == 0
    assert first["text"] == TEXT and first["numbers"] == ["4", "2"]
    assert second["answer"] is None and "number" in second["error"]


def test_escape_sequences_are_shown_and_not_read(solver_folder, capsys, tmp_path, monkeypatch):
    written = TEXT.replace("4", "\x1b[31m4\x1b[0m").replace("？", "？\x9b\x07")
    status, shown, _ = run(capsys, "--model", solver_folder, written)
    assert status == 0 and not set("\x1b\x07\x9b") & set(shown)
    assert "\\x1b[31m4\\x1b[0m" in shown and "31" not in shown.replace("\\x1b[31m", "")
    _, shown, _ = run(capsys, "--model", solver_folder, "--json", written)
    assert not set("\x1b\x07\x9b") & set(shown)
    record = json.loads(shown)
    assert record["text"] == written and record["numbers"] == ["4", "2"]
    status, _, error = run(capsys, "--model", solver_folder, "--file", "\x1b[31mnone.txt")
    assert status == 1 and "\\x1b[31mnone.txt" in error and "\x1b" not in error


def test_tree_is_drawn_or_not(solver_folder, capsys, monkeypatch):
    from hf_mwp.runtime import RuntimeSolver

    result = {"answer": 1.75, "value": "7/4", "equation": "7/4", "prefix": ["/", "N0", "N1"], "numbers": ["7", "4"]}
    monkeypatch.setattr(RuntimeSolver, "__call__", lambda self, texts, **_: [[result | {"score": 0.5}]])
    _, shown, _ = run(capsys, "--model", solver_folder, TEXT)
    assert shown == f"{TEXT}\n  7/4 = 7/4 = 1.75   (probability 0.50)\n    /\n    ├── 7\n    └── 4\n\n"
    _, shown, _ = run(capsys, "--model", solver_folder, TEXT, "--no_tree")
    assert "├" not in shown


def test_text_file(solver_folder, tmp_path, capsys):
    path = tmp_path / "problems.txt"
    path.write_text(f"{TEXT}\n\n{TEXT}\n", encoding="utf-8")
    _, shown, _ = run(capsys, "--model", solver_folder, "--file", path, "--json", "--batch_size", 1)
    assert len(shown.splitlines()) == 2


def give(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


def test_standard_input(solver_folder, capsys, monkeypatch):
    give(monkeypatch, f"{TEXT}\n{TEXT}\n".encode())
    _, shown, _ = run(capsys, "--model", solver_folder, "--json")
    assert len(shown.splitlines()) == 2
    give(monkeypatch, b"\n")
    assert "no problem" in run(capsys, "--model", solver_folder)[2]


def test_a_line_that_is_not_utf_8_is_reported_in_its_place(solver_folder, tmp_path, capsys, monkeypatch):
    lines = [TEXT.encode(), "有4个\xff".encode("latin-1", "replace") + b"\xff", TEXT.encode()]
    give(monkeypatch, b"\n".join(lines))
    status, shown, _ = run(capsys, "--model", solver_folder, "--json")
    first, broken, last = (json.loads(line) for line in shown.splitlines())
    assert status == 0
    assert first["numbers"] == last["numbers"] == ["4", "2"]
    assert (broken["answer"], broken["equation"]) == (None, None)
    assert re.search("(?i)line 2.*UTF-8.*0xff.* 3", broken["error"])

    path = tmp_path / "problems.jsonl"
    path.write_bytes(b'{"text": "4 \xff"}\n{"id": "b", "text": "\\ud800 4"}\n{"text": "3 + 4"}\n')
    status, shown, _ = run(capsys, "--model", solver_folder, "--json", "--file", path)
    first, second, last = (json.loads(line) for line in shown.splitlines())
    assert re.search(f"{path}, line 1.*UTF-8.*0xff", first["error"])
    assert first["text"] == "4 \ufffd"
    assert (second["id"], second["text"]) == ("b", "\ud800 4") and "U+D800" in second["error"]
    assert last["numbers"] == ["3", "4"]

    _, shown, _ = run(capsys, "--model", solver_folder, "--file", path)
    # Lines are wrapped, where depends on the path.
    shown = " ".join(shown.split())
    assert shown.count("no answer: ") == 2 and "\\ud800 4" in shown and "line 1 " in shown


def test_a_pipe_is_answered_line_by_line(solver_folder, monkeypatch):
    # As in a process of its own: both ends of two pipes, whose buffers nobody empties but the command.
    (given, question), (answer, told) = (
        [open(end, mode, encoding="utf-8") for end, mode in zip(os.pipe(), "rw", strict=True)] for _ in range(2)
    )
    monkeypatch.setattr(sys, "stdin", given)
    monkeypatch.setattr(sys, "stdout", told)
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as open_ends:
        for end in (given, question, answer, told):
            open_ends.enter_context(contextlib.closing(end))
        status = pool.submit(main, ["solve", "--model", str(solver_folder), "--json"])
        status.add_done_callback(lambda _: told.close())
        for number in (3, 4):
            question.write(f"每盒{number}个苹果，5盒一共有几个？\n")
            question.flush()
            assert json.loads(answer.readline())["numbers"] == [str(number), "5"]
        # What waits is solved together, a last line without its end included.
        question.write("6个和7个\n8个和9个")
        question.close()
        assert [json.loads(line)["numbers"] for line in answer] == [["6", "7"], ["8", "9"]]
        assert status.result() == 0


def test_batches_are_the_lines_that_wait():
    from hf_mwp.solver.data.problem_lines import _waiting_batches

    class Pipe:
        def __init__(self, *pieces):
            self.pieces = list(pieces)

        def read1(self, size):
            return self.pieces.pop(0) if self.pieces else b""

    def texts(*pieces):
        return [[problem["text"] for problem in batch] for batch in _waiting_batches(Pipe(*pieces), 2)]

    assert texts(b"a\n", b"b\nc\nd\ne", b"f\n\n", b"g") == [["a"], ["b", "c"], ["d"], ["ef"], ["g"]]
    assert texts("每".encode()[:1], "每".encode()[1:] + b"\r\n") == [["每"]]
    assert texts(b"\xef\xbb\xbfa\n") == [["a"]]
    for encoding in ("utf-16-le", "utf-16-be"):
        content = "\ufeff每\r\n\n上\n".encode(encoding)  # 上 contains the byte of a line end
        assert texts(content[:5], content[5:]) == [["每", "上"]]


def test_a_line_that_is_too_long_is_told_in_its_place(solver_folder, tmp_path, capsys, monkeypatch):
    content = f"{TEXT}\n{'4' * 1_000_000}\n{TEXT}\n".encode()
    give(monkeypatch, content)
    path = tmp_path / "problems.txt"
    path.write_bytes(content)
    for argv in ((), ("--file", path)):
        status, shown, _ = run(capsys, "--model", solver_folder, "--json", *argv)
        first, long, last = (json.loads(line) for line in shown.splitlines())
        assert status == 0 and first["numbers"] == last["numbers"] == ["4", "2"]
        assert long["answer"] is None and "100,000 characters" in long["error"] and long["numbers"] == []


def test_a_pipe_without_line_ends_is_not_kept_in_memory():
    from hf_mwp.solver.data.problem_lines import _waiting_batches

    class Pipe:
        reads = 0

        def read1(self, size):
            self.reads += 1
            return b"\xe8\x8b\xb9" * 10_000 if self.reads < 500 else b"\n4\n" if self.reads == 500 else b""

    tracemalloc.start()
    ((first, last),) = _waiting_batches(Pipe(), 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
    assert "Line 1" in first["error"] and "100,000 characters" in first["error"]
    assert set(first["text"]) == {"苹"} and last == {"text": "4"}


def test_a_folder_is_no_file_of_problems(tmp_path, capsys):
    status, shown, error = run(capsys, "--model=a", "--file", tmp_path)
    assert (status, shown) == (1, "") and re.fullmatch(f"hf-mwp: --file: {tmp_path} .*folder.*\n", error)


@pytest.mark.parametrize("option", ["num_beams", "top_k", "batch_size"])
def test_counts_are_at_least_one(option, capsys):
    status, shown, error = run(capsys, "--model=a", f"--{option}=0", TEXT)
    assert (status, shown) == (1, "") and re.fullmatch(f"hf-mwp: solve: `{option}`.* 0.*\n", error)


def test_jsonl_file_keeps_ids(solver_folder, tmp_path, capsys):
    path = tmp_path / "problems.jsonl"
    path.write_text(json.dumps({"id": "a", "text": TEXT, "more": 1}) + "\n", encoding="utf-8")
    _, shown, _ = run(capsys, "--model", solver_folder, "--file", path, "--json", "--top_k", 2)
    records = [json.loads(line) for line in shown.splitlines()]
    assert [record["id"] for record in records] == ["a", "a"]
    assert "more" not in records[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"text": "1"}\n{"text": "2',
            "line 2: .*JSON.*column 10.*last line",
        ),
        ('{"text": "1"}\n{"text" 2}\n', "line 2: .*JSON"),
        ('{"words": "1"}\n', "line 1: .*The fields are words.*text=words"),
        ('{"text": 3}\n', "line 1: .*`text`"),
        ("[3]\n", "line 1: .*JSON object.* int"),
        ('{"text": "1"}\n[]\n', "line 2: .*JSON object.* list"),
    ],
)
def test_damaged_jsonl(solver_folder, tmp_path, capsys, content, message):
    path = tmp_path / "problems.jsonl"
    path.write_text(content, encoding="utf-8")
    status, _, error = run(capsys, "--model", solver_folder, "--file", path, "--batch_size", 1)
    assert status == 1
    assert re.search(f"{path}, {message}", error)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", '\ufeff{"question": "3个", "ID": "a"}\n\n{"body": "有4个。", "question": "共几个？"}\n'),
        ("x.json", '\n[{"text": "3个", "id": "a"},\n{"Body": "有4个。", "Question": "共几个？", "answer": 4}]\n'),
        ("x.csv", "id, text ,body\na,3个,\n,共几个？,有4个。\n"),
    ],
)
@pytest.mark.parametrize("gzipped", [False, True])
def test_files_of_records_are_read_as_the_data_sets_are(tmp_path, name, content, gzipped):
    from hf_mwp.solver.data.problem_lines import problem_batches

    path = tmp_path / f"{name}{'.gz' if gzipped else ''}"
    path.write_bytes(gzip.compress(content.encode()) if gzipped else content.encode())
    problems = [{"id": "a", "text": "3个"}, {"text": "有4个。 共几个？"}]
    assert list(problem_batches([], str(path), 1)) == [[problem] for problem in problems]


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.csv", "question,id\n3个,a\n,b\n"), ("x.jsonl", '{"question": "3个"}\n{"question": null}\n')],
)
def test_a_record_without_text_does_not_stop_the_others(solver_folder, tmp_path, capsys, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    status, shown, _ = run(capsys, "--model", solver_folder, "--file", tmp_path / name, "--json")
    first, second = map(json.loads, shown.splitlines())
    assert (status, first["numbers"]) == (0, ["3"])
    assert second["answer"] is None and "empty" in second["error"]


def test_lines_of_gzipped_text_are_problems(tmp_path):
    from hf_mwp.solver.data.data_error import DataError
    from hf_mwp.solver.data.problem_lines import problem_batches

    path = tmp_path / "x.txt.gz"
    content = gzip.compress("\ufeff3个\n\n有4个。\r\n".encode() + b"\xb0")
    path.write_bytes(content)
    ((*problems, broken),) = problem_batches([], str(path), 8)
    assert problems == [{"text": "3个"}, {"text": "有4个。"}]
    assert broken["text"] == "\ufffd" and re.search(f"{path}, line 4.*UTF-8.*0xb0.* 0", broken["error"])
    path.write_bytes(content[:-9])
    with pytest.raises(DataError, match="x.txt.gz, line .: .*gzip"):
        list(problem_batches([], str(path), 8))


@pytest.mark.parametrize(("name", "content"), [("x.txt", "3个\r\n"), ("X.JSONL", '{"text": "3个"}\n')])
def test_files_in_utf16(tmp_path, name, content):
    from hf_mwp.solver.data.problem_lines import problem_batches

    (tmp_path / name).write_text(content, encoding="utf-16")
    assert list(problem_batches([], str(tmp_path / name), 8)) == [[{"text": "3个"}]]


def test_no_text_file(solver_folder, tmp_path, capsys):
    assert "none.txt" in run(capsys, "--model", solver_folder, "--file", tmp_path / "none.txt")[2]
    path = tmp_path / "binary.txt"
    path.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in run(capsys, "--model", solver_folder, "--file", path)[2]
    for binary in (solver_folder / "model.safetensors", tmp_path / "binary.txt.gz", tmp_path / "binary.jsonl"):
        if not binary.exists():
            content = b"4 apples\n\x00\x01"
            binary.write_bytes(gzip.compress(content) if binary.suffix == ".gz" else content)
        status, shown, error = run(capsys, "--model", solver_folder, "--file", binary)
        assert (status, shown) == (1, "") and str(binary) in error and "text" in error
    assert "--file" in run(capsys, "--model", solver_folder, "--file", path, TEXT)[2]


def test_folders_that_are_no_solver(solver_folder, encoder, tmp_path, capsys):
    def error(folder):
        status, _, message = run(capsys, "--model", folder, TEXT, "--runtime", "torch")
        assert status == 1
        return message

    assert "config.json" in error(tmp_path)
    assert "'bert'" in error(encoder)
    nested = tmp_path / "run"
    shutil.copytree(solver_folder, nested / "student")
    assert str(nested / "student") in error(nested)
    weights = nested / "student" / "model.safetensors"
    whole = weights.read_bytes()
    for content in (b"", b"version https://git-lfs.github.com/spec/v1", whole[:-100]):
        weights.write_bytes(content)
        assert f"{weights} is damaged" in error(nested / "student")
    index = weights.rename(nested / "student" / "model.safetensors.index.json")
    index.write_text('{"weight_map": {"a', encoding="utf-8")
    assert "model.safetensors.index.json" in error(nested / "student")
    index.unlink()
    weights.write_bytes(whole)
    (nested / "student" / "mwp_processor.json").unlink()
    assert "mwp_processor.json" in error(nested / "student")
    (nested / "student" / "model.safetensors").unlink()
    assert "no weights" in error(nested / "student")
    (nested / "student" / "pytorch_model.bin").write_bytes(b"")
    assert "pickle" in error(nested / "student")
    (nested / "student" / "config.json").write_text("{", encoding="utf-8")
    assert "config.json is damaged" in error(nested / "student")
    assert "config.json" in error(nested / "student" / "config.json")


def test_below_min_score_the_candidates_are_shown(solver_folder, capsys):
    argv = ("--model", solver_folder, "--num_beams", 3, "--confidence_threshold", 1, TEXT)
    status, shown, _ = run(capsys, *argv)
    assert status == 0 and "Unsure" in shown
    _, line, _ = run(capsys, *argv, "--json")
    record = json.loads(line)
    assert (record["text"], record["status"], record["answer"]) == (TEXT, "unsure", None)
    assert [candidate["equation"] in shown for candidate in record["candidates"]] == [True] * 3
    assert run(capsys, "--model", solver_folder, "--confidence_threshold", 0, TEXT)[1].count("probability") == 1


@pytest.mark.parametrize("value", ["1.5", "-1", "nan"])
def test_min_score_is_a_probability(solver_folder, capsys, value):
    status, _, error = run(capsys, "--model", solver_folder, f"--confidence_threshold={value}", TEXT)
    assert status == 1 and re.search("`confidence_threshold`.*(a number| 0 .* 1)", error)


def test_both_runtimes_print_the_same(solver_folder, capsys):
    shown = []
    for runtime in ("numpy", "torch"):
        status, out, _ = run(capsys, "--model", solver_folder, TEXT, "--runtime", runtime, "--num_beams", 4)
        assert status == 0
        shown.append(out)
    assert shown[0] == shown[1]


def test_numpy_has_no_devices(solver_folder, capsys):
    status, _, error = run(capsys, "--model", solver_folder, TEXT, "--runtime", "numpy", "--device", "cpu")
    assert status == 1 and "--device" in error


def test_without_pytorch_a_missing_model_is_named(capsys, monkeypatch):
    monkeypatch.setattr("hf_mwp.commands.solve.find_spec", lambda name: None)
    status, _, error = run(capsys, "--model", "missing", TEXT)
    assert status == 1 and "missing/config.json does not exist" in error


def test_a_file_is_solved_with_an_export(solver_folder, tmp_path, capsys):
    assert (
        main(["export", "--model", str(solver_folder), "--output_dir", str(tmp_path / "out"), "--quantize", "int8"])
        == 0
    )
    (tmp_path / "x.tsv").write_text(f"id\ttext\n7\t{TEXT}\n", encoding="utf-8")
    status, shown, _ = run(capsys, "--model", tmp_path / "out", "--file", tmp_path / "x.tsv", "--json")
    answer = json.loads(shown.splitlines()[-1])
    assert status == 0 and (answer["id"], answer["numbers"]) == ("7", ["4", "2"])


def test_a_file_of_weights_is_no_folder(solver_folder, capsys):
    status, _, error = run(capsys, "--model", solver_folder / "model.safetensors", TEXT, "--runtime", "numpy")
    assert status == 1 and "Pass the folder of a saved solver" in error

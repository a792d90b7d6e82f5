"""The example script that collects further English training problems."""

import gzip
import json
import sys
from pathlib import Path

from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from tests.examples.scripts import load_script


DATA = Path(__file__).parents[1] / "fixtures"


def write_source(folder, name, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def row(id, text, context=None):
    fields = {"id": id, "original_text": text, "equation": "x=2+3", "ans": "5"}
    return fields if context is None else {**fields, "ctx": context}


def test_variants_of_held_out_problems_are_left_out(tmp_path, monkeypatch):
    held_out = problem_from_row(load_mwp_dataset("gsm8k", DATA)["test"][0])
    with_other_numbers = held_out.text
    for index, mention in reversed(list(enumerate(held_out.masked.mentions))):
        with_other_numbers = f"{with_other_numbers[: mention.start]}{index + 2}{with_other_numbers[mention.end :]}"
    module = load_script("english_data.py")
    for name in module.SOURCES:
        write_source(tmp_path, name, [row(f"{name}-1", f"Ann has 2 pens and 3 {name}. How many has she?")])
    variants = [row("v-1", with_other_numbers, "v"), row("v-2", "Ben reads 2 and 3 pages. How many?", "v")]
    write_source(tmp_path, "problemathic", [*variants, row("w-1", "Ivy reads 2 and 3 books. How many?", "w")])
    arguments = ["english_data.py", f"{tmp_path / 'new'}", f"--new_data={tmp_path}", f"--data_dir={DATA}"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--prices=5"])
    module.main()
    rows = load_mwp_dataset(tmp_path / "new")["train"]
    names = set(rows["id"])
    assert {"w-1", "mathwell-1", "prices-0", "prices-4"} <= names
    assert not names & {"v-1", "v-2", "paramawps-1"}
    assert set(rows["language"]) == {"en"}

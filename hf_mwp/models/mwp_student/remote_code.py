"""Folders with the code of students, which load without hf_mwp."""

import json
import shutil
from pathlib import Path


FILES = (*sorted(path.name for path in Path(__file__).parent.glob("*_mwp_student.py")), "remote_code.py")

AUTO_MAP = {
    "AutoConfig": "configuration_mwp_student.MwpStudentConfig",
    "AutoModel": "modeling_mwp_student.MwpStudentModel",
    "AutoModelForMaskedLM": "modeling_mwp_student.MwpStudentForMaskedLM",
    "AutoModelForPreTraining": "modeling_mwp_student.MwpStudentForPreTraining",
    "AutoModelForSequenceClassification": "modeling_mwp_student.MwpStudentForSequenceClassification",
}


def save_student_code(folder):
    """
    Add the student's code to a folder written by `save_pretrained`, and refer to it in the `config.json`, so that
    `trust_remote_code=True` loads the model without hf_mwp with each Auto class of the student. `save_pretrained` does
    this for pruned students. Raises `ValueError` if the folder has no `config.json` of a student.
    """
    folder = Path(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if config.get("model_type") != "mwp_student":
        raise ValueError(f"{folder} contains no mwp_student. Call `student.save_pretrained(folder)` first.")
    for name in FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    name_code(path, AUTO_MAP)


def name_code(path, auto_map):
    """Write to a `config.json` which file and class beside it each Auto class loads."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config["auto_map"] = {**config.get("auto_map", {}), **auto_map}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")

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
    "AutoModelForTokenClassification": "task_heads_mwp_student.MwpStudentForTokenClassification",
    "AutoModelForQuestionAnswering": "task_heads_mwp_student.MwpStudentForQuestionAnswering",
    "AutoModelForMultipleChoice": "task_heads_mwp_student.MwpStudentForMultipleChoice",
}


def save_student_code(folder):
    """
    Add the student's code to a folder written by `save_pretrained`, and refer to it in the `config.json`, so that
    `trust_remote_code=True` loads the model without hf_mwp with each Auto class of the student. `save_pretrained` does
    this; call it for folders of earlier versions. Raises `ValueError` if the folder has no `config.json` of a student.
    """
    folder = Path(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if config.get("model_type") != "mwp_student":
        raise ValueError(f"{folder} contains no mwp_student. Call `student.save_pretrained(folder)` first.")
    for name in FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    name_code(path, AUTO_MAP, refuse_class(config))


def refuse_class(config):
    """
    Return a field for the `config.json` of a student that was converted from an encoder of Transformers, or no field.
    Because of it, `from_pretrained` of the encoder's class raises an error, instead of ignoring all weights because
    their names differ: if a folder has a model of another type, the class looks for an inner configuration of its own
    type, and its error shows the value of the wrong type.
    """
    if config.get("source_type") is None:
        return {}
    name = (config.get("architectures") or ["MwpStudentModel"])[0]
    auto_classes = {reference.partition(".")[2]: auto_class for auto_class, reference in AUTO_MAP.items()}
    auto_class = auto_classes.get(name, "AutoModel")
    sentence = (
        f"This folder contains a {name}, which was made from a model of type {config['source_type']!r} and has other "
        f"weights. Load it with {auto_class}.from_pretrained, after `import hf_mwp` or with trust_remote_code=True."
    )
    return {"stock_config": {"model_type": config["source_type"], "vocab_size": sentence}}


def share_weights(folder):
    """Give the weights in a folder the permissions of the config beside them. The safetensors library lets only the
    owner of a file read it."""
    config = Path(folder) / "config.json"
    if config.is_file():
        for path in config.parent.glob("*.safetensors"):
            path.chmod(config.stat().st_mode)


def name_code(path, auto_map, fields=()):
    """Write to a `config.json` which file and class beside it each Auto class loads, and further `fields`."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config["auto_map"] = {**config.get("auto_map", {}), **auto_map}
    config.update(fields)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")

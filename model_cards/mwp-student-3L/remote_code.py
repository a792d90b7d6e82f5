"""Folders which carry the student's code, so that they load where hf_mwp is not installed."""

import json
import shutil
from pathlib import Path


FILES = (
    "configuration_mwp_student.py",
    "conversion_mwp_student.py",
    "layers_mwp_student.py",
    "modeling_mwp_student.py",
    "remote_code.py",
)

AUTO_MAP = {
    "AutoConfig": "configuration_mwp_student.MwpStudentConfig",
    "AutoModel": "modeling_mwp_student.MwpStudentModel",
    "AutoModelForMaskedLM": "modeling_mwp_student.MwpStudentForMaskedLM",
    "AutoModelForPreTraining": "modeling_mwp_student.MwpStudentForPreTraining",
    "AutoModelForSequenceClassification": "modeling_mwp_student.MwpStudentForSequenceClassification",
}


def save_student_code(folder):
    """
    Adds the student's code to a folder written by `save_pretrained`, and to its `config.json` the entries which point
    to it: `trust_remote_code=True` then works without hf_mwp for each Auto class that a student is registered with.
    `save_pretrained` does this for students that were pruned; call it to publish another one.

    Args:
        folder (`str` or `os.PathLike`): Folder with the `config.json` of a student, encoder or task model.

    Raises:
        `ValueError`: if the folder has no `config.json` of a student.

    Example:

    ```python
    >>> student.save_pretrained("my-student")
    >>> save_student_code("my-student")
    ```"""
    folder = Path(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if config.get("model_type") != "mwp_student":
        raise ValueError(
            f"{folder} is no folder of a student (model_type 'mwp_student' in config.json): write it with "
            "`student.save_pretrained(folder)` first."
        )
    for name in FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    name_code(path, AUTO_MAP)


def name_code(path, auto_map):
    """Enters in a `config.json` (`pathlib.Path`) which file and class each Auto class finds beside it (`dict`)."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config["auto_map"] = {**config.get("auto_map", {}), **auto_map}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")

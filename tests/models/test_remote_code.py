import json
import os

import pytest
import torch
from transformers import AutoConfig, AutoModel

from hf_mwp.models.mwp_student import (
    MwpStudentConfig,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
    remote_code,
    save_student_code,
)
from hf_mwp.pruning import prune_heads, prune_neurons
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh


# Loads a folder with some Auto classes while hf_mwp cannot be imported, installed or not; prints the classes of the
# models and saves their outputs.
LOAD = """
import sys
import torch
import transformers

folder, target, *names = sys.argv[1:]
outputs = []
for name in names:
    model = getattr(transformers, name).from_pretrained(folder, trust_remote_code=True).eval()
    output = model(torch.arange(3, 11).unsqueeze(0))
    outputs.append((output.last_hidden_state if name == "AutoModel" else output.logits).detach())
    print(type(model).__name__)
model.set_attn_implementation("eager")
model.save_pretrained(target + "-saved")
assert "hf_mwp" not in sys.modules
torch.save(outputs, target)
"""

WHOLE = {"num_attention_heads": 2, "intermediate_size": 8}
INPUT_IDS = torch.arange(3, 11).unsqueeze(0)


def tiny_config(**fields):
    sizes = {"vocab_size": 20, "hidden_size": 12, "max_position_embeddings": 16, "head_dim": 6, "num_pos_tags": 3}
    counts = {"num_attention_heads": [2, 1, 0], "intermediate_size": [8, 0, 3]}
    return MwpStudentConfig(**sizes | counts | {"initializer_range": 0.3} | fields)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """
    Models whose folders carry their code, with the names of the classes and the outputs that a process without hf_mwp
    loaded from them, and from what it saved.
    """
    folder, models = tmp_path_factory.mktemp("published"), {}
    # Pruned: the first layer's other head is cut from what was a layer of two, the last one is left alone.
    models["encoder"] = prune_neurons(prune_heads(MwpStudentModel(tiny_config()).eval(), {0: [1]}), {0: [0, 5]})
    models["pretraining"] = MwpStudentForPreTraining(tiny_config(embedding_size=5)).eval()
    models["classifier"] = MwpStudentForSequenceClassification(tiny_config(num_labels=3)).eval()
    for name in ("encoder", "pretraining"):
        # They are pruned.
        models[name].save_pretrained(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        # Puts the class attributes back.
        for one_class, auto_class in (
            (MwpStudentConfig, "AutoConfig"),
            (MwpStudentForSequenceClassification, "AutoModelForSequenceClassification"),
        ):
            patch.setattr(one_class, "_auto_class", None)
            one_class.register_for_auto_class(auto_class)
        models["classifier"].save_pretrained(folder / "classifier")
    classifier, masked, pretraining = (
        f"AutoModelFor{task}" for task in ("SequenceClassification", "MaskedLM", "PreTraining")
    )
    loads = {
        "encoder": ("encoder", "AutoModel"),
        "again": ("encoder.pt-saved", "AutoModel", classifier),
        "pretraining": ("pretraining", "AutoModel", masked, pretraining, classifier),
        "classifier": ("classifier", classifier),
    }
    jobs = [
        (WITHOUT_HF_MWP + LOAD, folder / source, folder / f"{name}.pt", *kinds)
        for name, (source, *kinds) in loads.items()
    ]
    shown = run_fresh(folder, *jobs)
    outputs = [torch.load(folder / f"{name}.pt", weights_only=True) for name in loads]
    found = {name: (lines, each) for name, (lines, _), each in zip(loads, shown, outputs, strict=True)}
    return folder, models, found


def test_published_encoder_loads_without_hf_mwp(published):
    folder, models, found = published
    config = models["encoder"].config
    assert config.heads_per_layer == [1, 1, 0] and config.cut_heads == [[1], [], []]
    names, (hidden,) = found["encoder"]
    assert names == ["MwpStudentModel"]
    torch.testing.assert_close(hidden, models["encoder"](INPUT_IDS).last_hidden_state)
    # What the other process saved carries the code on, for every Auto class.
    saved = folder / "encoder.pt-saved"
    assert set(json.loads((saved / "config.json").read_text())["auto_map"]) == set(remote_code.AUTO_MAP)
    again, (hidden_again, _) = found["again"]
    assert again == [*names, "MwpStudentForSequenceClassification"]
    torch.testing.assert_close(hidden_again, hidden)


def test_published_pretraining_model_loads_with_every_auto_class(published):
    _, models, found = published
    names, outputs = found["pretraining"]
    assert names == [
        "MwpStudentModel",
        "MwpStudentForMaskedLM",
        "MwpStudentForPreTraining",
        "MwpStudentForSequenceClassification",
    ]
    expected = models["pretraining"](INPUT_IDS, output_hidden_states=True)
    torch.testing.assert_close(outputs[0], expected.hidden_states[-1])
    torch.testing.assert_close(outputs[1], expected.logits)
    torch.testing.assert_close(outputs[2], expected.logits)


def test_register_for_auto_class_makes_save_pretrained_copy_the_code(published):
    _, models, found = published
    names, (logits,) = found["classifier"]
    assert names == ["MwpStudentForSequenceClassification"]
    torch.testing.assert_close(logits, models["classifier"](INPUT_IDS).logits)


def test_installed_class_is_used_where_there_is_one(tmp_path):
    model = MwpStudentModel(tiny_config(**WHOLE)).eval()
    model.save_pretrained(tmp_path)
    save_student_code(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is MwpStudentModel
    assert torch.equal(loaded(INPUT_IDS).last_hidden_state, model(INPUT_IDS).last_hidden_state)
    # Saved elsewhere it has no code, and does not say it has.
    loaded.save_pretrained(tmp_path / "again")
    assert "auto_map" not in json.loads((tmp_path / "again" / "config.json").read_text())


@pytest.mark.parametrize(
    ("fields", "carries"),
    [
        (WHOLE, False),
        (WHOLE | {"num_attention_heads": [2, 1, 0]}, True),
        (WHOLE | {"intermediate_size": [8, 8, 3]}, True),
        # One head of each layer, which a config cannot tell from a model that never had more.
        (WHOLE | {"num_attention_heads": 1, "cut_heads": [[1], [0], [1]]}, True),
    ],
)
def test_what_is_pruned_carries_its_code(tmp_path, fields, carries):
    MwpStudentModel(tiny_config(**fields)).save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.glob("*.py")} == (set(remote_code.FILES) if carries else set())
    auto_map = json.loads((tmp_path / "config.json").read_text()).get("auto_map")
    assert auto_map == (remote_code.AUTO_MAP if carries else None)


def test_saving_code_keeps_the_config_and_can_be_repeated(tmp_path):
    config = tiny_config()
    config.save_pretrained(tmp_path)
    save_student_code(tmp_path)
    first = (tmp_path / "config.json").read_text()
    save_student_code(tmp_path)
    assert (tmp_path / "config.json").read_text() == first
    loaded = AutoConfig.from_pretrained(tmp_path)
    assert loaded.heads_per_layer == config.heads_per_layer
    assert json.loads(first)["auto_map"]["AutoModel"] == "modeling_mwp_student.MwpStudentModel"


@pytest.mark.parametrize("content", [None, "{}", '{"model_type": "bert"}'])
def test_saving_code_needs_the_folder_of_a_student(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match="mwp_student.*save_pretrained"):
        save_student_code(tmp_path)
    assert not list(tmp_path.glob("*.py"))


def test_code_list_is_complete():
    from transformers.dynamic_module_utils import get_relative_import_files

    needed = set()
    for reference in remote_code.AUTO_MAP.values():
        file = os.path.join(os.path.dirname(remote_code.__file__), reference.split(".")[0] + ".py")
        needed |= {os.path.basename(name) for name in (file, *get_relative_import_files(file))}
    assert needed == set(remote_code.FILES)

import json
import os

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
    BertModel,
)

from hf_mwp import DistillationConfig, DistillationTrainer
from hf_mwp.compress.models.mwp_student import (
    MwpStudentConfig,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
    remote_code,
    save_student_code,
)
from hf_mwp.compress.pruning import prune_heads, prune_neurons
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_tokenizer


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
    folder = tmp_path_factory.mktemp("published")
    models = {}
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
    # Saved elsewhere, it has the code of the installed class.
    loaded.save_pretrained(tmp_path / "again")
    assert {path.name for path in (tmp_path / "again").glob("*.py")} == set(remote_code.FILES)


@pytest.mark.parametrize(
    "fields", [WHOLE, WHOLE | {"num_attention_heads": [2, 1, 0]}, WHOLE | {"intermediate_size": [8, 8, 3]}]
)
def test_every_saved_student_carries_its_code(tmp_path, fields):
    MwpStudentModel(tiny_config(**fields)).save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.glob("*.py")} == set(remote_code.FILES)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["auto_map"] == remote_code.AUTO_MAP and "stock_config" not in config
    # The weights are as readable as the configuration.
    modes = {(tmp_path / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1


LOAD_TRAINED = """
import sys
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError

for folder in sys.argv[1:]:
    auto_class = transformers.AutoModelForSequenceClassification
    model = auto_class.from_pretrained(folder, trust_remote_code=True).eval()
    print(round(model(torch.arange(3, 11).unsqueeze(0)).logits.sum().item(), 4))
    try:
        transformers.BertForSequenceClassification.from_pretrained(folder)
    except StrictDataclassError as error:
        print(error)
assert "hf_mwp" not in sys.modules
"""


def test_a_distilled_student_loads_in_a_process_without_hf_mwp(tmp_path):
    teacher = tiny_classifier()
    student = MwpStudentForSequenceClassification.from_encoder(teacher, layers=1)
    arguments = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "max_steps": 1, "save_steps": 1}
    trainer = DistillationTrainer(
        model=student,
        teacher_model=teacher,
        args=DistillationConfig(str(tmp_path / "run"), **arguments),
        train_dataset=tiny_classifier_rows(),
        processing_class=tiny_tokenizer(),
    )
    trainer.train()
    trainer.save_model()
    student.save_pretrained(tmp_path / "saved")
    folders = [tmp_path / "run", tmp_path / "run" / "checkpoint-1", tmp_path / "saved"]
    assert len({(folder / "model.safetensors").stat().st_mode for folder in folders}) == 1
    [(lines, _)] = run_fresh(tmp_path, (WITHOUT_HF_MWP + LOAD_TRAINED, *folders))
    expected = round(student.eval()(INPUT_IDS).logits.sum().item(), 4)
    assert [float(line) for line in lines if line[-1].isdigit()] == [expected] * 3
    refusals = [line for line in lines if "AutoModelForSequenceClassification.from_pretrained" in line]
    assert len(refusals) == 3


@pytest.mark.parametrize("heads", [{0: [0]}, {0: [0], 1: [0]}])
@pytest.mark.parametrize("stock", [BertForSequenceClassification, BertModel])
def test_a_stock_class_names_the_auto_class_of_a_pruned_folder(tmp_path, heads, stock):
    prune_heads(tiny_classifier(), heads).save_pretrained(tmp_path)
    sentence = "MwpStudentForSequenceClassification.*AutoModelForSequenceClassification.from_pretrained.*import hf_mwp"
    with pytest.raises(StrictDataclassError, match=sentence):
        stock.from_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(loaded) is MwpStudentForSequenceClassification and not hasattr(loaded.config, "stock_config")
    assert loaded.config.source_type == "bert"


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

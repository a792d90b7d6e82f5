import json
import os

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, BertForSequenceClassification
from transformers.dynamic_module_utils import get_relative_import_files

from hf_mwp import DistillationConfig, DistillationTrainer
from hf_mwp.compress.models.mwp_student import (
    MwpStudentConfig,
    MwpStudentForMultipleChoice,
    MwpStudentForPreTraining,
    MwpStudentForQuestionAnswering,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
    remote_code,
    save_student_code,
)
from hf_mwp.compress.pruning import prune, prune_heads
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh
from tests.slow_parameters import slow_after
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
CLASSIFIER = "AutoModelForSequenceClassification"


def tiny_config(**fields):
    sizes = {"vocab_size": 20, "hidden_size": 12, "max_position_embeddings": 16, "head_dim": 6, "num_pos_tags": 3}
    counts = {"num_attention_heads": [2, 1, 0], "intermediate_size": [8, 0, 3]}
    return MwpStudentConfig(**sizes | counts | {"initializer_range": 0.3} | fields)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder and models of which a process without hf_mwp has loaded some, and saved one again."""
    folder = tmp_path_factory.mktemp("published")
    models = {
        # The other head of a layer of two is cut, and the layer without heads is left alone.
        "encoder": prune(MwpStudentModel(tiny_config()).eval(), {0: [1]}, {0: [0, 5]}),
        "pretraining": MwpStudentForPreTraining(tiny_config(embedding_size=5)).eval(),
        "classifier": MwpStudentForSequenceClassification(tiny_config(num_labels=3)).eval(),
    }
    models["encoder"].save_pretrained(folder / "encoder")
    models["pretraining"].save_pretrained(folder / "pretraining")
    with pytest.MonkeyPatch.context() as patch:
        # Puts the class attributes back.
        patch.setattr(MwpStudentConfig, "_auto_class", None)
        MwpStudentConfig.register_for_auto_class("AutoConfig")
        patch.setattr(MwpStudentForSequenceClassification, "_auto_class", None)
        MwpStudentForSequenceClassification.register_for_auto_class(CLASSIFIER)
        models["classifier"].save_pretrained(folder / "classifier")
    auto_classes = ["AutoModel", "AutoModelForMaskedLM", "AutoModelForPreTraining", CLASSIFIER]
    jobs = []
    for source, target, names in (
        ("encoder", "encoder.pt", ["AutoModel"]),
        ("encoder.pt-saved", "again.pt", ["AutoModel", CLASSIFIER]),
        ("pretraining", "pretraining.pt", auto_classes),
        ("classifier", "classifier.pt", [CLASSIFIER]),
    ):
        jobs.append((WITHOUT_HF_MWP + LOAD, folder / source, folder / target, *names))
    lines = [job_lines for job_lines, _ in run_fresh(folder, *jobs)]
    return folder, models, dict(zip(("encoder", "again", "pretraining", "classifier"), lines, strict=True))


def outputs_of(folder, name):
    return torch.load(folder / f"{name}.pt", weights_only=True)


@pytest.mark.slow
def test_published_encoder_loads_without_hf_mwp_and_is_saved_again(published):
    folder, models, class_names = published
    config = models["encoder"].config
    assert config.heads_per_layer == [1, 1, 0] and config.cut_heads == [[1], [], []]
    assert class_names["encoder"] == ["MwpStudentModel"]
    [hidden] = outputs_of(folder, "encoder")
    torch.testing.assert_close(hidden, models["encoder"](INPUT_IDS).last_hidden_state)
    # What the other process saved has the code for every Auto class.
    saved_config = json.loads((folder / "encoder.pt-saved" / "config.json").read_text())
    assert set(saved_config["auto_map"]) == set(remote_code.AUTO_MAP)
    assert class_names["again"] == ["MwpStudentModel", "MwpStudentForSequenceClassification"]
    torch.testing.assert_close(outputs_of(folder, "again")[0], hidden)


@pytest.mark.slow
def test_published_pretraining_model_loads_with_every_auto_class(published):
    folder, models, class_names = published
    tasks = ["Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification"]
    assert class_names["pretraining"] == [f"MwpStudent{task}" for task in tasks]
    outputs = outputs_of(folder, "pretraining")
    expected = models["pretraining"](INPUT_IDS, output_hidden_states=True)
    torch.testing.assert_close(outputs[0], expected.hidden_states[-1])
    torch.testing.assert_close(outputs[1], expected.logits)
    torch.testing.assert_close(outputs[2], expected.logits)


@pytest.mark.slow
def test_register_for_auto_class_copies_the_code(published):
    folder, models, class_names = published
    assert class_names["classifier"] == ["MwpStudentForSequenceClassification"]
    torch.testing.assert_close(outputs_of(folder, "classifier")[0], models["classifier"](INPUT_IDS).logits)


@pytest.mark.parametrize(
    "fields", [WHOLE, WHOLE | {"num_attention_heads": [2, 1, 0]}, WHOLE | {"intermediate_size": [8, 8, 3]}]
)
def test_every_saved_student_has_its_code_beside_it(fields, tmp_path):
    MwpStudentModel(tiny_config(**fields)).save_pretrained(tmp_path / "first")
    loaded = AutoModel.from_pretrained(tmp_path / "first")
    assert type(loaded) is MwpStudentModel
    loaded.save_pretrained(tmp_path / "second")
    for folder in (tmp_path / "first", tmp_path / "second"):
        assert {path.name for path in folder.glob("*.py")} == set(remote_code.FILES)
        config = json.loads((folder / "config.json").read_text())
        assert config["auto_map"] == remote_code.AUTO_MAP and "stock_config" not in config
        # The weights are as readable as the configuration.
        assert (folder / "config.json").stat().st_mode == (folder / "model.safetensors").stat().st_mode


LOAD_TRAINED = """
import sys
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError

for folder in sys.argv[1:]:
    auto_class = transformers.AutoModelForSequenceClassification
    model = auto_class.from_pretrained(folder, trust_remote_code=True).eval()
    print(model(torch.arange(3, 11).unsqueeze(0)).logits.sum().item())
    try:
        transformers.BertForSequenceClassification.from_pretrained(folder)
    except StrictDataclassError as error:
        assert "AutoModelForSequenceClassification.from_pretrained" in str(error)
    else:
        raise AssertionError(folder)
assert "hf_mwp" not in sys.modules
"""


@pytest.mark.slow
def test_distilled_student_loads_without_hf_mwp(tmp_path):
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
    folders = [tmp_path / "run", tmp_path / "run" / "checkpoint-1"]
    assert len({(folder / "model.safetensors").stat().st_mode for folder in folders}) == 1
    [(lines, _)] = run_fresh(tmp_path, (WITHOUT_HF_MWP + LOAD_TRAINED, *folders))
    expected = student.eval()(INPUT_IDS).logits.sum().item()
    assert [float(line) for line in lines] == pytest.approx([expected] * 2, abs=1e-4)


LOAD_HEADS = """
import sys
import torch
import transformers

target, *folders = sys.argv[1:]
outputs = []
for folder in folders:
    auto_class = getattr(transformers, "AutoModel" + folder.rpartition("/")[2])
    model = auto_class.from_pretrained(folder, trust_remote_code=True).eval()
    shape = (1, 2, 4) if folder.endswith("Choice") else (1, 8)
    outputs.append(model(torch.arange(3, 11).view(shape))[0].detach())
    print(type(model).__name__)
assert "hf_mwp" not in sys.modules
torch.save(outputs, target)
"""


@pytest.mark.slow
def test_students_with_heads_load_without_hf_mwp(tmp_path):
    classes = (MwpStudentForTokenClassification, MwpStudentForQuestionAnswering, MwpStudentForMultipleChoice)
    folders = []
    expected = []
    for model_class in classes:
        # Heads and neurons are counted in each layer.
        model = model_class(tiny_config(num_labels=3)).eval()
        folders.append(tmp_path / model_class.__name__.removeprefix("MwpStudent"))
        model.save_pretrained(folders[-1])
        inputs = INPUT_IDS.view(1, 2, 4) if model_class is MwpStudentForMultipleChoice else INPUT_IDS
        expected.append(model(inputs)[0].detach())
    target = tmp_path / "outputs.pt"
    [(lines, _)] = run_fresh(tmp_path, (WITHOUT_HF_MWP + LOAD_HEADS, target, *folders))
    assert lines == [model_class.__name__ for model_class in classes]
    for output, values in zip(torch.load(target, weights_only=True), expected, strict=True):
        torch.testing.assert_close(output, values)


@pytest.mark.parametrize("heads", slow_after(1, [{0: [0]}, {0: [0], 1: [0]}]))
def test_stock_class_names_the_auto_class_of_a_pruned_folder(heads, tmp_path):
    prune_heads(tiny_classifier(), heads).save_pretrained(tmp_path)
    sentence = "MwpStudentForSequenceClassification.*AutoModelForSequenceClassification.from_pretrained.*import hf_mwp"
    with pytest.raises(StrictDataclassError, match=sentence):
        BertForSequenceClassification.from_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert type(loaded) is MwpStudentForSequenceClassification and not hasattr(loaded.config, "stock_config")
    assert loaded.config.source_type == "bert"


def test_saving_code_can_be_repeated(tmp_path):
    config = tiny_config()
    config.save_pretrained(tmp_path)
    save_student_code(tmp_path)
    first = (tmp_path / "config.json").read_text()
    save_student_code(tmp_path)
    assert (tmp_path / "config.json").read_text() == first
    assert AutoConfig.from_pretrained(tmp_path).heads_per_layer == config.heads_per_layer
    assert json.loads(first)["auto_map"]["AutoModel"] == "modeling_mwp_student.MwpStudentModel"


@pytest.mark.parametrize("content", [None, "{}", '{"model_type": "bert"}'])
def test_saving_code_needs_the_folder_of_a_student(content, tmp_path):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match="mwp_student.*save_pretrained"):
        save_student_code(tmp_path)
    assert not list(tmp_path.glob("*.py"))


def test_list_of_code_files_is_complete():
    needed = set()
    for reference in remote_code.AUTO_MAP.values():
        file = os.path.join(os.path.dirname(remote_code.__file__), reference.split(".")[0] + ".py")
        needed.add(os.path.basename(file))
        needed |= {os.path.basename(path) for path in get_relative_import_files(file)}
    assert needed == set(remote_code.FILES)

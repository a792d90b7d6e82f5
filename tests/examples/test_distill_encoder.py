"""The example that distils an encoder on raw text, with a tiny teacher and a tiny file."""

from transformers import AutoModel, BertModel

from hf_mwp.compress.models import MwpStudentModel
from tests.examples.scripts import load_script
from tests.tiny import tiny_bert_config, tiny_rows, tiny_tokenizer


def test_narrow_encoder_is_distilled_on_a_text_file(tmp_path, capsys):
    teacher = tmp_path / "teacher"
    corpus = tmp_path / "texts.txt"
    output = tmp_path / "out"
    tokenizer = tiny_tokenizer()
    BertModel(tiny_bert_config(num_hidden_layers=4, vocab_size=len(tokenizer))).save_pretrained(teacher)
    tokenizer.save_pretrained(teacher)
    corpus.write_text("\n".join(row["text"] for row in tiny_rows(24)), encoding="utf-8")
    sizes = ["--layers", "2", "--hidden_size", "8", "--heads", "2", "--max_length", "16"]
    training = ["--num_train_epochs", "1", "--use_cpu", "true", "--validation_fraction", "0.25"]
    argv = ["--teacher", str(teacher), "--corpus", str(corpus), "--output_dir", str(output), *sizes, *training]
    assert load_script("distill_encoder.py").main(argv) == 0
    assert 0 < float(capsys.readouterr().out.split("loss ")[-1].rstrip(".\n")) < 3
    student = AutoModel.from_pretrained(output)
    assert isinstance(student, MwpStudentModel)
    assert (student.config.num_hidden_layers, student.config.hidden_size) == (2, 8)

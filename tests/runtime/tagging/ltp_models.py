"""Small LTP models of both kinds, made on the spot: nothing of LTP is downloaded or shipped."""

import json

import torch


SENTENCES = [
    "小明/nh 有/v 4/m 个/q 苹果/n ，/wp 一共/d 有/v 多少/r 个/q 水果/n ？/wp",
    "甲/nh 乙/nh 两/m 地/n 相距/v 80/m 千米/q 。/wp",
    "用/v 去/v (3/8)/m 吨/q 水泥/n",
]


def make_legacy_model(folder):
    """Trains LTP's perceptrons on three sentences; takes milliseconds."""
    from ltp_extension.perceptron import CWSTrainer, POSTrainer

    folder.mkdir(parents=True)
    words = []
    tags = set()
    for sentence in SENTENCES:
        pairs = [pair.rsplit("/", 1) for pair in sentence.split()]
        words.append(" ".join(word for word, _ in pairs))
        tags.update(tag for _, tag in pairs)
    train_perceptron(CWSTrainer(), words, folder / "cws_model.bin")
    train_perceptron(POSTrainer(labels=sorted(tags)), SENTENCES, folder / "pos_model.bin")
    tasks = {"cws": "cws_model.bin", "pos": "pos_model.bin"}
    (folder / "config.json").write_text(json.dumps({"nerual": False, "tasks": tasks}))
    return folder


def train_perceptron(trainer, lines, path):
    data = path.with_suffix(".train")
    data.write_text("\n".join(lines * 3) + "\n", encoding="utf-8")
    trainer.epoch = 8
    trainer.verbose = False
    trainer.shuffle = False
    trainer.eval_threads = 1
    trainer.load_train_data(str(data))
    trainer.load_eval_data(str(data))
    trainer.train().save(str(path))
    data.unlink()


def make_neural_model(folder):
    """A neural model with random weights, in the files of a published one."""
    from ltp_core.models.utils import instantiate

    folder.mkdir(parents=True)
    characters = sorted(set("".join(SENTENCES)))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    backbone = {
        "model_type": "electra",
        "vocab_size": len(vocabulary),
        "hidden_size": 16,
        "embedding_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    heads = {}
    processors = {}
    for task, labels, processor in (("cws", 2, "TokenOnly"), ("pos", 4, "WordsOnly")):
        head = {"_ltp_target_": "ltp_core.models.components.token.MLPTokenClassifier"}
        heads[task] = head | {"input_size": 16, "num_labels": labels}
        processors[task] = {"_ltp_target_": f"ltp_core.models.processor.{processor}"}
    model = {
        "_ltp_target_": "ltp_core.models.ltp_model.LTPModule",
        "backbone": {"_ltp_target_": "ltp_core.models.utils.transformer.load_transformers", "config": backbone},
        "heads": heads,
        "processor": processors,
    }
    torch.manual_seed(0)
    torch.save(instantiate(model).state_dict(), folder / "pytorch_model.bin")
    config = {"nerual": True, "model": model, "vocabs": {"pos": ["n", "v", "m", "wp"]}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder

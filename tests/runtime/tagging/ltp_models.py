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

    pairs = [[tuple(word.rsplit("/", 1)) for word in sentence.split()] for sentence in SENTENCES] * 3
    lines = {
        "cws": [" ".join(word for word, _ in sentence) for sentence in pairs],
        "pos": [" ".join(f"{word}/{tag}" for word, tag in sentence) for sentence in pairs],
    }
    trainers = {"cws": CWSTrainer(), "pos": POSTrainer(labels=sorted({tag for each in pairs for _, tag in each}))}
    folder.mkdir(parents=True)
    for task, trainer in trainers.items():
        data = folder / f"{task}.train"
        data.write_text("\n".join(lines[task]) + "\n", encoding="utf-8")
        trainer.epoch, trainer.verbose, trainer.shuffle, trainer.eval_threads = 8, False, False, 1
        trainer.load_train_data(str(data))
        trainer.load_eval_data(str(data))
        trainer.train().save(str(folder / f"{task}_model.bin"))
        data.unlink()
    tasks = {task: f"{task}_model.bin" for task in trainers}
    (folder / "config.json").write_text(json.dumps({"nerual": False, "tasks": tasks}))
    return folder


def make_neural_model(folder):
    """A neural model with random weights, in the files of a published one."""
    from ltp_core.models.utils import instantiate

    folder.mkdir(parents=True)
    characters = sorted({character for sentence in SENTENCES for character in sentence})
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
    model = {
        "_ltp_target_": "ltp_core.models.ltp_model.LTPModule",
        "backbone": {"_ltp_target_": "ltp_core.models.utils.transformer.load_transformers", "config": backbone},
        "heads": {
            task: {
                "_ltp_target_": "ltp_core.models.components.token.MLPTokenClassifier",
                "input_size": 16,
                "num_labels": labels,
            }
            for task, labels in (("cws", 2), ("pos", 4))
        },
        "processor": {
            "cws": {"_ltp_target_": "ltp_core.models.processor.TokenOnly"},
            "pos": {"_ltp_target_": "ltp_core.models.processor.WordsOnly"},
        },
    }
    torch.manual_seed(0)
    torch.save(instantiate(model).state_dict(), folder / "pytorch_model.bin")
    config = {"nerual": True, "model": model, "vocabs": {"pos": ["n", "v", "m", "wp"]}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder

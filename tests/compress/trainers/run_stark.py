"""
Finds sparse teachers of tiny classifiers. Not a test; tests start it in processes of its own. Fields of a run:
`output_dir`, and `args` of the config.
"""

from hf_mwp.compress.models import MwpStudentForSequenceClassification
from hf_mwp.compress.trainers import StarkConfig, StarkTrainer
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import QUIET, pad
from tests.tiny import tiny_classifier_rows


FIELDS = QUIET | {
    "sparsities": [0.25, 0.5],
    "num_train_epochs": 2,
    "per_device_train_batch_size": 4,
    "learning_rate": 1e-2,
    "score_batch_size": 4,
    "logging_steps": 1,
}


def arguments(folder, **fields):
    return StarkConfig(output_dir=str(folder), **(FIELDS | fields))


def teacher_and_student():
    # BERT notes its kind of problem when it is first called, which would change its hash.
    teacher = tiny_encoder("bert", "ForSequenceClassification", problem_type="single_label_classification")
    return teacher, MwpStudentForSequenceClassification.from_encoder(teacher, layers=1)


def classifier_trainer(folder, fields=None, **changes):
    """A trainer of a classifier of one layer; `changes` are arguments of the trainer."""
    teacher, student = teacher_and_student()
    keywords = {
        "model": student,
        "teacher_model": teacher,
        "data_collator": pad,
        "train_dataset": tiny_classifier_rows(8),
        "eval_dataset": tiny_classifier_rows(10, seed=1),
    }
    return StarkTrainer(args=arguments(folder, **(fields or {})), **(keywords | changes))


def train(run):
    """One run, whose best student is evaluated and saved."""
    trainer = classifier_trainer(run["output_dir"], run["args"])
    trainer.train()
    trainer.save_metrics("eval", trainer.evaluate())
    trainer.save_model()
    trainer.save_state()

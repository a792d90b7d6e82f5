"""Evaluation of models whose predictions cannot be compared one by one."""

from .training_rules import TrainingRules


class UnmatchedTrainingRules(TrainingRules):
    """Averages the losses of an evaluation over rows, as `Trainer` does: labels are texts or boxes."""

    loss_per_row = True

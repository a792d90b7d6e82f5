"""Early stopping that continues in a resumed run."""

from transformers import EarlyStoppingCallback


class ResumableEarlyStopping(EarlyStoppingCallback):
    """[`EarlyStoppingCallback`] that restores its counter, but not its patience, from a checkpoint."""

    def on_train_begin(self, args, state, control, **kwargs):
        super().on_train_begin(args, state, control, **kwargs)
        saved = state.stateful_callbacks.get(type(self).__name__) if state.global_step else None
        self.early_stopping_patience_counter = saved["attributes"]["early_stopping_patience_counter"] if saved else 0
        if self.early_stopping_patience_counter >= self.early_stopping_patience:
            control.should_training_stop = True

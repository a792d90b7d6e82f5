"""Publishing of a trainer's model, with its training options and metrics."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


# Function that imports what writes cards and uploads models, on first use. `hf_mwp/__init__.py` sets it.
load_hub: Callable[[], ModuleType] | None = None


class Publishing:
    """Mixin for trainers that publishes the files of [`push_solver_to_hub`] instead of the whole output folder."""

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Create the repository (private by default). A repository with different content is refused."""
        if self.is_world_process_zero():
            args = self.args
            name = args.hub_model_id or Path(args.output_dir).absolute().name
            private = args.hub_private_repo if private is None else private
            token = token or args.hub_token
            repository = load_hub().open_repository(name, private=private, revision=args.hub_revision, token=token)
            self.hub_model_id = repository.id
            self.push_in_progress = None

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        figures: Sequence[Any] | None = None,
        stages: Sequence[Any] | None = None,
        **card: Any,
    ) -> Any:
        """
        Save the model and publish the same files as [`push_solver_to_hub`]: card, configuration, one weight file in
        half precision, processor and run record. A new repository is private unless `private` or `hub_private_repo` is
        `False`. `figures` and `stages` of card and record are by default the last evaluation and the arguments.
        `card` are arguments of `Trainer.create_model_card`, see [`CardFields`]. Returns a [`~hub.Publication`], or
        with `blocking=False` its `Future`; `None` in all processes but the first.
        """
        hub = load_hub()
        fields = hub.CardFields(**card)
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        if self.hub_model_id is None:
            self.init_hf_repo(token, private)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        return hub.push_trainer(
            self,
            fields,
            figures,
            stages,
            revision=revision or self.args.hub_revision,
            commit_message=commit_message,
            token=token or self.args.hub_token,
            blocking=blocking,
        )

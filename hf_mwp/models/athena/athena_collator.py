"""Collator of encoded problems with gold plans (the candidates to score in training)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from transformers.utils import logging

from ...data.batches.mwp_collator import MwpCollator
from ...data.batches.mwp_processor import MwpProcessor
from ...expressions import ExpressionError
from .configuration_athena import AthenaConfig
from .gold_plan import GoldPlan, PlanMaker
from .plan_batch import PlanBatch


logger = logging.get_logger(__name__)
MAX_PLANS = 100_000
"""Maximum number of plans that a collator caches, of about a kilobyte each."""


class AthenaCollator(MwpCollator):
    """
    Collator that pads encoded problems, and adds their gold plans as `plans` and the mask of their candidates as
    `decoder_state_mask`. Each plan is made once.

    Problems without a plan stay in the batch but have no candidates: their targets cannot be written as a thought (an
    expression in ATHENA's form).

    Args:
        processor ([`MwpProcessor`]): Processor with the padding token and the symbols.
        config ([`AthenaConfig`]): Rules for thoughts.

    Attributes:
        skipped (`Counter`): Number of problems without a plan, by reason.
    """

    columns = (*MwpCollator.columns, "question_positions")
    # Neither changes the batches.
    not_settings = ("_plans", "skipped")

    def __init__(self, processor: MwpProcessor, config: AthenaConfig) -> None:
        super().__init__(processor, trees=False)
        self.maker = PlanMaker(config)
        self.skipped: Counter[str] = Counter()
        self._plans: dict[tuple, GoldPlan | None] = {}

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the batch of [`MwpCollator`] with `plans` ([`PlanBatch`]) and `decoder_state_mask`."""
        batch = super().__call__(features)
        if "labels" in batch:
            plans = [self.plan(feature) for feature in features]
            batch["plans"] = PlanBatch(plans, batch["number_positions"].shape[1])
            counts = torch.tensor([0 if plan is None else len(plan.kept) for plan in plans])
            batch["decoder_state_mask"] = torch.arange(batch["plans"].num_judged) < counts.unsqueeze(1)
        return batch

    def plan(self, feature: dict[str, Any]) -> GoldPlan | None:
        """Return the plan of an encoded problem, or `None` if its target cannot be written as a thought."""
        names = ("labels", "number_positions", "number_groups", "number_values")
        labels, positions, groups, values = (feature.get(name) for name in names)
        key = (*labels, None, *(at >= 0 for at in positions), None, *(groups or ()), None, *(values or ()))
        if key not in self._plans:
            try:
                plan = self.maker.make(labels, positions, groups, values)
            except ExpressionError as error:
                plan = None
                self.skipped[str(error)] += 1
                logger.warning_once(f"Problems are skipped if their target cannot be written as a thought: {error}.")
            if len(self._plans) >= MAX_PLANS:
                return plan
            self._plans[key] = plan
        return self._plans[key]

import torch

from hf_mwp.compress.distillation.features import label_mask


def test_positions_that_predict():
    labels = torch.tensor([[-100, 3, -100, 4], [2, -100, -100, -100]])
    assert label_mask({"labels": labels}, (2, 4), None).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    # Without labels it is the tokens, whichever they predict.
    mask = torch.tensor([[1, 1, 0]])
    assert label_mask({"attention_mask": mask}, (1, 3), None).tolist() == [[1, 1, 0]]

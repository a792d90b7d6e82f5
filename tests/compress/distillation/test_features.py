import torch

from hf_mwp.compress.distillation.features import label_mask


def test_labels_or_without_them_tokens_are_compared():
    labels = torch.tensor([[-100, 3, -100, 4], [2, -100, -100, -100]])
    assert label_mask({"labels": labels}, (2, 4), None).tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]
    mask = torch.tensor([[1, 1, 0]])
    assert label_mask({"attention_mask": mask}, (1, 3), None).tolist() == [[1, 1, 0]]

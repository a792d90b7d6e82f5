"""
Each loss as an obvious loop: slow, and the truth of the fast one.

They take the loss, lists of its tensors and a mask, and return its value and, where it has one, its `count`.
"""

import itertools
import math

import torch


def mean(values):
    return sum(values) / len(values)


def valid(mask):
    """The texts that have valid tokens, and which these are."""
    rows = [(row, [token for token in range(mask.shape[1]) if mask[row, token]]) for row in range(len(mask))]
    return [(row, kept) for row, kept in rows if kept]


def attention(loss, student, teacher, mask):
    combine = {"each": lambda x: x, "sum": lambda x: x.sum(1, True), "mean": lambda x: x.mean(1, True)}[loss.heads]
    (ours,), (theirs,) = map(combine, student), map(combine, teacher)
    pairs = [(row, one, other) for row, kept in valid(mask) for one, other in itertools.product(kept, kept)]
    heads = range(ours.shape[1])
    squares = [
        (ours[row, h, one, other] - theirs[row, h, one, other]) ** 2 for row, one, other in pairs for h in heads
    ]
    return mean(squares), len(pairs)


def hidden_mse(loss, student, teacher, mask):
    (ours,), (theirs,) = student, teacher
    return mean(
        [(ours[row, token] - theirs[row, token]).square().mean() for row, kept in valid(mask) for token in kept]
    )


def fsp(loss, student, teacher, mask):
    values = []
    for row, kept in valid(mask):
        flows = [
            sum(torch.outer(first[row, token], second[row, token]) for token in kept) / len(kept)
            for first, second in (student, teacher)
        ]
        values.append((flows[0] - flows[1]).square().mean())
    return mean(values), len(values)


def nst(loss, student, teacher, mask):
    values = []
    for row, kept in valid(mask):
        for one, other in itertools.product(kept, kept):
            ours, theirs = (
                each[0][row, one] @ each[-1][row, other] / each[0].shape[-1] for each in (student, teacher)
            )
            values.append((ours - theirs) ** 2)
    return mean(values), len(values)


def pkd(loss, student, teacher, mask):
    values = [
        (ours[row, kept[0]] / ours[row, kept[0]].norm() - theirs[row, kept[0]] / theirs[row, kept[0]].norm())
        .square()
        .sum()
        for row, kept in valid(mask)
        for ours, theirs in zip(student, teacher, strict=True)
    ]
    return mean(values), len(valid(mask))


def ckd_pairs(loss, student, teacher, mask):
    values = []
    for row, kept in valid(mask):
        for i, k in itertools.combinations(kept, 2):
            ours, theirs = (torch.cosine_similarity(x[row, i], x[row, k], dim=0) for (x,) in (student, teacher))
            values.append((ours - theirs) ** 2)
    return mean(values), len(values)


def ckd_triples(loss, student, teacher, mask):
    values = []
    for row, kept in valid(mask):
        for at in kept:
            near = [i for i in kept if i != at and abs(i - at) <= (loss.window or mask.shape[1])]
            for i, k in itertools.combinations(near, 2):
                ours, theirs = (
                    torch.cosine_similarity(x[row, i] - x[row, at], x[row, k] - x[row, at], dim=0)
                    for (x,) in (student, teacher)
                )
                values.append((ours - theirs) ** 2)
    return mean(values), len(values)


def relations(loss, student, teacher, mask):
    values = []
    for row, kept in valid(mask):
        for head in range(loss.heads):
            parts = [x[row, kept].chunk(loss.heads, -1)[head] for (x,) in (student, teacher)]
            ours, theirs = ((part @ part.T / math.sqrt(part.shape[-1])).softmax(-1) for part in parts)
            values += [(p * (p / q).log()).sum() for p, q in zip(theirs, ours, strict=True)]
    return mean(values)


def probabilities(loss, logits):
    weights = [math.exp(x / loss.temperature) for x in logits]
    return [weight / sum(weights) for weight in weights]


def divergence(theirs, ours):
    return sum(p * math.log(p / q) for p, q in zip(theirs, ours, strict=True))


def over_positions(loss, values, mask):
    total = loss.temperature**2 * sum(values)
    return total / (len(mask) if loss.reduction == "batchmean" else len(values))


def logits(loss, student, teacher, mask):
    places = [(row, place) for row, kept in valid(mask) for place in kept]
    pairs = [[probabilities(loss, x[at]) for (x,) in (teacher, student)] for at in places]
    divergences = {
        "forward": lambda theirs, ours: divergence(theirs, ours),
        "reverse": lambda theirs, ours: divergence(ours, theirs),
        "jsd": lambda theirs, ours: sum(divergence(p, mixed(0.5, theirs, ours)) for p in (theirs, ours)) / 2,
        "skew": lambda theirs, ours: divergence(theirs, mixed(loss.skew_alpha, theirs, ours)),
    }
    return over_positions(loss, [divergences[loss.direction](*pair) for pair in pairs], mask)


def mixed(alpha, theirs, ours):
    return [alpha * p + (1 - alpha) * q for p, q in zip(theirs, ours, strict=True)]


def dkd(loss, student, teacher, labels, mask):
    values = []
    for at in [(row, place) for row, kept in valid(mask) for place in kept]:
        right = labels[at].item()
        pairs = [probabilities(loss, x[at]) for (x,) in (teacher, student)]
        binary = [[p[right], 1 - p[right]] for p in pairs]
        spread = [[each / (1 - p[right]) for place, each in enumerate(p) if place != right] for p in pairs]
        values.append(loss.alpha * divergence(*binary) + loss.beta * divergence(*spread))
    return over_positions(loss, values, mask)


def rows(states, mask):
    """The valid tokens of a batch as centred rows, in fp64."""
    kept = torch.stack([states[row, token] for row, tokens in valid(mask) for token in tokens]).double()
    return kept - kept.mean(0)


def cka(loss, student, teacher, mask):
    (ours,), (theirs,) = student, teacher
    kernels = [rows(each, mask) @ rows(each, mask).T for each in (ours, theirs)]
    products = [(kernels[i] * kernels[j]).sum() for i, j in ((0, 1), (0, 0), (1, 1))]
    if loss.unbiased:
        products = [hsic_1(kernels[i], kernels[j]) for i, j in ((0, 1), (0, 0), (1, 1))]
    similarity = products[0] / math.sqrt(products[1] * products[2])
    return 1 - similarity if loss.squared else 1 - math.sqrt(max(similarity, 0.0))


def hsic_1(first, second):
    """Song et al. (2012), equation 4, as it is written."""
    n = len(first)
    one = torch.ones(len(first), dtype=first.dtype)
    first, second = (kernel - torch.diag(kernel.diagonal()) for kernel in (first, second))
    total = torch.trace(first @ second) + (one @ first @ one) * (one @ second @ one) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (one @ first @ second @ one)) / (n * (n - 3))


def of_unit_norm(student, teacher, mask):
    return [each / each.norm() for each in (rows(student[0], mask), rows(teacher[0], mask))]


def gram(loss, student, teacher, mask):
    ours, theirs = of_unit_norm(student, teacher, mask)
    return (ours @ ours.T - theirs @ theirs.T).norm() ** 2


def procrustes(loss, student, teacher, mask):
    ours, theirs = of_unit_norm(student, teacher, mask)
    return 2 - 2 * torch.linalg.svdvals(ours.T @ theirs).sum()


def cosine(loss, student, teacher, mask):
    (ours,), (theirs,) = student, teacher
    pairs = [(ours[row, token], theirs[row, token]) for row, kept in valid(mask) for token in kept]
    return mean([1 - ours @ theirs / (ours.norm() * theirs.norm()) for ours, theirs in pairs])

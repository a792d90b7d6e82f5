"""Each loss as an obvious loop over texts and tokens: slow references for the fast implementations."""

import itertools
import math

import torch


def texts_of(mask):
    """The row and the valid tokens of each text that has any."""
    texts = []
    for row, valid in enumerate(mask.bool()):
        tokens = valid.nonzero().flatten().tolist()
        if tokens:
            texts.append((row, tokens))
    return texts


def mean_square(values, other_values):
    """The mean squared difference between two lists of tensors."""
    return (torch.stack(values) - torch.stack(other_values)).square().mean()


def attention(loss, student, teacher, mask):
    return mean_square(attention_entries(loss, student, mask), attention_entries(loss, teacher, mask))


def attention_entries(loss, maps, mask):
    if loss.heads == "sum":
        maps = maps.sum(1, keepdim=True)
    if loss.heads == "mean":
        maps = maps.mean(1, keepdim=True)
    entries = []
    for row, tokens in texts_of(mask):
        for query, key in itertools.product(tokens, tokens):
            entries.append(maps[row, :, query, key])
    return entries


def hidden_mse(loss, student, teacher, mask):
    valid = mask.bool()
    return mean_square(list(student[valid]), list(teacher[valid]))


def fsp(loss, student, teacher, mask):
    return mean_square(flows(*student, mask), flows(*teacher, mask))


def flows(first, second, mask):
    matrices = []
    for row, tokens in texts_of(mask):
        total = 0
        for token in tokens:
            total = total + torch.outer(first[row, token], second[row, token])
        matrices.append(total / len(tokens))
    return matrices


def nst(loss, student, teacher, mask):
    return nst_of_two_layers(loss, (student, student), (teacher, teacher), mask)


def nst_of_two_layers(loss, student, teacher, mask):
    return mean_square(similarities(*student, mask), similarities(*teacher, mask))


def similarities(first, second, mask):
    products = []
    for row, tokens in texts_of(mask):
        for token, other_token in itertools.product(tokens, tokens):
            products.append(first[row, token] @ second[row, other_token] / first.shape[-1])
    return products


def pkd(loss, student, teacher, mask):
    student_states = first_directions(student, mask)
    teacher_states = first_directions(teacher, mask)
    # A sum over the width, not a mean.
    return mean_square(student_states, teacher_states) * student_states[0].numel()


def first_directions(layers, mask):
    directions = []
    for states in layers:
        for row, tokens in texts_of(mask):
            state = states[row, tokens[0]]
            directions.append(state / state.norm())
    return directions


def cosine_of(vector, other_vector):
    return vector @ other_vector / (vector.norm() * other_vector.norm())


def ckd_pairs(loss, student, teacher, mask):
    return mean_square(pair_cosines(student, mask), pair_cosines(teacher, mask))


def pair_cosines(states, mask):
    cosines = []
    for row, tokens in texts_of(mask):
        for token, other_token in itertools.combinations(tokens, 2):
            cosines.append(cosine_of(states[row, token], states[row, other_token]))
    return cosines


def ckd_triples(loss, student, teacher, mask):
    return mean_square(angles(loss, student, mask), angles(loss, teacher, mask))


def angles(loss, states, mask):
    window = loss.window or mask.shape[1]
    cosines = []
    for row, tokens in texts_of(mask):
        for vertex in tokens:
            neighbours = [token for token in tokens if 0 < abs(token - vertex) <= window]
            for token, other_token in itertools.combinations(neighbours, 2):
                edge = states[row, token] - states[row, vertex]
                other_edge = states[row, other_token] - states[row, vertex]
                cosines.append(cosine_of(edge, other_edge))
    return cosines


def relations(loss, student, teacher, mask):
    student_rows = relation_rows(loss, student, mask)
    teacher_rows = relation_rows(loss, teacher, mask)
    divergences = []
    for student_row, teacher_row in zip(student_rows, teacher_rows, strict=True):
        divergences.append(divergence(teacher_row, student_row))
    return sum(divergences) / len(divergences)


def relation_rows(loss, states, mask):
    rows = []
    for row, tokens in texts_of(mask):
        for head in states[row, tokens].chunk(loss.heads, -1):
            rows.extend((head @ head.T / math.sqrt(head.shape[-1])).softmax(-1))
    return rows


def divergence(probabilities, other_probabilities):
    return (probabilities * (probabilities / other_probabilities).log()).sum(-1)


def softened(loss, logits, mask):
    """The probabilities at the valid positions."""
    weights = (logits[mask.bool()] / loss.temperature).exp()
    return weights / weights.sum(-1, keepdim=True)


def over_positions(loss, divergences, mask):
    number = len(mask) if loss.reduction == "batchmean" else len(divergences)
    return loss.temperature**2 * divergences.sum() / number


def logits(loss, student, teacher, mask):
    student = softened(loss, student, mask)
    teacher = softened(loss, teacher, mask)
    middle = (student + teacher) / 2
    mixture = loss.skew_alpha * teacher + (1 - loss.skew_alpha) * student
    divergences = {
        "forward": divergence(teacher, student),
        "reverse": divergence(student, teacher),
        "jsd": (divergence(teacher, middle) + divergence(student, middle)) / 2,
        "skew": divergence(teacher, mixture),
    }
    return over_positions(loss, divergences[loss.direction], mask)


def dkd(loss, student, teacher, labels, mask):
    labels = labels[mask.bool()]
    student_binary, student_rest = decoupled(softened(loss, student, mask), labels)
    teacher_binary, teacher_rest = decoupled(softened(loss, teacher, mask), labels)
    binary = divergence(teacher_binary, student_binary)
    rest = divergence(teacher_rest, student_rest)
    return over_positions(loss, loss.alpha * binary + loss.beta * rest, mask)


def decoupled(probabilities, labels):
    """The probability of the right class against all others, and the distribution over the others."""
    binary = []
    rest = []
    for row, label in zip(probabilities, labels.tolist(), strict=True):
        binary.append(torch.stack([row[label], 1 - row[label]]))
        rest.append(torch.cat([row[:label], row[label + 1 :]]) / (1 - row[label]))
    return torch.stack(binary), torch.stack(rest)


def centred(states, mask):
    """The valid tokens of a batch as centred rows, in fp64."""
    rows = states[mask.bool()].double()
    return rows - rows.mean(0)


def cka(loss, student, teacher, mask):
    student = centred(student, mask)
    teacher = centred(teacher, mask)
    student_kernel = student @ student.T
    teacher_kernel = teacher @ teacher.T
    product = hsic_1 if loss.unbiased else inner_product
    scale = product(student_kernel, student_kernel) * product(teacher_kernel, teacher_kernel)
    similarity = product(student_kernel, teacher_kernel) / math.sqrt(scale)
    if loss.squared:
        return 1 - similarity
    return 1 - math.sqrt(max(similarity, 0.0))


def inner_product(kernel, other_kernel):
    return (kernel * other_kernel).sum()


def hsic_1(kernel, other_kernel):
    """Song et al. (2012), equation 4, as it is written."""
    n = len(kernel)
    one = torch.ones(n, dtype=kernel.dtype)
    first = kernel - torch.diag(kernel.diagonal())
    second = other_kernel - torch.diag(other_kernel.diagonal())
    total = torch.trace(first @ second) + (one @ first @ one) * (one @ second @ one) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * (one @ first @ second @ one)) / (n * (n - 3))


def unit_norm(states, mask):
    rows = centred(states, mask)
    return rows / rows.norm()


def gram(loss, student, teacher, mask):
    student = unit_norm(student, mask)
    teacher = unit_norm(teacher, mask)
    return (student @ student.T - teacher @ teacher.T).norm() ** 2


def procrustes(loss, student, teacher, mask):
    return 2 - 2 * torch.linalg.svdvals(unit_norm(student, mask).T @ unit_norm(teacher, mask)).sum()


def cosine(loss, student, teacher, mask):
    distances = []
    for row, tokens in texts_of(mask):
        for token in tokens:
            distances.append(1 - cosine_of(student[row, token], teacher[row, token]))
    return sum(distances) / len(distances)

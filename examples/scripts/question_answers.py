"""Answers to questions as parts of texts: their tokens, the best ones by the logits of a model, and their scores."""

import re
import string
from collections import Counter

import numpy as np


def answer_tokens(offsets, answers):
    """Return the first and last token of the first answer, or 0 (the first token) if it is not among the tokens."""
    if not answers["text"]:
        return 0, 0
    begin = answers["answer_start"][0]
    end = begin + len(answers["text"][0])
    inside = [token for token, (first, last) in enumerate(offsets) if first < end and last > begin]
    if not inside or offsets[inside[0]][0] > begin or offsets[inside[-1]][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def find_answers(logits, features, rows, max_answer_length, may_be_empty=False):
    """Return the answer to each question: the text from the best start to the best end in all parts of its text."""
    contexts = dict(zip(rows["id"], rows["context"], strict=True))
    best_scores = dict.fromkeys(contexts, -np.inf)
    empty_scores = dict.fromkeys(contexts, np.inf)
    answers = dict.fromkeys(contexts, "")
    for start_logits, end_logits, feature in zip(*logits, features, strict=True):
        question = feature["example_id"]
        offsets = np.array(feature["offset_mapping"])
        num_tokens = len(offsets)
        scores = start_logits[:num_tokens, None] + end_logits[None, :num_tokens]
        empty_scores[question] = min(empty_scores[question], scores[0, 0])
        lengths = np.arange(num_tokens)[None, :] - np.arange(num_tokens)[:, None]
        is_context = offsets[:, 0] >= 0
        is_allowed = is_context[:, None] & is_context & (lengths >= 0) & (lengths < max_answer_length)
        scores = np.where(is_allowed, scores, -np.inf)
        start, end = np.unravel_index(scores.argmax(), scores.shape)
        if scores[start, end] > best_scores[question]:
            best_scores[question] = scores[start, end]
            answers[question] = contexts[question][offsets[start, 0] : offsets[end, 1]]
    if may_be_empty:
        for question, score in best_scores.items():
            if empty_scores[question] > score:
                answers[question] = ""
    return answers


def words_of(text):
    """Return the words of an answer without articles and punctuation, in lower case."""
    text = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def answer_scores(answer, references):
    """Return exact match and F1 of an answer, compared with the most similar reference."""
    words = words_of(answer)
    exact_match = 0.0
    f1 = 0.0
    for reference in references or [""]:
        reference_words = words_of(reference)
        num_common = sum((Counter(words) & Counter(reference_words)).values())
        exact_match = max(exact_match, float(words == reference_words))
        f1 = max(f1, exact_match, 2 * num_common / max(len(words) + len(reference_words), 1))
    return exact_match, f1

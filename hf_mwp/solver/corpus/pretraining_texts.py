"""Functions that read texts of problems, without equations, for pretraining."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from hf_mwp.runtime.problems.text_keys import TextKeys
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.file_contents import RECORD_SUFFIXES, is_record_file, read_lines, read_records
from hf_mwp.solver.data.file_format import FileFormat
from hf_mwp.solver.data.mwp_loader import text_fields
from hf_mwp.solver.data.record import Record
from hf_mwp.solver.data.sources import LOADERS, read_part, split_name
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.control_characters import without_controls
from hf_mwp.utils.language import language_of


_TEXT_FILES = (".txt", ".txt.gz")
Sources = Iterable[str | Path] | str | Path


@checked
def read_texts(
    paths_or_names: Sources,
    exclude: Sources = (),
    language: str | None = None,
    data_dir: str | Path | None = None,
    counts: Counter | None = None,
    file_format: FileFormat | None = None,
) -> Iterator[str]:
    """Read the texts of files and datasets lazily, without control characters, surrounding white space, blank texts
    and duplicates, which differ only in numbers and white space (`MathWordProblem.masked_key`).

    A source is a `.txt` file with one problem per line; a `.jsonl`, `.json` or `.csv` file with a field `text` (or
    another name in `file_format.ALIASES`); a dataset of [`load_mwp_dataset`], of which the training split is read (in
    `exclude`, the validation and test splits); or a dataset with a split: `"ape210k:validation"`, `"cm17k:all"`. Files
    may be gzipped. Excluded texts are compared more loosely: punctuation, case, and digits or words for a number are
    ignored as well ([`~problems.text_keys.TextKeys`]).

    `language` (`"zh"` or `"en"`) is the language of number words, by default Chinese for a text with Chinese
    characters and English for others. `file_format` has the names of the fields, encoding and separator of files;
    usual names and encodings need none. `counts` receives the numbers of `"read"`, `"kept"`, `"duplicate"` and
    `"excluded"` texts. Raises `DataError` at once if a source does not exist, and during iteration, with file and
    line, if it is damaged.
    """
    texts = _open(paths_or_names, ("train",), data_dir, file_format)
    held_out = held_out_texts(exclude, data_dir, file_format)
    if counts is None:
        counts = Counter()
    return _read(texts, held_out, language, counts)


def held_out_texts(
    exclude: Sources, data_dir: str | Path | None = None, file_format: FileFormat | None = None
) -> Iterator[str]:
    """Return the texts of the sources in `exclude`. See [`read_texts`] for arguments and errors."""
    return _open(exclude, ("validation", "test"), data_dir, file_format)


def _read(texts: Iterator[str], held_out: Iterator[str], language: str | None, counts: Counter) -> Iterator[str]:
    excluded = set(map(loose_digest, held_out))
    seen: set[bytes] = set()
    for text in texts:
        key = masked_digest(text, language)
        counts["read"] += 1
        if excluded and loose_digest(text) in excluded:
            counts["excluded"] += 1
        elif key in seen:
            counts["duplicate"] += 1
        else:
            counts["kept"] += 1
            seen.add(key)
            yield text


def _open(
    sources: Sources, parts: Sequence[str], data_dir: str | Path | None, file_format: FileFormat | None = None
) -> Iterator[str]:
    """Check the sources, and return an iterator over their texts."""
    texts = []
    if isinstance(sources, str | Path):
        sources = [sources]
    for source in sources:
        if split_name(source)[0] in LOADERS:
            texts.append(_texts_of_rows(source, parts, data_dir))
        elif Path(source).is_file() and (is_record_file(source) or str(source).lower().endswith(_TEXT_FILES)):
            texts.append(_texts_of_file(Path(source), file_format or FileFormat()))
        else:
            endings = ", ".join(_TEXT_FILES[:1] + RECORD_SUFFIXES)
            raise DataError(
                f"not a text file. Pass a file that ends in {endings}, optionally followed by .gz, or one of the "
                f"datasets {', '.join(LOADERS)}, optionally with a split (ape210k:validation)",
                source,
            )
    return filter(None, map(str.strip, map(without_controls, chain.from_iterable(texts))))


def _texts_of_rows(source: str | Path, parts: Sequence[str], data_dir: str | Path | None) -> Iterator[str]:
    rows, _ = read_part(source, data_dir, parts=parts)
    for row in rows:
        yield row["text"]


def _texts_of_file(path: Path, file_format: FileFormat) -> Iterator[str]:
    if is_record_file(path):
        records = read_records(path, file_format=file_format)
    else:
        records = _line_records(path, file_format.encoding)
        file_format = FileFormat()
    for record in records:
        text = " ".join(map(record.text, text_fields(record, file_format)))
        if len(text) > MAX_TEXT_LENGTH:
            record.fail(TOO_LONG)
        yield text


def _line_records(path: Path, encoding: str | None) -> Iterator[Record]:
    for line, text in enumerate(read_lines(path, encoding), start=1):
        yield Record({"text": text}, str(path), line)


def masked_digest(text: str, language: str | None = None) -> bytes:
    """Return a hash of a text that ignores its numbers and white space."""
    key = MathWordProblem(text, language=language or language_of(text)).masked_key
    return blake2b(key.encode(), digest_size=8).digest()


def loose_digest(text: str) -> bytes:
    """Return a hash of the masked [`~problems.text_keys.TextKeys`] of a text, which is used to exclude texts."""
    return blake2b(TextKeys.of(text).masked.encode("utf-8", "surrogatepass"), digest_size=8).digest()

"""One file of tagged texts."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...problems.tagging.tagged_word import TaggedWord
from ..data_error import DataError


FORMAT = "hf_mwp tagged texts 1"
_FIELDS = {"format", "tagger", "fingerprint", "texts", "tags", "ends", "checksum"}
_UNFINISHED = ".part"
_ABANDONED_SECONDS = 3600

TaggedText = tuple[str, list[TaggedWord]]


def digest_texts(texts: Iterable[str]) -> str:
    """SHA-256 of texts in their order."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


class TaggedShard:
    """
    A file of texts with their tagged words. It is opened for each read, so that any number of processes may share it.

    The first line is a header: format, tagger and its fingerprint, digest of the texts, their tags, where each record
    ends, and a checksum of all. Each further line is a record, the text and the tag, start and end of its words.

    Args:
        path (`Path`):
            The file.

    Raises:
        DataError: if it is no such file, or its header is damaged.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with path.open("rb") as file:
                line = file.readline()
            header = json.loads(line) if line.endswith(b"\n") else {}
        except OSError as error:
            raise DataError(f"the tags cannot be read: {error.strerror or error}", path) from error
        except ValueError as error:
            raise DataError("no file of tagged texts, or damaged at its beginning", path) from error
        if not isinstance(header, dict) or header.get("format") != FORMAT or header.keys() != _FIELDS:
            raise DataError("no file of tagged texts of this version, or damaged at its beginning", path)
        self.header: dict[str, Any] = header
        self._begin = len(line)

    def __len__(self) -> int:
        return len(self.header["ends"])

    def __getitem__(self, index: int) -> TaggedText:
        ends = self.header["ends"]
        start = ends[index - 1] if index else 0
        return self._record(self._read(start, ends[index] - start), index)

    def __iter__(self) -> Iterator[TaggedText]:
        start = 0
        body = self._read(0, self.header["ends"][-1])
        for index, end in enumerate(self.header["ends"]):
            yield self._record(body[start:end], index)
            start = end

    def check(self, tagger: str, fingerprint: str, texts: Sequence[str] | None = None) -> None:
        """
        Reads the file whole.

        Args:
            tagger (`str`): The tagger that the tags have to be from.
            fingerprint (`str`): Its fingerprint.
            texts (`Sequence[str]`, *optional*): What has to be in it.

        Raises:
            DataError: if the file is damaged, cut off, or of another tagger or other texts.
        """
        made_by = (self.header["tagger"], self.header["fingerprint"])
        if made_by != (tagger, fingerprint):
            raise DataError(f"tags of {' '.join(made_by)}, not of {tagger} {fingerprint}", self.path)
        body = self._read(0, None)
        if _checksum(self.header, body) != self.header["checksum"]:
            raise DataError("damaged or cut off: its checksum is another", self.path)
        if texts is not None and self.header["texts"] != digest_texts(texts):
            raise DataError("tags of other texts", self.path)

    def _read(self, start: int, length: int | None) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(self._begin + start)
                content = file.read(length)
        except OSError as error:
            raise DataError(f"the tags cannot be read: {error.strerror or error}", self.path) from error
        return content

    def _record(self, content: bytes, index: int) -> TaggedText:
        try:
            text, flat = json.loads(content)
        except ValueError as error:
            raise DataError(
                "changed or cut off since it was opened: tag the corpus again, what is whole is kept",
                self.path,
                index + 2,
            ) from error
        tags, starts, ends = flat[::3], flat[1::3], flat[2::3]
        return text, [
            TaggedWord(text[start:end], self.header["tags"][tag], start, end)
            for tag, start, end in zip(tags, starts, ends, strict=True)
        ]


def write_shard(path: Path, tagger: str, fingerprint: str, texts: Sequence[str], words: Sequence[list[TaggedWord]]):
    """
    Writes a file of tagged texts whole or not at all: under another name first, renamed when it is on the disk.

    Args:
        path (`Path`): The file.
        tagger (`str`): The tagger's name.
        fingerprint (`str`): Its fingerprint.
        texts (`Sequence[str]`): The texts.
        words (`Sequence[list[TaggedWord]]`): Their words.

    Raises:
        OSError: if it cannot be written; nothing of it is left then.
    """
    tags = sorted({word.tag for each in words for word in each})
    ids = {tag: index for index, tag in enumerate(tags)}
    records, ends = [], []
    for text, each in zip(texts, words, strict=True):
        flat = [number for word in each for number in (ids[word.tag], word.start, word.end)]
        records.append(json.dumps([text, flat], ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        ends.append(len(records[-1]) + (ends[-1] if ends else 0))
    body = b"".join(records)
    header = {
        "format": FORMAT,
        "tagger": tagger,
        "fingerprint": fingerprint,
        "texts": digest_texts(texts),
        "tags": tags,
        "ends": ends,
    }
    header["checksum"] = _checksum(header, body)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{_UNFINISHED}")
    try:
        with unfinished.open("wb") as file:
            file.write(json.dumps(header, ensure_ascii=False).encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _checksum(header: dict[str, Any], body: bytes) -> str:
    """SHA-256 of a header, but for its checksum, and the records."""
    fields = json.dumps({name: value for name, value in header.items() if name != "checksum"}, sort_keys=True)
    return hashlib.sha256(fields.encode() + b"\n" + body).hexdigest()


def remove_abandoned(folder: Path) -> None:
    """Removes what a killed process had begun to write; a file of the last hour may be another process's."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        try:
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue

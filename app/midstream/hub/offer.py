"""The files of a repository on the hub that make up one model that runs here.

Repositories hold the same weights many times over, for browsers, graphics cards and phones. A
*variant* is one of them: a graph (``onnx/model_q4.onnx``) with the configuration at the root of the
repository, or a folder that ONNX Runtime GenAI's builder wrote (``cpu_and_mobile/cpu-int4...``).
Without a wish, the one that is cheapest to run on a CPU is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from midstream import __version__
from midstream.engine.folder import GRAPH_ORDER
from midstream.errors import UsageError
from midstream.hub.library import SECONDS, HubError, gated, hub_errors, hub_library

MAX_NOTICES: Final = 8
"""Files with a licence and the like that come along."""
_MAX_NAME_LENGTH: Final = 100
"""Characters of the name of such a file."""
_MAX_LISTING_BYTES: Final = 32 << 20
"""Limit on the hub's description of a repository, in bytes."""

_GENAI: Final = "genai_config.json"
_TEXTS: Final = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map)\.json"
    r"|chat_template\.jinja|midstream\.toml"
)
"""Files that a graph at the root needs."""

_NOTICES: Final = re.compile(r"(licen[cs]e|notice|readme|use_policy)(\..*)?", re.IGNORECASE)
_GENAI_PARTS: Final = re.compile(
    r".*\.(json|jinja|txt|model|onnx|data)|.*\.onnx[._]data.*|vocab|merges", re.IGNORECASE
)
"""Files that a folder of ONNX Runtime GenAI needs: configuration, tokenizer, graph and weights."""
_ELSEWHERE: Final = re.compile(
    r"gpu|cuda|directml|\bdml\b|npu|qnn|webgpu|\bweb\b|openvino|tensorrt"
)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file to download.

    Attributes:
        source: Its path in the repository.
        path: Its path in the model folder.
        size: Bytes.
        sha256: Its checksum, in hex; ``""`` for small files, which have another one.
        blob: SHA-1 of the file as a git object, in hex; small files are checked by it.
    """

    source: str
    path: str
    size: int
    sha256: str
    blob: str

    @property
    def verified(self) -> bool:
        """Whether the hub states a checksum."""
        return bool(self.sha256 or self.blob)


@dataclass(frozen=True, slots=True)
class Offer:
    """One variant of a repository.

    Attributes:
        repository: ``OWNER/NAME``.
        revision: The commit.
        license: What the repository states, ``"not stated"`` for nothing.
        variant: The graph or folder that was chosen.
        others: The other variants.
        files: What to download.
        address: The hub.
    """

    repository: str
    revision: str
    license: str
    variant: str
    others: tuple[str, ...]
    files: tuple[HubFile, ...]
    address: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def look_up(repository: str, *, variant: str | None = None, revision: str | None = None) -> Offer:
    """Ask the hub what a repository offers (blocking).

    Args:
        repository: ``OWNER/NAME``.
        variant: The graph or folder wanted; a file's or folder's own name suffices.
        revision: A branch, tag or commit; ``None`` for the newest.

    Raises:
        HubError: The hub does not answer, has no such repository, or it holds no model that runs.
        UsageError: There is no such variant.
    """
    from midstream.hub.bounds import hub_session

    api = hub_library().HfApi(library_name="midstream", library_version=__version__)
    with hub_errors(repository, api.endpoint), hub_session(api.endpoint, _MAX_LISTING_BYTES):
        info = api.model_info(repository, revision=revision, files_metadata=True, timeout=SECONDS)
        listed = [_file(sibling) for sibling in info.siblings or ()]
    files = {file.source: file for file in listed if _is_plain(file.source)}
    if info.gated and not files:
        raise HubError(*gated(repository, api.endpoint))
    chosen, others = _choose(repository, sorted(files), variant)
    return Offer(
        repository=repository,
        revision=info.sha or "main",
        license=_license(info),
        variant=chosen,
        others=others,
        files=tuple(_needed(repository, files, chosen)),
        address=api.endpoint,
    )


def _file(sibling: Any) -> HubFile:
    lfs = sibling.lfs
    return HubFile(
        source=sibling.rfilename,
        path=sibling.rfilename,
        size=int(sibling.size or (lfs.size if lfs else 0)),
        sha256=_checksum(lfs.sha256 if lfs else ""),
        blob=_checksum(sibling.blob_id or ""),
    )


def _checksum(text: str) -> str:
    """A checksum in the form in which it is compared and becomes part of a name; ValueError for
    anything else.
    """
    if not re.fullmatch("[0-9a-f]*", text.lower()):
        raise ValueError("no checksum")
    return text.lower()


def _is_plain(name: str) -> bool:
    """Whether a path can be shown, and stays inside the folder that it is put into."""
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or "\\" in name
    return name.isprintable() and not outside


def _license(info: Any) -> str:
    card = info.card_data
    stated = card.get("license_name") or card.get("license") if card is not None else None
    if not stated:
        tags = [tag for tag in info.tags or () if tag.startswith("license:")]
        stated = tags[0].removeprefix("license:") if tags else "not stated"
    return str(stated)


def _choose(
    repository: str, names: Iterable[str], wanted: str | None
) -> tuple[str, tuple[str, ...]]:
    """The variant to take, and the others, best first."""
    paths = [PurePosixPath(name) for name in names]
    folders = [str(path.parent) for path in paths if path.name == _GENAI]
    graphs = [
        str(path)
        for path in paths
        if path.suffix == ".onnx" and str(path.parent) in (".", "onnx") and "." not in folders
    ]
    ranked = sorted((*folders, *graphs), key=_rank)
    if not ranked:
        kinds = {path.suffix for path in paths} & {".safetensors", ".gguf", ".bin", ".onnx"}
        found = f" (it has {', '.join(sorted(kinds))} files)" if kinds else ""
        raise HubError(
            f"{repository} has no ONNX model in a supported layout{found}",
            "search the hub for the model's name with ONNX",
        )
    if wanted is None:
        return ranked[0], tuple(ranked[1:])
    wanted = wanted.strip("/")
    for name in ranked:
        if wanted in (name, PurePosixPath(name).name):
            return name, tuple(other for other in ranked if other != name)
    raise UsageError(f"{repository} has no variant {wanted}; it has {', '.join(ranked[:12])}.")


def _rank(variant: str) -> tuple[int, int, str]:
    """Sort key: what a CPU runs, then how cheaply."""
    path = PurePosixPath(variant)
    if path.suffix != ".onnx":
        return (9 if _ELSEWHERE.search(variant) else 0, 0 if "int4" in variant else 1, variant)
    known = path.name in GRAPH_ORDER
    return (1 if known else 8, GRAPH_ORDER.index(path.name) if known else 0, variant)


def _needed(repository: str, files: dict[str, HubFile], variant: str) -> Iterable[HubFile]:
    """The files of a variant, as they lie in the model folder."""
    chosen: dict[str, HubFile] = {}
    notices: dict[str, HubFile] = {}
    graph = PurePosixPath(variant)
    is_graph = graph.suffix == ".onnx"
    for name, file in files.items():
        path = PurePosixPath(name)
        beside = str(path.parent) == (str(graph.parent) if is_graph else variant)
        if str(path.parent) == "." and _NOTICES.fullmatch(path.name):
            if len(notices) < MAX_NOTICES and len(path.name) <= _MAX_NAME_LENGTH:
                notices.setdefault(path.name, file)
        elif is_graph and str(path.parent) == "." and _TEXTS.fullmatch(path.name):
            chosen[path.name] = file
        elif is_graph and beside and _is_part(path.name, graph):
            chosen[name] = file
        elif not is_graph and beside and _GENAI_PARTS.fullmatch(path.name):
            chosen[path.name] = file
    required = ["tokenizer.json", "config.json" if is_graph else _GENAI]
    for name in required:
        if name not in chosen:
            raise HubError(
                f"{repository} has no {name} for {variant}",
                "choose another repository of this model",
            )
    for path, file in sorted((notices | chosen).items()):
        yield HubFile(file.source, path, file.size, file.sha256, file.blob)


def _is_part(name: str, graph: PurePosixPath) -> bool:
    """Whether a file is a graph or its external data (see ``engine.folder.graph_files``)."""
    return name == graph.name or bool(
        re.match(rf"({re.escape(graph.name)}.data|{re.escape(graph.stem)}\.data)", name)
    )

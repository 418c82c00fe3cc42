"""File names as models write them above a block: headings, bold, code spans, fences, tags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_FENCE = re.compile(
    r"\s*(`{3,}|~{3,}|</?(?:source|code|pre|codename|sourcecode|diff|content)>)(.*)$"
)
_SHELL = re.compile(
    r"\s*(?:`{3,}|~{3,})\s*(?:bash|sh|shell|zsh|fish|ksh|csh|cmd|bat|batch|powershell|ps1|console|"
    r"shell-?session|terminal)\s*$"
)
_MENTION = re.compile(r"`([^`\s]+)`")
_TAG = re.compile(r"<(?:file_?)?path>(.*?)</(?:file_?)?path>")
_LABEL = re.compile(r"(?:file(?:name|path)?|path)\s*:\s*(?=\S)", re.IGNORECASE)
_COMMENT = re.compile(r"(?://|--|;|%|/\*|<!--)\s+")
_NUMBERED = re.compile(r"(?:\d{1,3}[.)]|[-*+])\s+")
_ATTRIBUTE = re.compile(r"\{?(?:title|name|path|file(?:_?(?:name|path))?)=", re.IGNORECASE)
_EXTENSION = re.compile(r"\.[A-Za-z0-9_+-]{1,12}$")
_BARE: Final = frozenset(
    {
        *("Makefile", "Dockerfile", "Containerfile", "Justfile", "Procfile", "Gemfile", "Rakefile"),
        *("Jenkinsfile", "Vagrantfile", "Pipfile", "Brewfile", "LICENSE", "README", "CHANGELOG"),
        *("AUTHORS", "CODEOWNERS"),
    }
)


def is_fence(line: str) -> bool:
    """Whether the line opens or closes a fence: Markdown's, or a tag that some models use."""
    return _FENCE.match(line) is not None


def is_shell(line: str) -> bool:
    """Whether the line opens a fence of shell commands, which are to run and not to save."""
    return _SHELL.match(line) is not None


def mentioned_file(line: str) -> str | None:
    """The last file that a sentence mentions as code."""
    names = [name for name in _MENTION.findall(line) if file_name(name) is not None]
    return names[-1] if names else None


def file_name(line: str) -> str | None:
    """The file that a line names, if it does nothing else."""
    tag = _TAG.search(line)
    if tag:
        return tag[1].strip() or None
    fence = _FENCE.match(line)
    text = fence[2].strip() if fence else line.strip()
    if fence:
        # "```src/a.py", "```python:src/a.py", "```python src/a.py", "```python title="src/a.py""
        text = _ATTRIBUTE.sub("", re.split(r"[:\s]", text)[-1]).rstrip("}") if text else ""
    text = _COMMENT.sub("", text.strip().lstrip("#").strip(), count=1)
    text = _NUMBERED.sub("", text, count=1).rstrip(":").strip("`*\"'= ").rstrip(":")
    text = _LABEL.sub("", text, count=1).strip("`*\"' ")
    if not text or text == "..." or text.endswith(("/", "\\")):
        return None
    if text in _BARE and not fence:
        return text
    if (
        _EXTENSION.search(text)
        and not re.search(r"[,;!?\"<>|]|\.\s", text)
        and text.count(" ") <= 2
    ):
        return text
    return text if "/" in text and " " not in text else None


def name_before(lines: Sequence[str]) -> str | None:
    """The file named in the last three lines before a block, over fences and blank lines only."""
    apart = False
    for line in reversed(lines[-3:]):
        name = file_name(line)
        if name is not None and not (apart and " " in name):
            return name
        apart = apart or not line.strip()
        if line.strip() and not is_fence(line):
            return None
    return None

"""The hub's own library: quiet about this machine, and with errors that are sentences."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

from midstream.errors import UnavailableError

SECONDS: Final = 20.0
"""How long the hub may take to answer."""


class HubError(UnavailableError):
    """The hub, a repository or a file of it cannot be had."""

    code = "hub"


def hub_library() -> Any:
    """The hub's library, told not to say what else runs on this machine."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    return import_module("huggingface_hub")


class hub_errors:  # noqa: N801 - used as a context manager, like contextlib's
    """Turn errors of the hub's library into sentences."""

    def __init__(self, repository: str, address: str) -> None:
        self._repository = repository
        self._address = address

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        if (told := self._told(error)) is not None:
            raise told from error

    def _told(self, error: Exception) -> HubError | None:
        import httpx2
        from huggingface_hub import errors

        name, hub = self._repository, self._address
        match error:
            case errors.GatedRepoError():
                return HubError(*gated(name, hub))
            case errors.RepositoryNotFoundError():
                return HubError(
                    f"{hub} has no public repository {name}",
                    "check the name; for a private one set HF_TOKEN",
                )
            case errors.RevisionNotFoundError():
                return HubError(f"{name} has no such revision", "name a branch, tag or commit")
            case errors.EntryNotFoundError():
                return HubError(f"{name} lacks a file that it lists", "try again later")
            case errors.HFValidationError():
                return HubError(
                    f'"{name}" is neither a model of the catalogue nor a repository',
                    "`midstream models get` lists the catalogue; repositories are OWNER/NAME",
                )
            case errors.OfflineModeIsEnabled():
                return HubError(
                    "The hub was not contacted because HF_HUB_OFFLINE is set", "unset it"
                )
            case errors.HfHubHTTPError():
                status = error.response.status_code
                return HubError(f"{hub} answers HTTP {status} for {name}", "try again later")
            case httpx2.TimeoutException():
                return HubError(f"{hub} did not answer in time", "run the command again")
            case httpx2.HTTPError():
                return HubError(f"{hub} cannot be reached: {error}", "check the connection")
            case AttributeError() | LookupError() | RecursionError() | TypeError() | ValueError():
                # A captive portal, or something else that is no hub.
                return HubError(
                    f"{hub} does not answer as a hub does about {name}",
                    "check HF_ENDPOINT and the connection: some networks want you to log in first",
                )
            case _:
                return None


def gated(name: str, hub: str) -> tuple[str, str]:
    """The sentence about a repository whose terms must be accepted, and the way out."""
    return (
        f"{name} is available only to people who have accepted its terms",
        f"accept them at {hub}/{name} and set HF_TOKEN",
    )

"""Messages of an agent in the Agent Client Protocol, version 1, as values.

Agents differ in what they send, and send more from month to month, so reading is lenient: a field
of another type counts as absent, and an update that is not known keeps all its data
(``UnknownUpdate``).  No message of an agent raises an error here.

Source: https://agentclientprotocol.com/protocol (version 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast

JsonObject: TypeAlias = Mapping[str, Any]

ALLOW_ONCE: Final = "allow_once"
REJECT_ONCE: Final = "reject_once"
_MAX_AMOUNT: Final = 1e15
"""Amounts of tokens or money above this are taken for errors of the agent and left out."""
MAX_LISTED: Final = 1_000
"""Most steps of a plan, commands, choices and values of one that are read."""
_MAX_WAYS: Final = 5
"""Most ways to log in that are named."""
_MAX_LINE: Final = 300
"""Most characters of a name, or of a reason within a sentence."""


@dataclass(frozen=True, slots=True)
class AgentText:
    """A piece of a message; pieces of one message follow each other.

    Attributes:
        role: Who speaks; ``user`` is the user's own words when an old session is loaded.
        text: Markdown.
    """

    role: Literal["agent", "thought", "user"]
    text: str


@dataclass(frozen=True, slots=True)
class ToolDiff:
    """An edit as the agent describes it.

    Attributes:
        path: The file, absolute or relative to the session's folder.
        old: Text that is replaced: the whole file or, from most agents, a fragment of it.  ``None``
            for a new file, and from some agents also where a file is overwritten.
        new: Text in its place.
    """

    path: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class AgentToolCall:
    """What is known about one call of a tool.

    The first word about it may be any of a call, an update or a question, so all have this form.

    Attributes:
        call_id: Names it within the session.
        title: One line for people.
        kind: ``read``, ``edit``, ``execute``, …
        status: ``pending``, ``in_progress``, ``completed`` or ``failed``; ours is ``nothing``, for
            a call that ended with its turn.
        diffs: The edits in its content.
        text: The other content, as Markdown.
        paths: Files that it is about.
        given: Names of the fields that the message had; the others say nothing.
    """

    call_id: str
    title: str = ""
    kind: str = ""
    status: str = ""
    diffs: tuple[ToolDiff, ...] = ()
    text: str = ""
    paths: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()

    def updated(self, later: AgentToolCall) -> AgentToolCall:
        """Return the call with the fields of a later message about it."""
        changes = {name: getattr(later, name) for name in later.given}
        return replace(self, **changes, given=self.given | later.given)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of a plan; ``status`` is ``pending``, ``in_progress`` or ``completed``."""

    text: str
    status: str


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """The whole plan; it replaces the one before."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Tokens in the context window, its size, and what the session has cost, if told."""

    used: int
    size: int
    cost: str = ""


@dataclass(frozen=True, slots=True)
class SlashCommands:
    """Commands that a prompt may begin with: names and descriptions."""

    commands: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChoiceValue:
    """One value of a choice."""

    value: str
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """Something that the user may choose for a session.

    Attributes:
        choice_id: Names it.
        name: One or two words for people.
        category: ``mode``, ``model``, ``thought_level`` or what else the agent has.
        current: The value in force.
        values: All values.
        method: The request that sets it; older agents have one each for modes and models.
    """

    choice_id: str
    name: str
    category: str
    current: str
    values: tuple[ChoiceValue, ...]
    method: Literal["session/set_config_option", "session/set_mode", "session/set_model"] = (
        "session/set_config_option"
    )


@dataclass(frozen=True, slots=True)
class ChoicesChanged:
    """All config options of the session (``AgentSession.with_options``)."""

    choices: tuple[AgentChoice, ...]


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The agent's mode is another one."""

    mode: str


@dataclass(frozen=True, slots=True)
class UnknownUpdate:
    """An update of a kind that is not known here."""

    kind: str
    data: JsonObject = field(default_factory=dict[str, Any])


AgentUpdate: TypeAlias = (
    AgentText
    | AgentToolCall
    | AgentPlan
    | AgentUsage
    | SlashCommands
    | ChoicesChanged
    | ModeChanged
    | UnknownUpdate
)


@dataclass(frozen=True, slots=True)
class PermissionOption:
    """An answer to a question; ``kind`` is what it means, the other two are free text."""

    option_id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """The agent asks before it uses a tool, and waits.

    Attributes:
        session_id: The session.
        call: What is known of the use; may have diffs that no message before had, or none.
        options: The answers to choose from.
    """

    session_id: str
    call: AgentToolCall
    options: tuple[PermissionOption, ...]

    def option(self, kind: str) -> PermissionOption | None:
        """The first option of a kind, as ``ALLOW_ONCE``."""
        return next((option for option in self.options if option.kind == kind), None)


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """An agent's description of itself.

    Attributes:
        name: Its name for people.
        version: Its version, for bug reports.
        loads: Whether it can load an old session and replay it.
        resumes: Whether it can resume one without replaying it.
        login: How one logs in, if it says so: names of ways.
        steers: Whether a turn that runs takes further texts (an extension, ``AgentProcess.steer``).
    """

    name: str
    version: str
    loads: bool
    resumes: bool
    login: tuple[str, ...]
    steers: bool = False


@dataclass(frozen=True, slots=True)
class AgentSession:
    """A conversation in the agent."""

    session_id: str
    choices: tuple[AgentChoice, ...]

    def with_options(self, options: tuple[AgentChoice, ...]) -> AgentSession:
        """Return the session with a new set of all its config options.

        Choices that were offered in an older way are not among them and stay.
        """
        older = (c for c in self.choices if c.method != "session/set_config_option")
        return replace(self, choices=(*options, *older))

    def with_mode(self, mode: str) -> AgentSession:
        """Return the session after the agent has changed its mode."""
        return replace(
            self,
            choices=tuple(
                replace(c, current=mode) if c.category == "mode" else c for c in self.choices
            ),
        )


def one_line(text: str) -> str:
    """A text as part of a sentence: in one line, not too long, without a full stop."""
    return " ".join(text[: 2 * _MAX_LINE].split())[:_MAX_LINE].rstrip(".")


def as_object(value: object) -> JsonObject:
    """A JSON value if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def read_update(data: JsonObject) -> AgentUpdate:
    """Read the ``update`` of a ``session/update``."""
    kind = _text(data, "sessionUpdate")
    match kind:
        case "agent_message_chunk":
            return AgentText("agent", _block(_object(data, "content")))
        case "agent_thought_chunk":
            return AgentText("thought", _block(_object(data, "content")))
        case "user_message_chunk":
            return AgentText("user", _block(_object(data, "content")))
        case "tool_call" | "tool_call_update" if _text(data, "toolCallId"):
            return read_tool_call(data)
        case "plan":
            return AgentPlan(
                tuple(
                    PlanStep(_text(step, "content"), _text(step, "status"))
                    for step in _objects(data, "entries")[:MAX_LISTED]
                )
            )
        case "usage_update":
            cost = _object(data, "cost")
            amount = _amount(cost, "amount")
            return AgentUsage(
                int(_amount(data, "used") or 0),
                int(_amount(data, "size") or 0),
                "" if amount is None else f"{amount:.2f} {_text(cost, 'currency')}".rstrip(),
            )
        case "available_commands_update":
            commands = _objects(data, "availableCommands")[:MAX_LISTED]
            return SlashCommands({_text(c, "name"): _text(c, "description") for c in commands})
        case "config_option_update":
            return ChoicesChanged(_options(data))
        case "current_mode_update":
            return ModeChanged(_text(data, "currentModeId"))
        case _:
            return UnknownUpdate(kind, data)


def read_tool_call(data: JsonObject) -> AgentToolCall:
    """Read a tool call, an update of one, or the ``toolCall`` of a question."""
    given: dict[str, Any] = {
        name: data[name] for name in ("title", "kind", "status") if isinstance(data.get(name), str)
    }
    if isinstance(data.get("content"), list):
        content = _objects(data, "content")
        given["diffs"] = tuple(
            ToolDiff(_text(item, "path"), _optional(item, "oldText"), _text(item, "newText"))
            for item in content
            if item.get("type") == "diff"
        )
        texts = (_block(_object(item, "content")) for item in content if "content" in item)
        given["text"] = "\n".join(text for text in texts if text)
    if isinstance(data.get("locations"), list):
        paths = (_text(location, "path") for location in _objects(data, "locations"))
        given["paths"] = tuple(dict.fromkeys(path for path in paths if path))
    return AgentToolCall(_text(data, "toolCallId"), **given, given=frozenset(given))


def read_question(data: JsonObject) -> PermissionQuestion:
    """Read the parameters of ``session/request_permission``."""
    return PermissionQuestion(
        _text(data, "sessionId"),
        read_tool_call(_object(data, "toolCall")),
        tuple(
            PermissionOption(_text(item, "optionId"), _text(item, "name"), _text(item, "kind"))
            for item in _objects(data, "options")
        ),
    )


def read_agent(data: JsonObject) -> AgentInfo:
    """Read the result of ``initialize``."""
    info = _object(data, "agentInfo")
    capabilities = _object(data, "agentCapabilities")
    session = _object(capabilities, "sessionCapabilities")
    methods = _objects(data, "authMethods")
    return AgentInfo(
        one_line(_text(info, "title") or _text(info, "name")),
        one_line(_text(info, "version")),
        capabilities.get("loadSession") is True,
        session.get("resume") is not None,
        tuple(name for method in methods[:_MAX_WAYS] if (name := one_line(_text(method, "name")))),
        _object(_object(data, "_meta"), "steering").get("supported") is True,
    )


def read_choices(data: JsonObject) -> tuple[AgentChoice, ...]:
    """Read what may be chosen from the result of ``session/new``, ``load`` or ``resume``.

    Some agents send ``configOptions``, some the older ``modes`` and ``models``, some both.
    """
    choices = list(_options(data))
    modes, models = _object(data, "modes"), _object(data, "models")
    if modes and not any(choice.category == "mode" for choice in choices):
        values = _values(_objects(modes, "availableModes"), "id")
        current = _text(modes, "currentModeId")
        choices.append(AgentChoice("mode", "Mode", "mode", current, values, "session/set_mode"))
    if models and not any(choice.category == "model" for choice in choices):
        values = _values(_objects(models, "availableModels"), "modelId")
        current = _text(models, "currentModelId")
        choices.append(AgentChoice("model", "Model", "model", current, values, "session/set_model"))
    return tuple(choices)


def _options(data: JsonObject) -> tuple[AgentChoice, ...]:
    return tuple(
        AgentChoice(
            _text(option, "id"),
            _text(option, "name") or _text(option, "id"),
            _text(option, "category") or _text(option, "id"),
            _text(option, "currentValue"),
            _values(
                [
                    value
                    for entry in _objects(option, "options")
                    for value in (_objects(entry, "options") if "options" in entry else (entry,))
                ],
                "value",
            ),
        )
        for option in _objects(data, "configOptions")[:MAX_LISTED]
        if option.get("type", "select") == "select"
    )


def _values(items: list[JsonObject], key: str) -> tuple[ChoiceValue, ...]:
    return tuple(
        ChoiceValue(_text(item, key), _text(item, "name"), _text(item, "description"))
        for item in items[:MAX_LISTED]
    )


def _block(block: JsonObject) -> str:
    """A content block as text."""
    match block.get("type"):
        case "text":
            return _text(block, "text")
        case "resource_link":
            return f"[{_text(block, 'name') or 'link'}]({_text(block, 'uri')})"
        case "resource":
            return _text(_object(block, "resource"), "text")
        case str(kind):
            return f"[{kind}]"
        case _:
            return ""


def _text(data: JsonObject, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _optional(data: JsonObject, key: str) -> str | None:
    value = data.get(key)
    return value if isinstance(value, str) else None


def _amount(data: JsonObject, key: str) -> float | None:
    """A number that is not negative, or ``None``; JSON knows no limit for one."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if 0 <= value < _MAX_AMOUNT else None


def _object(data: JsonObject, key: str) -> JsonObject:
    return as_object(data.get(key))


def _objects(data: JsonObject, key: str) -> list[JsonObject]:
    value = data.get(key)
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]

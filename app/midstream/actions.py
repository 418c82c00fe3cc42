# ruff: noqa: E501 (the table is read by columns)
"""Every user action, declared as data: id, keys, texts, and the method that carries it out.

Key bindings, the key bar, help, the palette and the commands of plain mode are all derived from this
table, so none of them can offer something that does nothing.  A new action on hunks needs an entry
here, the controller method it calls, a session method and a journal entry; nothing else.

This module imports no Textual: plain mode reads it too.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Final

from msgspec import Struct

from midstream.edits.hunks import HunkState


class Place(StrEnum):
    """Where the keys of an action are active."""

    ANYWHERE = "anywhere"
    """The review screen, text fields included."""
    REVIEW = "review"
    """The review screen, except while typing."""
    COMPOSER = "composer"
    PAGE = "page"
    """Every page."""
    COMMIT = "commit"
    SESSIONS = "sessions"
    SETTINGS = "settings"
    MODELS = "models"
    CHECKS = "checks"
    WALK = "walk"
    SENT = "sent"


PAGES: Final = (
    Place.COMMIT,
    Place.SESSIONS,
    Place.SETTINGS,
    Place.MODELS,
    Place.CHECKS,
    Place.WALK,
    Place.SENT,
)


class Group(StrEnum):
    """Headings of the help screen, in this order."""

    DECIDE = "Decide"
    STEER = "Steer"
    AGENTS = "Chat"
    MOVE = "Move"
    WALK = "Walk"
    VIEW = "View"
    PROGRAM = "Program"


class Reason(Enum):
    """Whether a command in plain mode takes a reason after the hunk's number."""

    NONE = 0
    OPTIONAL = 1
    REQUIRED = 2


class HunkCommand(Struct, frozen=True):
    """An action on hunks by number, as plain mode offers it.

    Attributes:
        method: Method of a part of the session, such as ``decisions.release``; gets a hunk id, then the
            reason if there is one. Empty: ``plain.hunk_commands`` has a method of the command's name.
        help: What it does, for the list of commands; empty uses the action's own help.
        form: Examples of how to type it; empty derives ``WORD 3``.
        reason: Whether a reason follows the number.
        lines: Whether ``3:2-5`` may name lines of a hunk.
    """

    method: str = ""
    help: str = ""
    form: str = ""
    reason: Reason = Reason.NONE
    lines: bool = False


class Action(Struct, frozen=True):
    """Something a user can do.

    Attributes:
        id: Name in the user's key settings; stable.
        keys: Default keys, comma separated, in Textual's names.
        call: On the review screen, controller and method (``decide.accept``); on a page, the
            Textual action.
        short: One or two words for the key bar; empty keeps it out of there.
        help: A sentence for help and palette.
        group: Heading in the help screen; ``None`` on pages.
        place: Where the keys are active.
        typing: On a page, whether the keys also act in a text field.
        offered: States of the hunk under the cursor in which the key bar offers it.
        hunk: The same action in plain mode, for actions on hunks.
        also: Other words by which people look for it.
    """

    id: str
    keys: str
    call: str
    short: str
    help: str
    group: Group | None = None
    place: Place = Place.REVIEW
    typing: bool = False
    offered: tuple[HunkState, ...] = ()
    hunk: HunkCommand | None = None
    also: str = ""

    @property
    def word(self) -> str:
        """Its command in plain mode."""
        return self.id.rpartition(".")[2]


_D, _S, _W = Group.DECIDE, Group.STEER, Group.AGENTS
_M, _L, _V, _P = Group.MOVE, Group.WALK, Group.VIEW, Group.PROGRAM
_A, _C = Place.ANYWHERE, Place.COMPOSER
_UNDECIDED = (HunkState.SETTLED,)
_HELD = (HunkState.HELD,)

ACTIONS: Final = (
    Action(
        "hunk.accept", "a", "decide.accept", "accept", "Accept the hunk under the cursor and go to the next", _D,
        hunk=HunkCommand(help="write these hunks to the file", form="accept 3, accept 1-4, accept all", lines=True),
        also="keep approve apply take yes",
    ),
    Action(
        "hunk.reject", "r", "decide.reject", "reject", "Reject the hunk under the cursor and go to the next", _D,
        hunk=HunkCommand(help="reject a hunk; the model receives the reason", form="reject 3 WHY", reason=Reason.OPTIONAL, lines=True),
        also="discard drop refuse no revert put back",
    ),
    Action("hunk.accept_rest", "A", "decide.accept_rest", "accept all", "Accept all in this file; first what you read, then all but flagged", _D, also="keep all approve all"),
    Action("hunk.reject_rest", "R", "decide.reject_rest", "reject rest", "Reject every undecided hunk of this file", _D),
    Action("hunk.accept_files", "alt+a", "decide.accept_files", "accept all files", "Accept all in every file; first what you read, then all but flagged", _D, also="keep everything"),
    Action("hunk.reject_files", "alt+r", "decide.reject_files", "reject all files", "Reject every undecided hunk of all files", _D),
    Action("group.accept", "plus", "walk.accept", "accept group", "Accept this hunk and all others like it, once you have read one", _L, also="keep similar equal rename formatting moved all"),
    Action("group.reject", "minus", "walk.reject", "reject group", "Reject this hunk and all others like it, once you have read one", _L, also="similar equal put back"),
    Action(
        "hunk.edit", "e", "decide.edit", "edit", "Edit the new lines of the hunk", _D,
        offered=_UNDECIDED, hunk=HunkCommand(help="change its new lines in $EDITOR or line by line"),
        also="change modify rewrite",
    ),
    Action("hunk.reject_why", "X", "decide.reject_why", "reject + why", "Reject the hunk and tell the model why", _D, offered=_UNDECIDED, also="explain comment"),
    Action("hunk.put_back_now", "P", "decide.put_back_now", "put back now", "Put back now, without waiting for the other program", _D, also="revert restore"),
    Action("hunk.split", "s", "decide.split", "split", "Split the hunk at the cursor or around the marked rows", _D, also="partial part lines"),
    Action(
        "hunk.release", "L", "decide.release", "release", "Release a hunk that the guard holds back; you say why", _D,
        offered=_HELD, hunk=HunkCommand("decisions.release", "let a hunk be decided that the guard holds back", reason=Reason.REQUIRED),
        also="guard security held back blocked quarantined",
    ),
    Action("guard.file", "alt+g", "decide.guard_file", "guard off", "Switch the guard off for this file, or on again", _D, offered=_HELD, also="security disable turn off false alarm held back quarantined"),
    Action("decision.undo", "u", "decide.undo", "undo", "Undo the last decision, on disk as well", _D, also="revert take back mistake"),
    Action("decision.redo", "U", "decide.redo", "redo", "Redo the decision that was undone", _D),
    Action("changes.stage", "S", "decide.stage", "stage", "Stage the accepted changes of this file", _D, also="git add index"),
    Action("commit", "C", "show.commit", "commit", "Commit accepted changes: write a message, choose files", _D, also="git save"),
    Action("hunk.comment", "c", "steer.comment", "comment", "Comment on this hunk; the model continues from there", _S, offered=_UNDECIDED, also="reply remark"),
    Action(
        "hunk.elsewhere", "E", "steer.elsewhere", "elsewhere", "Ask for the same change in similar places", _S,
        hunk=HunkCommand("background.elsewhere", "repeat its change elsewhere, such as all uses of a renamed name"),
        also="rename references everywhere similar",
    ),
    Action("effort", "m", "steer.effort", "effort", "Choose the effort per answer; with an agent, its mode and model", _S, also="reasoning thinking quality candidates"),
    Action("failures", "exclamation_mark", "explain.why", "why", "This hunk: who wrote it and why, its uses and tests, why it is flagged", _S, offered=(HunkState.HELD, HunkState.CONFLICT), also="author blame provenance references callers coverage errors unmatched declined reason unsure what failed messages held back"),
    Action("context", "f3", "explain.sent", "what is sent", "Show what was sent, and would be sent now, word for word", _S, _A, also="prompt privacy tokens secrets sent"),
    Action("checks", "ctrl+r", "check.show", "checks", "Run the project's tests and list the places that failed", _S, _A, also="test tests pytest lint failures"),
    Action("checks.next", "greater_than_sign", "check.next", "next failure", "Go to the next place that failed", _S),
    Action("checks.previous", "less_than_sign", "check.previous", "previous failure", "Go to the previous place that failed", _S),
    Action("continuous", "F", "steer.continuous", "follow-on", "Suggest follow-on edits whenever you save, or stop that", _S, also="autocomplete next edit suggestions"),
    Action("review.external", "V", "steer.review_external", "review", "Review what other programs write: keep it or put it back", _W, also="diff agent claude codex watch"),
    Action("feedback.tell", "B", "steer.tell_agent", "tell agent", "Tell the agent what was put back, and why", _W, also="claude codex"),
    Action("conversation", "D", "converse.toggle", "conversation", "Show or hide the conversation with the model or the coding agent", _W, also="chat ask question agent"),
    Action("conversation.new", "alt+n", "converse.renew", "new conversation", "Start a new conversation with the model or the coding agent", _W, _A, also="chat clear reset"),
    Action("conversation.propose", "I", "converse.propose", "take code", "Turn code in the last answer into hunks", _W, also="apply answer"),
    Action("conversation.places", "O", "converse.places", "places", "Open a place that the last answer names", _W),
    Action("plan.next", "full_stop", "steer.next_step", "next step", "Carry out the next step of the plan", _W),
    Action("plan.edit", "alt+p", "steer.edit_plan", "edit plan", "Edit the plan: reorder, change, drop and add steps", _W, _A, also="todo steps"),
    Action("conversation.up", "ctrl+pageup", "converse.scroll_up", "earlier messages", "Scroll the conversation up", _W, _A),
    Action("conversation.down", "ctrl+pagedown", "converse.scroll_down", "later messages", "Scroll the conversation down", _W, _A),
    Action("compose", "i", "steer.compose", "instruct", "Write an instruction for the marked lines", _S, also="prompt ask redirect steer"),
    Action("choose", "enter", "steer.choose", "instruct", "Write an instruction; in the file list, open the file; in the conversation, go to what a tool changed", _S),
    Action("model.stop", "ctrl+c", "steer.stop", "stop", "Stop the model and keep complete hunks; when idle, press twice to quit", _S, _A, also="cancel interrupt abort halt"),
    Action("composer.send", "enter", "steer.send", "send", "Send and return to the code; while the model writes, redirect it", _S, _C),
    Action("composer.queue", "alt+enter", "steer.queue", "queue", "Send it when the current answer ends", _S, _C),
    Action("composer.newline", "ctrl+j", "steer.newline", "new line", "Insert a line break", _S, _C),
    Action("composer.clear", "ctrl+u", "steer.clear", "clear", "Delete the text before the cursor; Ctrl+Z brings it back", _S, _C),
    Action("composer.expand", "ctrl+t", "steer.expand", "open paste", "Show a pasted block in full", _S, _C),
    Action("composer.recall", "up", "steer.recall", "recall", "On the first line, recall earlier instructions", _S, _C),
    Action("composer.leave", "escape", "steer.leave", "back", "Return to the code; your text is kept", _S, _C),
    Action("row.down", "j,down", "navigate.down", "down", "Next row", _M),
    Action("row.up", "k,up", "navigate.up", "up", "Previous row", _M),
    Action("hunk.next_undecided", "]", "navigate.next_undecided", "next", "Next undecided hunk", _M),
    Action("hunk.previous_undecided", "[", "navigate.previous_undecided", "previous", "Previous undecided hunk", _M),
    Action("walk", "equals_sign", "walk.show", "walk", "Show the walk through a large change: what to read first, groups, what is left or unread", _L, also="attention skimmed missed not looked at groups order kinds overview progress summary review"),
    Action("walk.order", "backslash", "walk.switch", "walk or files", "Let the keys to the next undecided hunk follow the walk, or the files", _L, also="order sort"),
    Action("hunk.next", "J,shift+down", "navigate.next_hunk", "next hunk", "Next hunk, decided or not", _M),
    Action("hunk.previous", "K,shift+up", "navigate.previous_hunk", "previous hunk", "Previous hunk, decided or not", _M),
    Action("file.next", "}", "navigate.next_file", "next file", "Next open file", _M),
    Action("file.previous", "{", "navigate.previous_file", "previous file", "Previous open file", _M),
    Action("page.down", "space,pagedown", "navigate.page_down", "page down", "Page down", _M),
    Action("page.up", "b,pageup", "navigate.page_up", "page up", "Page up", _M),
    Action("half.down", "d,ctrl+d", "navigate.half_down", "half down", "Half a page down", _M),
    Action("half.up", "ctrl+u", "navigate.half_up", "half up", "Half a page up", _M),
    Action("top", "g,home", "navigate.top", "top", "First row", _M),
    Action("bottom", "G,end", "navigate.bottom", "bottom", "Last row", _M),
    Action("row.left", "h,left", "navigate.left", "left", "Scroll left; in the file list, fold the folder", _M),
    Action("row.right", "l,right", "navigate.right", "right", "Scroll right; in the file list, unfold the folder", _M),
    Action("follow", "f", "follow.toggle", "follow", "Follow the model's writing, or stop following", _V, also="scroll autoscroll"),
    Action("select", "v", "show.select", "mark lines", "Mark lines to decide, split, copy or change", _V, also="visual range selection"),
    Action("fold", "z", "show.fold", "fold", "Show only changes and nearby lines, or the whole file", _V, also="collapse context unchanged"),
    Action("layout", "t", "show.layout", "layout", "Change the layout: automatic, unified, or side by side", _V, also="split side-by-side diff columns view"),
    Action("marks", "Z", "show.marks", "tokens", "Mark the tokens that differ in a hunk, or words line by line", _V, also="structural syntax intraline difftastic word diff whitespace wrapped indentation"),
    Action("search", "slash", "navigate.search", "search", "Search in this file", _V, also="find grep"),
    Action("search.next", "n", "navigate.search_next", "next match", "Next match", _V),
    Action("search.previous", "N", "navigate.search_previous", "previous match", "Previous match", _V),
    Action("copy", "y", "show.copy", "copy", "Copy the marked lines or the hunk, without the gutter", _V, also="yank clipboard"),
    Action("open", "o", "show.open_file", "open", "Open a file by name", _V, also="find file go to switch"),
    Action("rail", "ctrl+e", "show.rail", "files", "Show or hide the file list", _V, also="tree explorer sidebar"),
    Action("suggestions", "x", "show.suggestions", "examples", "Show or hide the example instructions", _V, also="ideas help"),
    Action("wrap", "w", "show.wrap", "wrap", "Wrap long lines, or scroll them with h and l", _V, also="long lines"),
    Action("telemetry", "W", "show.telemetry", "rates, wafer", "Compare measured rates with a simulated wafer", _V, also="speed tokens performance cost price cerebras statistics"),
    Action("telemetry.anywhere", "f2", "show.telemetry", "rates, wafer", "Compare rates with a simulated wafer, also while typing", _V, _A),
    Action("models", "M", "show.models", "model", "Choose the model: built-in ones and endpoints", _V, also="api key provider login openai anthropic claude ollama llm endpoint download agent codex gemini"),
    Action("pace", "p", "show.pace", "pace", "Set the built-in model to reading pace or full speed", _V, also="slow speed"),
    Action("theme", "T", "show.theme", "theme", "Choose a theme", _V, also="dark light colour color contrast appearance"),
    Action("pane.next", "tab", "show.next_pane", "next pane", "Next pane", _P, _A),
    Action("pane.previous", "shift+tab", "show.previous_pane", "previous pane", "Previous pane", _P, _A),
    Action("palette", "colon", "show.palette", "palette", "Find any action by name", _P),
    Action("palette.anywhere", "ctrl+p", "show.palette", "palette", "Find any action by name, also while typing", _P, _A),
    Action("help", "question_mark", "show.help", "keys", "Show the keys of this screen", _P, also="shortcuts keybindings hotkeys manual"),
    Action("help.anywhere", "f1", "show.help", "keys", "Show the keys, also while typing", _P, _A),
    Action("sessions", "H", "show.sessions", "sessions", "Resume or delete earlier sessions of this folder", _P, also="history restore resume"),
    Action("settings", "comma", "show.settings", "settings", "View every setting and its source, and change it", _P, also="preferences options configuration"),
    Action("tour", "f4", "tour.begin", "tour", "In the demo, a tour of three minutes", _P, _A, also="tutorial introduction learn start"),
    Action("close", "escape", "show.close", "close", "Close what is open; never stops or sends anything", _P),
    Action("repaint", "ctrl+l", "show.repaint", "repaint", "Repaint the screen", _P, _A, also="redraw refresh"),
    Action("suspend", "ctrl+z", "show.suspend", "suspend", "Suspend to the shell; fg returns", _P),
    Action("quit.twice", "q", "show.quit_twice", "quit", "Quit (press twice)", _P, also="exit leave"),
    Action("quit", "ctrl+q", "show.quit", "quit", "Quit; asks first if something is undecided: 1 stay, 2 quit", _P, _A, also="exit leave close"),
)  # fmt: skip
"""Actions of the review screen."""

_PA, _CO, _SE, _ST, _MO = Place.PAGE, Place.COMMIT, Place.SESSIONS, Place.SETTINGS, Place.MODELS
_CH, _WK, _SN = Place.CHECKS, Place.WALK, Place.SENT

PAGE_ACTIONS: Final = (
    Action("commit.stage", "space", "stage", "stage", "Stage or unstage the accepted changes of this file", place=_CO),
    Action("commit.stage_all", "a", "stage_all", "stage all", "Stage the accepted changes of every file", place=_CO),
    Action("commit.whole", "o", "whole", "whole file", "Stage the whole file, or only what was accepted of it", place=_CO),
    Action("commit.message", "i,enter,tab", "message", "message", "Return to the message, where this page begins; Esc goes to the files", place=_CO),
    Action("commit.commit", "C", "commit", "commit", "Commit what is staged; git's hooks run", place=_CO),
    Action("commit.amend", "A", "amend", "amend", "Amend the last commit instead of adding one, or go back to adding one", place=_CO),
    Action("commit.commit.anywhere", "ctrl+s", "commit_all", "commit", "Commit, also while writing the message; stages everything accepted if nothing is staged", place=_CO, typing=True),
    Action("commit.editor", "e", "editor", "editor", "Write the message in $EDITOR", place=_CO),
    Action("commit.editor.anywhere", "ctrl+g", "editor", "editor", "Continue the message in $EDITOR", place=_CO, typing=True),
    Action("commit.files", "shift+tab", "files", "files", "Return from the message to the files", place=_CO, typing=True),
    Action("sessions.resume", "enter", "resume", "resume", "Resume this session in place of the current one", place=_SE),
    Action("sessions.delete", "d,delete", "delete", "delete", "Delete the journal of this session; files stay as they are", place=_SE),
    Action("settings.change", "enter,space", "change", "change", "Change the value: switch it, choose, or type", place=_ST),
    Action("settings.reset", "backspace,delete", "reset", "reset", "Remove the value from your file", place=_ST),
    Action("settings.file", "e", "file", "edit file", "Edit the file of your settings in $EDITOR", place=_ST),
    Action("settings.find", "slash", "find", "find", "Show only settings that contain a text", place=_ST),
    Action("models.use", "enter", "use", "use", "Use this model from the next instruction on", place=_MO),
    Action("models.keep", "s", "keep", "use, keep", "Use it and save it in your settings", place=_MO),
    Action("models.new", "n", "new", "set up", "Set up a larger model: a key, a local engine, a download, an address", place=_MO),
    Action("models.effort", "e", "effort", "effort", "Switch to this model's next effort level", place=_MO),
    Action("models.ask", "f", "ask", "ask servers", "Ask endpoints and local engines for their models", place=_MO),
    Action("models.get", "d", "get", "download", "Download a published model from the catalogue", place=_MO),
    Action("checks.open", "enter", "open", "open", "Go to this place in the code", place=_CH),
    Action("checks.mend", "f", "mend", "ask to fix", "Ask the model to fix what failed at this place", place=_CH),
    Action("checks.run", "r,ctrl+r", "run", "run again", "Run the test command again, or stop it", place=_CH),
    Action("checks.command", "c", "command", "other command", "Name the command that runs the tests of this folder, in the settings", place=_CH),
    Action("checks.proposed", "p", "run_proposed", "with proposed hunks", "Run it in a copy that includes the undecided hunks, or stop it", place=_CH),
    Action("walk.open", "enter,right_square_bracket", "open", "go to", "Go to the next hunk of this row that waits", place=_WK),
    Action("walk.accept", "a,plus", "accept", "accept group", "Accept the whole group, once you have read one of its hunks", place=_WK),
    Action("walk.reject", "r,minus", "reject", "reject group", "Reject the whole group, once you have read one of its hunks", place=_WK),
    Action("walk.titles", "t", "titles", "titles", "Have the model give titles to the groups; they decide nothing", place=_WK),
    Action("walk.by", "backslash", "switch", "by file", "Let the keys to the next undecided hunk follow the walk, or the files", place=_WK),
    Action("sent.read", "enter", "read", "read", "Read this row as it was sent", place=_SN),
    Action("sent.all", "a", "read_all", "all of it", "Read the whole request as it was sent", place=_SN),
    Action("sent.leave", "f3", "close", "", "Leave the page", place=_SN),
    Action("page.row_down", "j,down,ctrl+n", "move(1)", "", "Next row", place=_PA),
    Action("page.row_up", "k,up,ctrl+p", "move(-1)", "", "Previous row", place=_PA),
    Action("page.rows_down", "pagedown,ctrl+d", "move(10)", "", "Ten rows down", place=_PA),
    Action("page.rows_up", "pageup,ctrl+u", "move(-10)", "", "Ten rows up", place=_PA),
    Action("page.top", "g,home", "move(-1000000)", "", "First row", place=_PA),
    Action("page.bottom", "G,end", "move(1000000)", "", "Last row", place=_PA),
    Action("page.scroll_down", "J,shift+down", "scroll(3)", "", "Scroll the details down", place=_PA),
    Action("page.scroll_up", "K,shift+up", "scroll(-3)", "", "Scroll the details up", place=_PA),
    Action("page.help", "question_mark,f1", "help", "keys", "Show the keys of this page", place=_PA),
    Action("page.close", "escape", "close", "back", "Leave the field or the page; never decides or sends anything", place=_PA, typing=True),
    Action("page.leave", "q", "close", "", "Leave the page", place=_PA),
    Action("page.repaint", "ctrl+l", "repaint", "", "Repaint the screen", place=_PA, typing=True),
)  # fmt: skip

BY_ID: Final = {action.id: action for action in (*ACTIONS, *PAGE_ACTIONS)}

WRITING: Final = frozenset(
    {
        "hunk.reject",
        "hunk.reject_why",
        "hunk.put_back_now",
        "hunk.edit",
        "hunk.comment",
        "hunk.elsewhere",
        "group.reject",
        "changes.stage",
        "commit",
    }
)
"""Actions that change files or ask for changes: a range of commits has none of them."""


def actions_on(page: Place) -> tuple[Action, ...]:
    """The actions whose keys are active on a page, its own first."""
    return tuple(a for place in (page, Place.PAGE) for a in PAGE_ACTIONS if a.place is place)

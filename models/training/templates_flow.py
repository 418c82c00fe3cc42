# ruff: noqa: E501 (a phrase is one line, however long)
"""Instruction templates of the edits of `tasks_flow`, and those that describe instead of naming
(notation: `phrases_names`).
"""

from __future__ import annotations

FLOW: dict[str, list[str]] = {
    "delete_call": [
        "<remove> the (call|calls) (to|of) {call}",
        "<remove> the {call} (call|line|statement)",
        "(don't|do not|no longer|stop|never) (call|calling|use|run) {call} [here|any more|anymore]",
        "{call} <should> not be (called|used|run) [here|any more]",
        "(it|this|the <function>) <should> not (call|use|run) {call} [any more]",
        "the (call of|call to) {call} (can go|should go|must go|is not needed|is unnecessary|is superfluous)",
        "(no|without) [the] [call of|call to] {call} [please|here]",
        "we (don't|do not|no longer) (need|want) [the call of|to call|the call to] {call}",
        "calling {call} is (not needed|unnecessary|wrong|useless)[, <remove> it]",
    ],
    "delete_line": [
        "<remove> the {which} (line|statement) [of the (body|<function>)|in the body]",
        "the {which} (line|statement) (can go|should go|must go|is not needed|is unnecessary|should be <removed>)",
        "(no|without) the {which} (line|statement)",
        "we (don't|do not|no longer) need the {which} (line|statement)",
    ],
    "return_to_raise": [
        "<raise> [a|an] {error} instead of (returning {old}|return {old}|the return of {old})",
        "(instead of|rather than) (returning|return) {old}[,] <raise> [a|an] {error}",
        "(it|this|the <function>) <should> <raise> [a|an] {error} (instead of returning|rather than return|instead of giving back) {old}",
        "(don't|do not) return {old}[,|:|;] [but] <raise> [a|an] {error}",
        "<replace> return {old} <with> raise {error}",
        "return {old} <should> (be|become) [a|an] [raise] {error}",
        "where it returns {old} it <should> <raise> [a|an] {error}",
        "(returning|the return of) {old} (hides errors|is wrong|is bad)[,|:|;] <raise> [a|an] {error}",
        "it returns {old}, (make it|it should|let it) raise [a|an] {error} instead",
        "a return of {old} <should> be [a|an] {error}",
    ],
    "guard_continue": [
        "(skip|ignore|leave out) (the item|it|the iteration|this one|the entry|the element) [in the loop] <if> {cond}",
        "(skip|continue) [in the loop] <if> {cond}",
        "<if> {cond}[,] (continue|skip it|skip|go on with the next|take the next one|skip the iteration)",
        "in the loop[,] (skip|continue|ignore it) <if> {cond}",
        "<add> [a|an] (continue|check|guard) [to the loop] <if> {cond}",
        "the loop <should> (skip|ignore|pass over) (the item|those|it) <if> {cond}",
        "(don't|do not) (process|handle|take) (the item|it) <if> {cond}",
        "continue with the next (item|one|element) <if> {cond}",
        "skip when {cond}",
    ],
    "negate_condition": [
        "(negate|invert|reverse|flip|turn around) the (condition|check|test|if condition) [of the if]",
        "the (condition|check|test|if) is (the wrong way round|the wrong way around|inverted|reversed|backwards|negated wrongly)",
        "the (condition|check|test) <should> be (the opposite|negated|inverted|the other way round)",
        "(use|take|test|check) the opposite (condition|test) [in the if]",
        "it checks the opposite of what it should",
        "(wrong|inverted) condition[, negate it|, it should be the opposite]",
        "the if <should> (test|check) the opposite",
    ],
}
"""Free phrasings for training."""

FLOW_NEW: dict[str, list[str]] = {
    "delete_call": ["spare us {call}", "there is no reason to call {call}"],
    "delete_line": ["{which} line away", "omit what the {which} line does"],
    "return_to_raise": [
        "turn the return of {old} into a {error}",
        "signal {error} in place of {old}",
    ],
    "guard_continue": [
        "jump to the next round when {cond}",
        "nothing should be done for it in the loop if {cond}",
    ],
    "negate_condition": ["put a not in front of the condition", "branch on the contrary"],
}
"""Families that only evaluation uses."""

DESCRIBED: dict[str, list[str]] = {
    "rename_local": [
        "<rename> the {described} <to> {new}",
        "(name|call) the {described} {new}",
        "the {described} <should> be <called> {new}",
        "{new} (as|for) the [name of the] {described}",
        "use {new} (as|for) the {described}",
        "give the {described} the name {new}",
    ],
    "rename_parameter": [
        "<rename> the {described} <to> {new}",
        "(name|call) the {described} {new}",
        "the {described} <should> be <called> {new}",
        "{new} (as|for) the [name of the] {described}",
        "give the {described} the name {new}",
    ],
    "remove_parameter": [
        "<remove> the {described}",
        "the {described} (is not needed|is unused|can go|should go)[, <remove> it]",
        "we (don't|do not) need the {described}",
    ],
    "add_hint": [
        "<add> the <hint> {type} to the {described}",
        "the {described} is (a|an) {type}[, annotate it]",
        "(annotate|type|hint) the {described} (as|with) {type}",
    ],
    "change_default": [
        "<set> the <default> of the {described} to {value}",
        "the {described} <should> default to {value}",
    ],
}
"""Phrasings that say which parameter or variable it is without its name."""

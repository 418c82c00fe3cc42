# ruff: noqa: E501 (a phrase is one line, however long)
"""Instruction templates of the seeded bugs of `tasks_bugs` that are told by their symptom (notation:
`phrases_names`).
"""

from __future__ import annotations

BUGS: dict[str, list[str]] = {
    "fix_boundary": [
        "(it|the comparison|the check|the limit|the bound|the condition) is off by one[,|;|.] [fix it|correct it|]",
        "(off by one|off-by-one) [error|bug|mistake] [here|in the (check|comparison|condition|loop)]",
        "(fix|correct|repair) the (off by one|off-by-one) [error|bug|mistake] [here|in the (check|comparison|condition)]",
        "{name} is off by one[,|;|.] [fix it|correct the comparison|]",
        "the (comparison|check|boundary|limit) (is|of {name} is|with {name} is) (too strict|too lax|wrong at the boundary|wrong at the limit|wrong for the limit itself)[,|;|.] [fix it|]",
        "(the boundary|the limit itself|the edge case|the exact limit|an equal value) (is handled wrong|is treated wrongly|should be the other way round|goes the wrong way)",
        "it (goes wrong|fails|is wrong|does the wrong thing|misbehaves) when (both are equal|the values are equal|{name} is exactly the limit|it is exactly at the limit|the limit is reached)",
        "(one (item|element|step) too (many|few)|it runs once too often|it stops one too early|it goes one too far|the last (one|item|element) is (missing|skipped|left out))[,|;|.] [fix the comparison|fix it|]",
        "IndexError (at the end|on the last element|in the last step)[,|;|.] [the comparison is off by one|fix the bound|fix it|]",
        "when {name} equals the limit (it takes the wrong branch|it should go the other way|the result is wrong)",
        "(use the right comparison|the comparison should (include|exclude) the limit|strict or not[?] the comparison is wrong)",
    ],
    "fix_condition": [
        "it (raises|throws) {error} (although|even though|even when) (everything|the input|all) is (fine|ok|valid|correct)[,|;|.] [fix it|]",
        "{error} is raised (in the wrong case|for good input|exactly when it should not be|for valid values)[,|;|.] [fix it|fix the condition|]",
        "it (never raises|does not raise) {error} (when it should|for bad input|for invalid values)[,|;|.] [fix it|the condition is wrong|]",
        "(i|we|callers) get [a|an] {error} for (perfectly good|valid|correct|good) (input|values)[,|;|.] [fix it|fix the check|]",
        "it returns {value} (in the wrong case|when it should not|exactly when it shouldn't|for the wrong input)[,|;|.] [fix it|the condition is wrong|]",
        "(why does it|it should not) return {value} (when everything is fine|for good input|here|in the normal case)[?|]",
        "(the|this) (if|branch|check|condition|body of the if) (runs|is taken|is entered|triggers|fires) (in the wrong case|when it should not|exactly when it shouldn't|for the wrong values)[,|;|.] [fix it|]",
        "it (always takes|takes|goes into) the wrong branch[,|;|.] [fix it|fix the condition|]",
        "the (branches|two cases|cases) are (mixed up|swapped|confused)[,|;|.] [fix the condition|]",
        "it does (exactly|) the opposite of what (it should|the docstring says|the name says|we want)",
        "the logic of the (if|check|condition) is (inverted|reversed|upside down|backwards)[,|;|.] [fix it|]",
    ],
    "fix_sign": [
        "it {does} (but should|where it should|instead of) {should_do}",
        "it {does} and should {should_do} [instead]",
        "it should {should_do}, (not|but it) {does}",
        "(wrong sign|the sign is wrong|sign error|there is a sign error)[,|;|.] [fix it|correct it|]",
        "the (arithmetic|operator|calculation|computation|math) is wrong[,|:|;|.] (it {does}|it should {should_do}|fix it|use {right})",
        "(the result|the value|the total|the offset|the index|the number) is (wrong|too large|too small|off|negative)[,|;|.|:] (it {does}|it should {should_do}|it {does} where it should {should_do})",
        "(use|it should be|should be) {right} (instead of|not|rather than) {wrong}",
        "(why does it|why do we) {should_do}[s|]? (wrong way round|no, it {does}|it {does})",
        "{wrong} should be {right}",
    ],
    "fix_index": [
        "it (takes|uses|returns|reads|looks at|gives) the {takes} (one|element|item|entry|value|) (instead of|but should take|but i want|, not|rather than) the {should_take} [one|]",
        "(i|we|callers) (get|got|see) the {takes} (element|item|one|entry) (but|and) (want|expect|need) the {should_take} [one|]",
        "it should (take|use|return|read|be) the {should_take} (one|element|item|entry|value) [, not the {takes}|]",
        "(take|use|return|read) the {should_take} (one|element|item|entry|value) (instead of the {takes}|instead|not the {takes}|)",
        "the (index|subscript) is wrong[,|:|;|.] (we need|it should be|use|take) the {should_take} (element|one|item|entry)",
        "wrong (index|element|end)[,|:|;|.] (it should be|take|use) the {should_take} [one|element|]",
        "the {should_take} (element|item|entry|one) (is meant|is what we need|should be used|is right), not the {takes} [one|]",
    ],
}
"""Free phrasings for training."""

BUGS_NEW: dict[str, list[str]] = {
    "fix_boundary": [
        "a value right at the threshold ends up on the wrong side",
        "equality is not treated as it should be",
    ],
    "fix_condition": [
        "the test in the if came out the wrong way",
        "legitimate calls are refused and bad ones pass",
    ],
    "fix_sign": ["somebody confused plus and minus", "plus and minus got mixed up here"],
    "fix_index": [
        "we wanted what is {should_take}, and this picks what is {takes}",
        "it picks from the wrong end of the sequence",
    ],
}
"""Families that only evaluation uses."""

"""Wordings for the kinds of `goals.py`, and for requests that no small edit answers."""

from __future__ import annotations

REWORDED: dict[str, list[str]] = {
    "empty_input": [
        "(don't|do not|must not|it should not|shouldn't) (crash|fail|blow up|die|choke|break|explode) (if|when) {x} is empty",
        "(crashes|fails|blows up|dies|breaks|falls over) (if|when|because) {x} is empty",
        "(IndexError|error|exception|traceback|crash) (if|when|for|with) (empty {x}|{x} is empty|there are no {w})",
        "(empty {x}|no {w}) (should|must) (just |simply |)(give|return|yield|be) {given}",
        "(handle|support|allow|deal with|think of) (the empty case|empty {x}|an empty {w})",
        "what (if|about) (there are no {w}|{x} is empty)? (return |give |)({given}|should be {given})",
        "{x} (might|could|can) (well |)be empty( here| sometimes|)",
        "(return|give|send back) {given} (for|for) (an empty|no) {w}",
    ],
    "missing_input": [
        "(don't|must not|should not) (crash|fail|blow up|die) (if|when) {x} is None",
        "(crashes|fails|blows up|dies|breaks) (with|on|for|when given) None (for|as) {x}",
        "(TypeError|AttributeError|error|exception) (when|if) {x} is None",
        "(handle|allow|accept|support|tolerate) {x}(=None| being None)",
        "{x} (might|could|may|can) be None( here| sometimes|)(, then {given}|)",
        "(with no|without a|no) {w} (just) (return|give) {given}",
    ],
    "descending": [
        "(newest|latest|biggest|highest|largest|best|most recent) (first|on top|at the top)",
        "(sort|order) (it |them |)(descending|desc|high to low|the other way round|in reverse)",
        "(descending|reverse|reversed) (order|sort) (please|)",
    ],
    "sort_ignoring_case": [
        "(ignore|disregard) (the |)case (when|while) sorting",
        "(sort|order) (them |)case-insensitive(ly|)",
        "case (should|must) not (matter|affect the order|influence sorting)",
        "(apple|b) (should|must) come before (Zebra|C), whatever the case",
    ],
    "raise_to_none": [
        "(don't raise|do not raise|no exception|stop raising)( {e}|), (return|give|hand back) None( instead|)",
        "None (instead of|rather than|in place of) (an exception|{e}|raising)",
        "(return|give back) None (when|if) (it is not there|nothing is found|it is missing|there is none)",
        "(I|callers) (want|expect|prefer) None (over|to|, not) (an exception|{e})",
    ],
    "none_to_raise": [
        "(raise|throw) (a |an |){e} (instead of returning|rather than returning|, not) None",
        "(don't|do not|never) return None(, raise {e}|; {e}|)",
        "None (hides|masks) (errors|the problem)(, raise {e}|)",
        "{e} (if|when) (nothing is found|there is none|it is missing)",
    ],
    "configurable": [
        "(make|let) (the |){w} (be |)(configurable|adjustable|settable|a parameter|an argument)",
        "(the |){w} (should|must|has to) be (configurable|a parameter|adjustable|an argument)",
        "(I|we|callers) (want|need) to (set|choose|change|pass|configure) (the |my own |){w}",
        "(no hardcoded|don't hardcode the|hardcoded) {w}( please|)",
        "(turn|move|pull) {v} into a parameter {n}",
        "(parameter|argument|option) {n} (instead of|for) the (fixed|hardcoded) {v}",
    ],
    "ignore_case": [
        "(ignore|disregard) (the |)case (of {x}|)( here|)",
        "(case-insensitive|case insensitive)( comparison| match| compare|)( please|)",
        "(it|this|the comparison) (should|must) (be case-insensitive|ignore case|not depend on case)",
        "{x} (in|with) (capitals|uppercase|mixed case) (should|must) (match|work) (too|as well)",
    ],
    "trim": [
        "(strip|trim|clean) {x}( first|)",
        "(spaces|whitespace|blanks) (around|before or after) {x} (should|must) (not matter|be ignored)",
        "{x} (has|comes with|may have|often has) (stray |trailing |leading |)(spaces|whitespace|newlines)",
    ],
    "missing_key": [
        "(no|avoid the|prevent the|get rid of the) KeyError (for|about|when there is no) {k}",
        "(don't|do not|must not) (crash|fail|die) (if|when|just because) {k} is (missing|not there|absent)",
        "{k} (is|may be|can be|might be) (optional|missing|absent|left out)",
        "(KeyError|crash|fails|blows up)(:| because of| when there is no| without) {k}",
    ],
    "utf8": [
        "(read|open|write|treat) (it |the file |files |)(as|in|with) utf-8",
        "(garbled|broken|wrong) (umlauts|accents|characters|non-ascii characters)",
        "(encoding|use) utf-8(, always| explicitly| please|)",
        "UnicodeDecodeError (on windows|for non-ascii files|in CI)",
    ],
    "folder_exists": [
        "(it's|it is) (fine|ok|no problem) (if|when) the (folder|directory) (exists|is there)( already|)",
        "(FileExistsError|fails|crashes) (when|if|because) the (folder|directory) (already exists|exists|is already there)",
        "(don't|do not) (fail|crash|complain) (if|when) the (folder|directory) exists",
    ],
    "no_hang": [
        "(add|use|set|put) a timeout( of {t} seconds| of {t}s|)",
        "(don't|never|must not|should not) (hang|wait|block) (for ever|forever|endlessly)",
        "(give up|time out|abort|stop) after {t} (seconds|s|sec)",
        "(timeout|time limit)(:| of|) {t} (seconds|s)",
    ],
    "pretty_json": [
        "(pretty-print|pretty print|indent|format) (the |)json",
        "(readable|indented|pretty) json( please| output|)",
    ],
    "sorted_json": [
        "(sort|order) the (json |)keys( in the json|)",
        "(stable|fixed|deterministic|sorted) (key order|order of keys)( please|)",
    ],
    "inclusive": [
        "(include|count) (the end|{b}|the upper bound|the last one)( too|)",
        "(the last one|{b}|the end) is (missing|left out|never reached|not included)",
        "off by one(:| at the end| -) (the last one|{b}) is (missing|not included)",
    ],
    "cached": [
        "(cache|memoi(s|z)e|remember) (the |)(results|result|it|this)( please|)",
        "(slow|expensive)(, | - |; )(cache|memoize) it",
        "(the same|equal) (arguments|input)(: | should )(don't compute it again|reuse the result|not recompute)",
        "(don't|avoid|stop) (recomputing|computing it again|doing it again) (for the same arguments|every time|)",
    ],
    "optional": [
        "(make|let) {x} (be |)optional",
        "{x} (should|must|could|can) be (optional|left out|omitted)",
        "(I|callers|users) (don't|do not|won't) always (have|know|pass) (a |){w}",
        "None (as|as the) default (for|of) {x}",
    ],
    "by_name": [
        "{x} (should|must) be keyword-only",
        "(make|force) {x} (to be |)keyword(-| )only",
        "(forbid|no) positional {x}",
        "{x} only by (name|keyword)",
    ],
    "real_list": [
        "(return|give|give me|I want|hand back) a (real |)list(, not an iterator|)",
        "(list|a list) instead of (a generator|an iterator|a lazy thing)",
        "(can|could) this be a list(?|, please)",
    ],
    "divide_safely": [
        "(ZeroDivisionError|division by zero|crashes|blows up)(:| when| if) {b} is (0|zero)",
        "(don't|do not|never) divide by (zero|0)",
        "(handle|guard against|think of|what about) {b} (==|being) 0",
        "(return|give|use) (0|zero) (when|if|in case) {b} (is|==) (0|zero)",
    ],
    "rounded": [
        "(round|rounded) (it |the result |)(to {d} decimals|)",
        "(too many|so many) (digits|decimals)(, {d} are enough|)",
        "{d} (decimals|digits|decimal places) (please|only|are enough)",
    ],
    "no_side_effect": [
        "(don't|do not|must not|never) (change|modify|mutate|touch) (the |)(caller's |passed |original |){x}",
        "(work on|use|make) a copy( of {x}|)",
        "{x} (should|must) (stay|remain|be left) (as it is|unchanged|alone)",
    ],
    "not_negative": [
        "(reject|refuse|no|disallow) negative {w}",
        "(raise |)ValueError (for|on|if given) (a |)negative {x}",
        "{x} (must|should|may) not be (negative|below 0|< 0)",
    ],
    "keep_cause": [
        "(chain|keep|show|don't lose) the (cause|original error|original exception|original traceback)",
        "raise (it |)from the (original|caught) (error|one|exception)",
    ],
    "not_everything": [
        "(bare except|except:) (is bad|is too broad|catches ctrl-c)",
        "(don't|do not) (catch|swallow) (everything|KeyboardInterrupt|Ctrl-C)",
        "(narrow|restrict) the except",
    ],
    "log_failure": [
        "(log|report) (it|the error|the failure|the exception)(, don't hide it| instead of hiding it|)",
        "(silent|swallowed) (error|failure|exception)(, log it|)",
        "(errors|failures) (vanish|disappear|go unnoticed|are swallowed)( here|)",
    ],
    "extreme_of_nothing": [
        "{f}() (crashes|fails|blows up|raises) (on|for) (an |)empty (sequence|input|list)",
        "(None|default None) (if|when) (there is nothing|it is empty|the sequence is empty)",
    ],
    "limited": [
        "(add|take|support|I want) (a |an optional |)limit( parameter| argument|)",
        "(optional|let me pass a) limit (for|on) (the number of |)results",
    ],
    "unique": [
        "(no|remove|drop|without|filter out) (duplicates|repeats|doubles)( please|)",
        "(each|every one|everything) only once",
        "(dedupe|deduplicate|de-duplicate) (it|the result|)",
        "(duplicates|the same entry) (show up|come out)( twice|)",
    ],
    "count_only": [
        "(only |just |)(return |)(the count|how many there are|the number of them)",
        "(count|number)(, not the list|, not the things themselves| is enough| only)",
    ],
    "quiet": [
        "(no|remove the|drop the|get rid of the|kill the) (print|prints|print statements|debug prints|debug output)",
        "(it |this |)(should not|must not|shouldn't) print( anything|)",
        "(silent|quiet) please",
    ],
    "path_like": [
        "{x} (may|can|might) be a (str|string)( too| as well|)",
        "(accept|allow) (a |)(str|string) for {x}" + "( too|)",
        "AttributeError: 'str' object has no attribute (when {x} is a string|)",
    ],
    "utc": [
        "(use|in|as) UTC( please| everywhere|)",
        "(timezone-aware|aware) (datetime|time|timestamps)( please|)",
        "(time zone|timezone) (bug|issue)(: use utc|, should be utc)",
    ],
    "count_from_zero": [
        "(KeyError|fails|crashes) (when|if|for) (a |)(new |){k} (is new|shows up|comes)",
        "(count|start) from (0|zero) for new keys",
    ],
    "telling_error": [
        "(say|tell|show|mention|include) (which|what|the) {w}( it was| in the error| in the message|)",
        "the (error|message) (should|must) (mention|name|include|contain|show) {x}",
        "(better|clearer|more helpful) (error|message)(: |, |; )(with|mention|show) {x}",
    ],
    "fresh_default": [
        "{x} (is shared|keeps growing|leaks|survives) (between|across) calls",
        "(mutable default|mutable default argument)( is evil| bug|)",
        "(calls share|every call shares|two calls share) (the same |){w}",
        "(each|every) call (should|must) (get|have|start with) (its own|a fresh|a new) {w}",
    ],
    "keep_going": [
        "(one|a) (bad|failing|broken) {w} (should|must) not (stop|kill|abort) (the rest|the others|everything|the loop)",
        "(carry on|continue|keep going|go on) (when|if|even if) (one|a {w}) fails",
        "(skip|ignore) {ws} that (fail|raise|throw|cause errors)",
    ],
    "real_error": [
        "(raise|use) (a |)(ValueError|real error|proper error|real exception) (instead of|rather than|, not) (the |an |)assert",
        "(no|assert is not for) (asserts|user input|validation)(, raise ValueError|)",
        "(assert|asserts) (vanish|go away|are stripped) with -O",
    ],
    "command_fails": [
        "(fail|raise|stop) (when|if) the command (fails|returns an error|exits with an error)",
        "(check|look at|don't ignore) the (exit code|return code|exit status)",
    ],
    "trimmed_parts": [
        "(strip|trim) (each|every|the) (part|piece|entry|parts)",
        "(spaces|blanks|whitespace) (after|around) the (separator|separators|commas) (should|must) (not matter|be ignored)",
    ],
    "one_per_line": [
        "(one|each one|every entry) (per line|on its own line|on a line of its own)",
        "(newlines|line breaks) (between them|as separator|instead of {s})",
    ],
}
"""By kind; grammars as in `everyday.expanded`."""

BEYOND = [
    "make (this|it) (10x|ten times|much|a lot) faster",
    "(rewrite|reimplement|port) (this|it|the whole thing) (in|to|using) (Rust|C|Cython|numpy|asyncio and a queue|Go)",
    "(write|add) (unit |some |a few |)tests for (this|it)",
    "why (is this so slow|does this fail|did we do it like this)?",
    "(explain|what does) (this|it|this do)",
    "(split|break) (this|it) up into (several|smaller) (functions|modules|files|classes)",
    "make (it|this) thread(-| )safe",
    "(add|support) (oauth|single sign-on|pagination|retries with exponential backoff|internationali(s|z)ation|a plugin system)",
    "(move|put) (this|it) into (another|its own|a separate) (module|file|package)",
    "(clean|tidy) (this|it) up( a bit|)",
    "(make|can you make) (it|this) (nicer|more pythonic|more elegant|production ready)",
    "(review|have a look at) (this|it)( please|)",
    "(use|switch to) (a database|redis|sqlalchemy|pydantic|a state machine) (here|for this)",
    "(it|this) (doesn't|does not) work( right|)( any more|)",
    "(update|fix) the callers (of this|) (in the other files|everywhere)",
    "(implement|finish) the (rest|missing part|todo)",
    "(generate|write) (the |)documentation( for the website|)",
    "(improve|reduce) (memory use|the complexity|performance)",
]
"""Requests that no small edit answers."""

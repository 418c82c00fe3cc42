# ruff: noqa: E501 (a phrase is one line, however long)
"""Instruction templates of security rewrites and small bugs, corrections as the guard words them, and
requests that are beyond the model.

`EXTRA` is for training, `EXTRA_NEW` for measuring only; likewise `BEYOND` and `BEYOND_NEW`.
"""

from __future__ import annotations

EXTRA: dict[str, list[str]] = {
    "secure_sql": [
        "(use|pass|switch to) [query] (parameters|bound parameters|placeholders) [instead of (building|formatting|"
        "concatenating) the (sql|query) [string]]",
        "(fix|close|remove|prevent|stop) the (sql injection|injection|injection hole|sql hole)",
        "(make|turn) the (query|sql|sql query) (safe|parametrised|parameterized|into a parameterized query)",
        "pass the values as [query] parameters [instead of building the sql string]",
        "(parametrise|parameterize|parametrize) the (query|sql|statement)",
        "(no|don't use|avoid) (string formatting|f-string|concatenation|interpolation) in [the] (sql|query)",
        "this is open to sql injection[, fix it]",
        "the query (should|must) (use|have) (placeholders|parameters)",
        "(use|put) placeholders [in the query]",
        "S608[, fix it]",
        "escape the (value|values) in the query properly",
        "secure the (query|sql)",
    ],
    "secure_shell": [
        "(don't|do not|no|avoid|stop) (use|using) (shell=True|the shell|a shell)",
        "(call|run|start) the (program|command) with a list of arguments [and without shell=True]",
        "use [a list of arguments|an argument list|a list] [instead of shell=True|instead of the shell]",
        "(remove|drop|get rid of) shell=True [and pass a list]",
        "(fix|close|prevent) the (shell injection|command injection)",
        "use subprocess.run with a list of arguments [instead of os.system]",
        "(replace|change) os.system (with|to) subprocess.run",
        "pass (the arguments|the command) as a list",
        "without [a|the] shell [please]",
        "(make|turn) the (command|call) safe",
        "this is open to (shell|command) injection[, fix it]",
        "(S602|S605)[, fix it]",
    ],
    "secure_call": [
        "use {safe} [instead]",
        "use {safe} instead of {unsafe_name}",
        "(replace|change) {unsafe_name} (with|to|by) {safe}",
        "{unsafe_name} is (unsafe|insecure|dangerous|weak|broken)[, use {safe}]",
        "(don't|do not|no) (use|call) {unsafe_name}[,|;] [use {safe}]",
        "make (it|this) (safe|secure)",
        "(fix|close) the (security hole|security problem|vulnerability|security issue)",
        "(use|write) the safe (version|variant|way) [of {unsafe_name}]",
        "{safe} instead of {unsafe_name}",
        "(switch|move) to {safe}",
        "the call of {unsafe_name} is (unsafe|insecure|dangerous)",
    ],
    "secure_verify": [
        "(remove|drop|delete|take out|get rid of) verify=False",
        "keep certificate verification on [(drop verify=False)]",
        "(verify|check) the (certificate|certificates|ssl certificate)",
        "(don't|do not) (disable|switch off|turn off|skip) [the] (certificate|ssl|tls) (verification|check|checks)",
        "(turn|switch) [the] (certificate|ssl|tls) (verification|check) (on|back on)",
        "no verify=False",
        "(enable|use) (ssl|tls|certificate) verification",
        "S501[, fix it]",
    ],
    "secure_secret": [
        "read (the secret|the password|the key|the token|it|{secret}) from the environment",
        "(take|get|load) {secret} from [the environment|an environment variable|os.environ|the env]",
        "(no|remove the|don't use a|avoid) (hard-coded|hardcoded|hard coded) (secret|password|key|token|"
        "credential|secrets|passwords|credentials)",
        "use os.environ [for {secret}|instead of the literal|here]",
        "use an environment variable [for {secret}]",
        "{secret} (should|must) (come from|be read from) (the environment|os.environ|an environment variable)",
        "(don't|do not) (hard-code|hardcode|store) {secret} [in the source|in the code]",
        "{secret} from env",
        "(S105|S106)[, fix it]",
    ],
    "fix_return": [
        "it (returns|always returns|gives|gives back) None [instead of {value}|instead of the result]",
        "the return is missing",
        "(missing|forgotten) return",
        "(i|we|somebody) forgot (to return|the return)",
        "it (does not|doesn't|never) (return|returns) (anything|the result|{value})",
        "(return|give back) the result [of {value}] [at the end]",
        "the (result|value) is (lost|computed but not returned|never returned)",
        "fix: (returns None|no return|the caller gets None)",
        "return {value}",
        "(the caller gets|i get|callers get) None",
        "add the missing return",
        "return the (last|final) (value|expression)",
    ],
    "fix_await": [
        "(await|you must await|it should await) [the call of|the call to|the result of] {call}",
        "[the] coroutine {call} was never awaited",
        "(the|a) await is missing [before|on] [the call of] {call}",
        "(missing|forgotten) await [(on|before|at) {call}]",
        "RuntimeWarning: coroutine {call} was never awaited",
        "{call} is (a coroutine|async|not awaited|never awaited)[, await it]",
        "add [the] [missing] await [(before|to|for) {call}]",
        "(i|we) forgot (to await|the await on) {call}",
    ],
    "fix_self": [
        "NameError: name {name} is not defined",
        "{name} is (an attribute|a member|a method|not defined|undefined)[, use self.|, it needs self]",
        "(missing|forgotten) self [(before|on|for) {name}]",
        "(it should be|use|write|must be) {dotted} [not {name}|instead of {name}]",
        "add [the] [missing] self [(before|to) {name}]",
        "{name} (needs|wants|should have) [a] self",
        "{name} should be {dotted}",
        "(i|we) forgot self (before|on) {name}",
    ],
    "swap_arguments": [
        "swap the [two] arguments [of|in the call of|to] {call}",
        "the arguments (of|to) {call} are (swapped|in the wrong order|the wrong way round|reversed)",
        "(exchange|flip|reverse|switch|turn around) the [two] (arguments|args|parameters) (of|to|in the call of) "
        "{call}",
        "(wrong|bad) (order of arguments|argument order) (in|for|of) [the call of] {call}",
        "{call} is called with its arguments (swapped|reversed|in the wrong order)",
        "{call} takes its arguments the other way (round|around)",
        "{call}: (swap|flip|reverse) [the] (arguments|args)",
        "correct the (order of the arguments|argument order) of {call}",
    ],
    "fix_none": [
        "(compare|test|check) [with|for|against] None (with|using|by) is",
        "use is None instead of == None",
        "(use|write) is [not ==] for None",
        "(== None|None) should be (is None|compared with is)",
        "(fix|correct) the (comparison|comparisons) (with|to) None",
        "comparison to None should be if cond is None",
        "E711[, fix it]",
        "is None, not == None",
    ],
    "fix_mutable_default": [
        "(fix|avoid|remove|no) [the] mutable default [argument|value] [(of|for) {name}]",
        "the default of {name} is (shared|mutable|shared between calls)[, fix it]",
        "(make|use) None (as|for) the default of {name} and (create|make) it in the body",
        "{name} (keeps its values between calls|is shared between calls|remembers old values)",
        "{name} should default to None [and be made inside|and be created in the body]",
        "B006[, fix it]",
        "don't use a mutable default [for {name}]",
    ],
    "fix_bare_except": [
        "(catch|except) [only] {error}, not everything",
        "the (bare except|except) should [only] (catch|name) {error}",
        "(no|avoid the|fix the|replace the) bare except[,|:] [use|catch] {error}",
        "(catch|except) only {error}",
        "except {error}",
        "use except {error} [instead of the bare except]",
        "name the exception: {error}",
        "it should only catch {error}",
    ],
    "flip_bool_operator": [
        "(use|it should be|make it) {new} instead of {old} [in the condition]",
        "the condition should (use|be) {new} [not {old}]",
        "(change|replace|turn) [the] {old} (to|with|into) {new}",
        "{new} instead of {old}",
        "{new}, not {old}",
        "{old} -> {new}",
        "{old} should be {new}",
        "wrong operator: {new}, not {old}",
    ],
    "finish_rename": [
        "finish the rename [of {old} to {new}|from {old} to {new}]",
        "finish renaming {old} to {new}",
        "rename the (rest|remaining uses|other uses|remaining ones) of {old} to {new}",
        "(rename|change) the remaining {old} to {new}",
        "{old} is (now|already) [called] {new}, (rename the rest|fix the other uses|update the other uses)",
        "some {old} are left, rename them to {new}",
        "(apply|do|make) the same (change|rename) (here|everywhere|to the rest|for the rest): {old} -> {new}",
        "(there are still|still some) {old} left, (they|all) should be {new}",
        "complete the rename {old} -> {new}",
        "{old} was (half|partly) renamed to {new}, (finish it|do the rest)",
    ],
}

EXTRA_NEW: dict[str, list[str]] = {
    "secure_sql": [
        "bind the values",
        "let the driver quote the values",
        "somebody could inject sql here",
    ],
    "secure_shell": ["give the arguments one by one", "never go through a shell"],
    "secure_call": ["prefer {safe}", "{unsafe_name} must not be used here"],
    "secure_verify": ["trust only valid certificates", "certificates have to be checked"],
    "secure_secret": [
        "this credential belongs in the environment",
        "keep {secret} out of the repository",
    ],
    "fix_return": ["why do i get None from this", "hand the result to the caller"],
    "fix_await": ["{call} has to be awaited", "wait for {call}"],
    "fix_self": ["{name} lives on the object", "prefix {name} with self"],
    "swap_arguments": [
        "the two arguments of {call} must change places",
        "first and second argument of {call} are mixed up",
    ],
    "fix_none": ["test identity with None", "identity check for None"],
    "fix_mutable_default": [
        "{name} leaks from call to call",
        "create the default of {name} anew in each call",
    ],
    "fix_bare_except": ["narrow the except to {error}", "restrict the handler to {error}"],
    "flip_bool_operator": ["join the conditions with {new}", "it must be {new} there"],
    "finish_rename": [
        "update the leftover {old} to {new}",
        "{old} still shows up, it was renamed to {new}",
    ],
}

SAFE_TWINS: dict[str, tuple[str, str]] = {
    "yaml": ("yaml.load", "yaml.safe_load"),
    "eval": ("eval", "ast.literal_eval"),
    "hash": ("md5", "hashlib.sha256"),
    "pickle": ("pickle", "json"),
    "mktemp": ("mktemp", "tempfile.NamedTemporaryFile"),
    "ssl": ("_create_unverified_context", "ssl.create_default_context"),
    "autoescape": ("autoescape=False", "autoescape=True"),
}
"""The dangerous function of `secure_call` and its safe twin."""

WARNINGS: dict[str, tuple[str, str, str]] = {
    "secure_sql": (
        "Possible SQL injection vector through string-based query construction",
        "S608",
        "Pass the values as query parameters instead of building the SQL string.",
    ),
    "secure_shell": (
        "`subprocess` call with `shell=True` identified, security issue",
        "S602",
        "Call the program with a list of arguments and without shell=True.",
    ),
    "secure_verify": (
        "Probable use of `requests` call with `verify=False` disabling SSL certificate checks",
        "S501",
        "Keep certificate verification on (drop verify=False).",
    ),
    "secure_secret": (
        'Possible hardcoded password assigned to: "password"',
        "S105",
        "Read the secret from the environment.",
    ),
    "yaml": (
        "Probable use of unsafe `yaml.load`. Allows instantiation of arbitrary objects. Consider "
        "`yaml.safe_load`.",
        "S506",
        "Use yaml.safe_load.",
    ),
    "eval": (
        "Use of possibly insecure function; consider using `ast.literal_eval`",
        "S307",
        "Use ast.literal_eval, or parse the value explicitly.",
    ),
    "hash": (
        "Probable use of insecure hash functions in `hashlib`: `md5`",
        "S324",
        "Use hashlib.sha256.",
    ),
    "pickle": (
        "`pickle` and modules that wrap it can be unsafe when used to deserialize untrusted data, possible "
        "security issue",
        "S301",
        "Use json for data from outside.",
    ),
    "mktemp": (
        "Use of insecure and deprecated function (`mktemp`)",
        "S306",
        "Use tempfile.NamedTemporaryFile.",
    ),
    "ssl": (
        "Python allows using an insecure context via the `_create_unverified_context`",
        "S323",
        "Use ssl.create_default_context.",
    ),
    "autoescape": (
        "Using jinja2 templates with `autoescape=False` is dangerous and can lead to XSS",
        "S701",
        "Switch autoescape on.",
    ),
}
"""What the guard says of a line: message, rule, advice (the wording of the guard and of its linter)."""

BEYOND: list[str] = [
    "write [a|the|some] (test|tests|unit test|unit tests|test case|doctest) [for (it|this|{name})]",
    "(explain|describe) [to me] (what|how) (it|this|{name}) (does|works)",
    "what does (it|this|{name}) do",
    "(make|do) (it|this|{name}) (faster|quicker|more efficient|more performant|scale)",
    "(optimise|optimize|speed up|profile|tune) (it|this|{name}|the loop|the code)",
    "(rewrite|convert|port|translate) (it|this|{name}) (in|to|into) (rust|c|go|javascript|typescript|cython|java)",
    "(rewrite|convert|turn) (it|this|{name}) [in]to (a class|a dataclass|a generator|an iterator|a closure|recursion|"
    "a decorator|a context manager|a state machine|an enum)",
    "(split|break) (it|this|{name}) [up] into (two|three|smaller|several) (functions|methods|parts|helpers)",
    "(simplify|clean up|tidy up|refactor|improve|polish|beautify|restructure) (it|this|{name}|the code|the logic)",
    "(implement|write|add|finish) (the missing|the rest of the|a|an) (algorithm|feature|function|method|code|"
    "implementation|logic)",
    "(implement|write) (a|an|the) (binary search|cache|parser|web server|sorting algorithm|lru cache|tokenizer|"
    "linked list|http client|retry logic|rate limiter|login|command line interface)",
    "add (caching|memoization|logging|retries|retry logic|pagination|a timeout|threading|multiprocessing|"
    "concurrency|locking|rate limiting|validation|error handling|metrics|tracing|progress bar|type checking|"
    "authentication)",
    "(fix|find) (the|a|any|all) (bug|bugs|problem|error|errors|crash|race condition|memory leak|deadlock|issue|issues)",
    "it (crashes|hangs|is broken|does not work|doesn't work|is slow|is wrong|fails|leaks memory)",
    "why (is this slow|does it fail|does this crash|does it hang|is it wrong|doesn't this work)",
    "(use|convert to|switch to) (numpy|pandas|asyncio|threads|multiprocessing|sqlalchemy|pathlib|dataclasses|"
    "a comprehension|list comprehension|a generator expression|itertools|functools.reduce|regex|a regular "
    "expression|polars|pydantic|match statement)",
    "(sort|filter|group|deduplicate|merge|paginate|reverse) the (results|items|list|output|entries|rows)",
    "(make|keep) (it|this) (thread safe|thread-safe|idempotent|pure|testable|more readable|more pythonic|shorter|"
    "generic|configurable|reusable|robust|backwards compatible)",
    "(handle|support) (unicode|windows|negative numbers|empty input|edge cases|time zones|large files|python 2|"
    "streaming|cancellation|timeouts|nested lists|duplicates|json|yaml|csv)",
    "(move|extract) (it|this|{name}) (to|into) (another|a new|its own|a separate) (file|module|class|package)",
    "(add|create|write) (a|an|another|a new) (class|module|endpoint|subclass|helper function|method|function|api|"
    "route|migration|script|cli)",
    "(replace|change) the (loop|recursion|for loop|while loop|algorithm|data structure) [(with|by) (a comprehension|"
    "recursion|a loop|something better|a dict|a set)]",
    "(swap|reorder|reverse|exchange) the (branches|if and else|order of the lines|statements|loop)",
    "(document|describe) the (parameters|arguments|return value|exceptions|behaviour)",
    "add (type hints|types|annotations|type annotations|hints|a docstring|docstrings|comments|examples) "
    "[(everywhere|to everything|to all parameters|where they are missing)]",
    "(hello|hi|hey|thanks|thank you|good morning|ok|yes|no|stop|undo|undo that|go on|continue|help)",
    "(what|which) (python version|library|license|model|time) (is this|are you|do you use)",
    "(tell me a joke|who are you|what can you do|how are you|write a poem|write a story)",
    "(commit|push|run the tests|run it|install it|deploy it|format the file|open the file|search the web)",
    "(return|compute|calculate) the (median|average|mean|sum of squares|standard deviation|maximum|percentile) "
    "(as well|too|instead|of the values)",
    "(read|load|write|save|send) (it|the data|the result|the results) (from|to) (a file|a database|the network|s3|"
    "redis|the cache|disk|json|csv)",
    "(inline|unroll|vectorize|vectorise|parallelize|parallelise|memoize|curry|flatten) (it|this|{name}|the loop|the "
    "call|the function)",
    "(check|review|audit) (it|this|{name}|the code) [for (bugs|mistakes|security problems|style)]",
    "(merge|combine) (it|this) with {name}",
    "(use|apply) (the strategy pattern|dependency injection|composition|inheritance|polymorphism|a mixin|a visitor)",
    "(ensure|make sure|guarantee) (that|) (it|this|{name}) (always works|never fails|terminates|is correct|works with "
    "{name})",
    "(should|must|can) (it|this|{name}) (be|work|run) (correct|in parallel|on windows|without internet|with python 3)",
    "(move|split|pull) (the|this) (loop|logic|parsing|validation|inner part|body of the loop|error handling) (out into|into) (a helper|its own function|a separate method)",
    "(there|here) (must|may|might|seems to) be a (bug|mistake|problem|race|leak) (somewhere|in here|in this code)[,|;|.] [find it|can you see it|]",
    "(it|this|{name}) (takes|needs|uses) (too long|too much memory|minutes|ages) (for|with|on) (large|big|long) (inputs|files|lists|{what})",
    "(the tests|our tests|users) (say|complain|report) that (it|this|{name}) (is wrong|fails|does not work|is too slow|crashes)[,|;|.] [please look into it|fix it|]",
    "(cache|memoize|remember|store) (the result|the results|{what}) (so that|because) {why}",
    "(add|write|give me) (an example|examples|usage examples|a usage example) (to the docstring|for {name}|of how to use it)",
    "(make|let) (it|this|{name}) (also|) (work|cope|deal) with (generators|iterators|bytes|strings|paths|dates|dataframes|{what})",
    "(use|we should use) (a dict|a set|a queue|a heap|an enum|a dataclass|a named tuple|a lock|a thread pool|a generator) (instead of|rather than|for) {what}",
    "(return|give me|yield) the {what} (one by one|lazily|in pages|sorted|grouped by key|as json|as a dataframe)",
    "(retry|try again) (three times|a few times|twice|with backoff) (when|if) (it|the request|the call|{what}) fails",
    "(can|could) you (check|tell me|see) (if|whether|why) (this|it|{name}) (is right|is thread safe|handles {what}|can be simplified)[?|]",
    "(is|isn't) there a (better|simpler|shorter|faster|cleaner) way (to do this|to write this|for that)[?|]",
    "(this|it|{name}) is (too long|too complicated|a mess|hard to test|doing too much)[,|;|.] (split it|simplify it|clean it up|restructure it|)",
    "(how|where) (is|do i use|do we call|does it handle) {what}[?|]",
    "(log|record|measure|count) how (long|often) (it|this|{name}) (takes|runs|is called)",
    "(rename|change|fix|update) (everything|all names|all the names|the names) (to follow pep 8|to snake case|to something better|properly)",
    "(use|follow|apply) (pep 8|the style guide|our conventions|best practices)",
    "(check|validate) (all|the) (inputs|arguments|parameters) (properly|carefully|and report errors|)",
    "do (something|what you think is right|it properly|it better|your best|the needful|whatever)",
    "(encrypt|decrypt|sign|hash|obfuscate) (the payload|the data|{what}) [before (sending|storing) it]",
    "(translate|localise|localize) (the messages|the texts|all strings|{what}) (into|to) (french|german|spanish|another language)",
    "(make|let) (it|this|{name}) (work|run) (with|on) (postgres|mongodb|kafka|docker|kubernetes|aws|a raspberry pi|pypy)",
    "(use|switch to|replace it with) (websockets|grpc|graphql|rest|protobuf|msgpack|a message queue|celery|an event loop)",
    "(benchmark|time|load test|stress test|fuzz) (it|this|{name}) [(against|with) {what}]",
    "(what|which) (is|would be) the (complexity|big o|runtime|memory use|purpose|point) of (it|this|{name})[?|]",
    "(draft|prepare|open|create) (a|the) (pull request|issue|ticket|release|commit message|design document) for (it|this|{name})",
    "(find|look for|search for|show me) (all callers of {name}|where it is used|similar code|examples of this|dead code)",
    "(compare|diff) (it|this|{name}) (with|to) (the old version|the other one|{what})",
    "(work out|figure out|decide|choose) (what|which) {what} (should be|we need|is best)",
    "(make|turn) (it|this) into (a service|a microservice|a library|a notebook|an http endpoint|a cron job|a pipeline)",
    "(remember|keep track of|keep a record of|count) (all|the number of|how many) {what}",
    "(stream|batch|chunk|buffer|queue) {what} (instead of loading everything|to save memory|because {why})",
    "(give|show|suggest|propose) [me] (three|some|a few|better) (alternatives|names|ideas|options|variants)",
    "(is|are) {what} (safe|correct|valid|needed|used) (here|)[?|]",
    "(undo|revert|roll back|restore) (everything|the last change|what you did|the old version|it all)",
    "(generate|produce|build) (documentation|a report|a stub file|mock objects|fixtures|an openapi spec) (for|from) (it|this|{name})",
    "(adapt|port|migrate|upgrade) (it|this|{name}) to (python 3|the new api|version 2|sqlalchemy 2|pydantic v2|django 5)",
    "(add|introduce) (an interface|an abstract base class|a protocol|a factory|a registry|an event system|hooks|a state machine)",
    "(make|keep) {what} (consistent|in sync|up to date) (with|across) (the database|all files|the other module|the docs)",
    "(round|format|align|indent|colour|color) the (output|numbers|table|columns|text) (nicely|properly|to two digits|for humans)",
    "(detect|recognise|recognize|guess) (the language|the encoding|the delimiter|spam|anomalies|{what})",
    "(accept|take|read) (command line arguments|options from a file|environment variables|stdin) (too|as well|instead)",
    "(wait|block|sleep|poll) until {what} (is ready|is there|is available|has changed)",
    "(the|our) (users|customers|reviewers|colleagues) (want|ask for|need|expect) (more features|a better interface|{what}|an undo)",
    "(it|this|{name}) (should|must|needs to) (scale|learn|adapt|recover|survive a restart|resume where it stopped|work offline)",
    "(somewhere|something) (here|in here|in this) (is|must be) (off|strange|odd|fishy|broken)[,|;|.] [can you look|what is it|]",
    "(predict|estimate|extrapolate|interpolate|simulate|train a model on) {what}",
    "(why|how come) (do we|does it|did they) (do|need|use|write) {what} (like this|this way|here)[?|]",
    "(let's|we could|could we) (discuss|talk about|think about|reconsider) (it|this|{what}|the design|the naming)[?|]",
    "(the|this) (docs|docstring|documentation) (should explain|must explain|should list|should describe) (the parameters|the arguments|what is returned|the errors)",
]

BEYOND_NEW: list[str] = [
    "come up with test data for (this|{name})",
    "reduce the complexity of (it|this|{name})",
    "make this run on the gpu",
    "use a heap here",
    "turn the nested loops into one",
    "summarise (this|{name}) for me",
    "is there a mistake in here?",
    "draw a diagram of (this|{name})",
    "compress the output with gzip",
    "let users cancel (it|this)",
    "walk me through (this|{name})",
    "do the same in kotlin",
    "send an email when it is done",
    "parse the dates properly",
    "store the history in sqlite",
    "this gives wrong results for leap years",
    "count the words too",
    "write the changelog",
    "cover this with a property-based test",
    "introduce a plugin system",
    "throttle the requests",
    "the output should be sorted by date",
    "build a small gui for it",
    "follow our style guide",
]
"""Requests that the model has not seen and should decline as well."""

CORRECTION = "{asked}\nLine {line} must not be written like that: {message} ({rule}). {advice}"
"""What the guard appends to the person's instruction when it stops the model."""

ALSO: list[str] = [
    "also {ask}",
    "and {ask}",
    "{ask} too",
    "{ask} as well",
    "also, {ask}",
    "and also {ask}",
    "then {ask}",
    "in addition {ask}",
    "additionally {ask}",
    "oh and {ask}",
    "plus {ask}",
    "besides, {ask}",
    "and please {ask}",
    "while you are at it, {ask}",
    "one more thing: {ask}",
    "yes, and {ask}",
    "good, also {ask}",
    "keep that, but also {ask}",
    "oh, and {ask} too",
]
"""How an instruction during an answer asks for more."""

RATHER: list[str] = [
    "{ask}",
    "{ask}",
    "{ask} instead",
    "no, {ask}",
    "stop, {ask}",
    "rather {ask}",
    "wait, {ask}",
    "no wait, {ask}",
    "actually {ask}",
    "forget that, {ask}",
    "not that, {ask}",
    "instead {ask}",
    "stop there and {ask}",
    "hold on, {ask}",
    "that's enough, {ask}",
    "leave it at that and {ask}",
    "not like that, {ask}",
    "no no, {ask} instead",
    "hmm, better {ask}",
    "i meant: {ask}",
    "sorry, {ask}",
    "never mind, {ask}",
    "stop at this line, {ask}",
    "not there, {ask}",
]
"""How an instruction during an answer asks for something else."""

BOTH: list[str] = [
    "{one} and {two}",
    "{one}, then {two}",
    "{one}; {two}",
    "{one}, {two}",
    "{one}. {two}",
    "{one} and also {two}",
]
"""Two edits in one instruction."""

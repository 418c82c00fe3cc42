"""Requests for measuring whether a model knows that it has not understood.

None of them is trained on, nor made by the grammars: `OUTSIDE` asks, in free words, for what no
task covers, so that any change is wrong; `REWORDED` puts free words round a request of a task, so
that the task's answer stays the right one.
"""

from __future__ import annotations

OUTSIDE = """
    add type hints to {fn}
    add type hints
    type everything
    annotate all arguments and the return value
    split {fn} into two functions
    split {fn} in two: one that reads and one that writes
    break this up into smaller pieces
    cache the result in a dict
    remember what was computed and reuse it next time
    use a list comprehension
    use a generator instead of building a list
    log how long it takes
    log how many items there are
    print a progress bar
    retry three times when it fails
    time out after ten seconds
    make it faster
    this is slow for long inputs, speed it up
    this is hard to read
    clean this up a bit
    simplify the logic here
    handle the empty case
    handle errors properly
    what happens if {name} is missing? handle that
    validate the input
    check the arguments before doing anything
    make sure {name} is never negative
    {name} can be huge, so stream it
    the tests fail on windows, can you fix it
    there is an off by one error in here somewhere
    fix the bug
    why does this crash with an empty list?
    it crashes when {name} is unicode
    add a test for this
    write unit tests for {fn}
    add logging
    add some comments that explain what is going on
    document the parameters
    write a proper docstring with args and returns
    turn this into a class
    make this a dataclass
    move the inner part into a helper
    extract the condition into a function
    move {name} out of here
    use pathlib
    use the walrus operator
    use match instead of if
    replace the loop with map
    use enumerate
    use zip here
    sort the output
    sort by {name} first
    return a dictionary instead
    return both the value and its index
    also return how many were skipped
    accept several values for {name}
    allow {name} to be a callable
    allow a list for {name} as well
    support glob patterns
    support python 3.8
    make it work with bytes and str
    make it thread safe
    add a lock around this
    use a context manager
    close the file at the end
    read the file in chunks
    write it to a temporary file first
    open it in binary mode
    use json instead
    parallelise the loop
    run it in a thread pool
    batch the requests
    count how often {name} occurs
    stop as soon as something is found
    reverse the order
    keep the order of the input
    ignore case
    strip whitespace from {name}
    lower-case {name} before comparing
    round to two digits
    convert {name} to an int
    {name} should be computed lazily
    make {name} configurable
    take {name} from the config
    deprecate {fn}
    emit a deprecation warning
    memoize {fn}
    make {fn} recursive
    make {fn} iterative
    merge the two branches
    unify the duplicated code
    invert the logic
    early exit would be nicer here
    avoid the nested ifs
    this does too much
    explain this
    what does this do
    is {name} used anywhere?
    port this to rust
    use numpy
    vectorise this
    use a set for lookups
    use defaultdict
    use a deque
    count the calls
    add a counter
    measure it
    yield instead of returning a list
    raise something more specific
    give a better error message
    tell the user which {name} was wrong
    include {name} in the error
    make the error message friendlier
    add a fallback
    use the cached version if there is one
    only do this once
    do it for every item
    compare by value, not identity
    add an optional callback
    add a verbose mode
    add a dry run mode
    reset everything at the beginning
    restore the old value afterwards
    don't mutate the input
    copy {name} first
    don't hold the lock so long
    use f-strings and type hints and a docstring
    refactor
    improve
    do better
"""
"""One request a line; `{fn}` is the function's name, `{name}` one of its parameters."""

REWORDED = """
    users complained about this, {x}
    {x}, the reviewer asked for it
    i keep mixing this up, {x}
    since the last release this confuses people: {x}
    {x} because the linter complains
    for consistency with the other module, {x}
    it would read nicer if you {x}
    before i merge this: {x}
    could you have a look and {x}?
    {x}. thanks!
    {x} - nothing else should change
    we agreed on monday: {x}
"""
"""One form a line; `{x}` is the request."""

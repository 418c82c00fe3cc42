"""The words in which people ask for edits; any other word of an instruction may be a name.

Part of the edit codec: a model is trained with this very list, so it changes only together with the
shipped model.
"""

from __future__ import annotations

_WORDS = """
    a able abort about above absent accept accepting access according across actual actually add
    addition additional additionally adjust after afterwards again against agreed ahead algorithm
    all allow allows almost alone along already alright also alter although always among an and
    annotate annotated annotating annotation annotations another answer any anybody anymore anyone
    anything apart api appear append apply arbitrary are arg args argument arguments around as
    asap ask assert assertions asserts assign assigned assignment ast async asyncio at attach attr
    attribute audit authentication autoescape average avoid await awaitable awaited away axe b
    back backwards bad bail bar bare based be beautify because become becomes been before begin
    beginning behaviour behind being believe below beneath beside besides best better between
    beyond big binary bit blank block blocking blow body bool boolean both bottom bound branch
    branches break bring broken bug buggy bugs building bump but by bytes c cache caching
    calculate call called caller callers calling calls came can cancellation cannot careful carry
    case cases catch catching caught certain certificate certificates change changed cheap check
    checking checks choose chuck circuit class classic clause clean cleaner clear clearer cli
    client close closure code coded combine come comes command comment comments commit compare
    compared comparison comparisons compatible complain complains complete completely composition
    comprehension compute computed concatenating concatenation conclude concurrency cond condition
    configurable confuses confusing consider consistency consistent consistently console const
    constant construction contain content context continue convention convert coroutine correct
    could couple course cover crash crashes create created credential credentials csv current
    currently curry cut cython d daily dangerous data database dataclass dataclasses dead deadlock
    deal debug debugging decide declare declared decorate decorated decorating decorator
    decorators decrease deduplicate deep def default defaulting defaults define defined del delete
    deleted depend dependency deploy deprecated describe deserialize deserves despite deviation
    dict dictionary did different directly disable disabling disallow discard discussed disk
    dispose ditch do doc docstring docstrings doctest document documentation does doesn doing don
    done double down drop dropped due duplicates during e each early easier easy edge edit
    efficient either eliminate else emit employ empty enable enclose end endpoint enough ensure
    enter entire entries entry enum env environ environment equal equals equip erase erased error
    errors escape especially eval evaluate even event ever every everybody everything everywhere
    exactly example examples except exception exceptions exchange execute exist existing exit
    expect expects explain explicit explicitly expose expression extend extra extract f factor
    fail fails fallback false falsy far fast faster favour feature feel few field file files
    filter final finally find fine finish first fit fits fix flag flatten flip float floating
    floats follow for forbid forget forgot forgotten format formatting forward found friendly from
    front fstring fstrings full func function functions functools further future generally
    generator generic get gets give given gives global go goes going gone good got great group
    guarantee guard guess had half hand handle handled handling hang hangs happen happens happy
    hard hardcode hardcoded has hash hashlib have having he head hello help helper helpers her
    here hey hi hidden high him hint hinted hints his hits hmm hold holding holds hole how however
    hronous http human i idea idempotent identified identifier if ignore immediately imo implement
    implementation important improve in include increase indeed indent indentation ing inheritance
    init initialise initialised initialize initialized injection inline input insecure insert
    inside install instance instantiation instead insteadof instruction int integer integers
    intercept interface internet interpolate interpolation into introduce ints invalid invert
    invoke is isn issue issues it items iterator itertools its itself java javascript jinja job
    joke json just keep keeps kept key keyword kill killed kind kindly know known kwarg label
    labelled large last lastly late later lead leak leaks learn least leave left less let level
    library license lift light like limit limiter limiting line lines linked linter list lists
    literal little load local locking log logging logic login long longer look loop lose lost lot
    low lower lru machine made magic main make manager many mark match matter maximum may maybe md
    me mean meaning meaningless means median member memoization memoize memory mention merge
    method methods metrics might migrate migration mind minor misleading missing mistake mistakes
    mixin mktemp model modernise modernize modify module modules more morning most move moved much
    multiprocessing must mutable my name named namedtemporaryfile nameerror namely need needed
    needless needs negate negative neither nest nested nesting network never new next nice nicer
    nit no nobody noise none nor normal not note nothing now nuke null number numbers numpy object
    objects obsolete obvious occurrence of off often oh ok old omit on once one ones only onto
    open operator optimise optimize option optional or order os other otherwise ought our out
    outdated outdent output outside over own package paginate pagination pair pandas parallel
    parallelise parallelize param parameter parameterize parameterized parameters parametrise
    parametrised parametrize parse parser part partly parts pass passed password passwords path
    pathlib pattern people per percent percentile performant perhaps person pickle piece place
    placeholders places plain please pls plus plz poem point pointless polars polish polymorphism
    poor port positional positive possible possibly preceded precondition prefer prepend present
    preset pretty prevent previous print printing prints prior probable probably problem problems
    procedure produce produces profile program progress promote proper properly property protect
    provide provided pull pure purge purpose push put pydantic python pythonic query quick quicker
    quickly quiet quit quite race raise raised raises raising rate rather re read readability
    readable reading reads ready real really reason rebrand receive recent recursion redis reduce
    redundant refactor refer reformulate refuse regex regular relabel relevant remain remaining
    remark remember remembers remove removed removing ren rename renamed renaming reorder replace
    report request requests require required rest restructure result results retitle retries retry
    return returned returning returns reusable reverse reversed review reviewer rewrite rid right
    rm rn robust round route routine rows run runtimewarning rust s safe safer safety said same
    sanity save say saying says scale scrap script search second secret secrets secure security
    sed see seem seen select self send sense separate server set several sha shall shared she
    shell shield short shortcut shorter should show sign signature silent similar simple simplify
    simply since single skip slap slow small smaller so some somebody someone something sometimes
    somewhere soon sort sorting sounds source special specific speed spell spelled split sql
    sqlalchemy squares ssl standard start state statement statements stay stick still stop store
    story str strange strategy streaming string strings strip stripped structure stuff style
    subclass subprocess substitute such suddenly suggest sum superfluous supply support supposed
    sure surely surround swallow swap swapped switch symbol sync synchronous syntax system t tack
    tag tail take taken takes taking talk task tell telling tempfile templates terminates terrible
    test testable tests text than thank thanks that the their them then there therefore these they
    thing things think this those though thread threading threads three through throughout throw
    thrown throws thus thx tidy till time timeout timeouts titled tls to today todo together token
    tokenizer too took top toss total touches toward tracing trade transform translate trap trash
    treat tried trigger true truthy try tune tuple turn twice two type typed types typescript
    typing typo ugly un unannotated unclear uncomment undecorate undefined under understand undo
    undocument unicode unindent union unit unless unnecessary unneeded unnest unroll unsafe until
    untrusted untype untyped unused unverified up update upfront upon us usage usages use used
    useful useless user users uses using usual usually vague validate validation value values var
    variable variant vector vectorise vectorize verification verify version very via visitor
    vulnerability wait want wants was watch way we weak web well went were what whatever when
    whenever where wherever whether which while who whole whom whose why will windows wipe wish
    with within without wonder word work works worth would wrap write written wrong xss yaml yes
    yet yield yields you your yours zero zones
"""

COMMON = frozenset(_WORDS.split())
"""Lower-case words that are taken for words, not for names, unless their place says otherwise."""

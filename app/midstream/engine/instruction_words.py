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
    anything apart api appear append apply arbitrary are arg args argument arguments around as asap
    ask assert assertions asserts assign assigned assignment ast async asyncio at attach attr
    attribute audit authentication autoescape average avoid await awaitable awaited away axe b back
    backwards bad bail bar bare based be beautify because become becomes been before begin beginning
    behaviour behind being believe below benchmark beneath beside besides best better between beyond
    big binary bit blank block blocking blow body bool boolean both bother bottom bound branch
    branches break bring broken bug buggy bugs building bump but by bytes c cache caching calculate
    call callable called caller callers calling calls came can cancellation cannot careful carry
    case cases catch catching caught celery certain certificate certificates change changed cheap
    check checking checks choose chuck circuit class classic clause clean cleaner clear clearer cli
    client close closure code coded combine come comes command comment comments commit compare
    compared comparison comparisons compatible complain complains complete completely composition
    comprehension compute computed concatenating concatenation conclude concurrency cond condition
    configurable confuses confusing consider consistency consistent consistently console const
    constant construction contain content context continue contrary convention convert coroutine
    correct could couple course cover crash crashes create created credential credentials csv
    current currently curry cut cython d daily dangerous data database dataclass dataclasses dated
    dead deadlock deal debug debugging decide decided declare declared decorate decorated decorating
    decorator decorators decrease decrypt deduplicate deep def default defaulting defaults define
    defined del delete deleted depend dependency deploy deprecated describe deserialize deserves
    despite deviation dict dictionary did die different directly disable disabling disallow
    disappear discard discussed disk dispose ditch django do doc docker docstring docstrings doctest
    document documentation does doesn doing don done double doubled down drop dropped due duplicates
    during e each early easier easy eats edge edit efficient either eliminate else emit employ empty
    enable enclose encrypt end endpoint enough ensure enter entire entries entry enum env environ
    environment equal equality equals equip erase erased error errors escape especially estimate
    eval evaluate even event ever every everybody everyone everything everywhere exactly example
    examples except exception exceptions exchange excluded excludes exclusive execute exist existing
    exit expect expects explain explicit explicitly expose expression extend extra extract
    extrapolate f factor fail fails fallback false falsy far fast faster favour feature feel fence
    few field file files filter final finally find fine finish finishes first fishy fit fits fix
    flag flatten flip flipped float floating floats follow for forbid forget forgot forgotten format
    formatting forward found french friendly from front fstring fstrings full func function
    functions functools further future generally generator generic german get gets give given gives
    global go goes going gone good got graphql great greater group grows grpc guarantee guard guess
    had half hand handle handled handling hands hang hangs happen happens happy hard hardcode
    hardcoded harm has hash hashlib have having he head healthy hello help helper helpers her here
    hey hi hidden high him hint hinted hints his hits hmm hold holding holds hole how however
    hronous http human humans i idea idempotent identified identifier if ignore immediately imo
    implement implementation important improve in include includes inclusive increase indeed indent
    indentation ing inheritance init initialise initialised initialize initialized injection inline
    input insecure insert inside install instance instantiation instead insteadof instruction int
    integer integers intercept interface internet interpolate interpolation into introduce ints
    invalid invert invoke is isn issue issues it items iterable iterator itertools its itself java
    javascript jinja job joke json just kafka keep keeps kept key keyword kill killed kind kindly
    know known kubernetes kwarg label labelled large last lastly late later lead leak leaks learn
    least leave left less let level library license lift light like limit limiter limiting line
    lines linked linter list lists literal little load local localise localize locking log logging
    logic login long longer look loop lose lost lot low lower lru machine made magic main make
    manager many mark match matter maximum may maybe md me mean meaning meaningless means median
    member memoization memoize memory mend mention merge method methods metrics microservice might
    migrate migration mind minor misleading missing mistake mistakes mixin mktemp model modernise
    modernize modify module modules more morning most move moved much multiprocessing must mutable
    my name named namedtemporaryfile nameerror namely need needed needless needs negate negative
    neither nest nested nesting network never new next nice nicer nit no nobody noise none nor
    normal not note nothing now nuke null number numbers numpy obfuscate object objects oblige
    obsolete obvious occurrence of off often oh ok old omit on once one ones only onto open operands
    operator optimise optimize option optional or order os other otherwise ought our out outdated
    outdent output outside over own package paginate pagination pair pandas parallel parallelise
    parallelize param parameter parameterize parameterized parameters parametrise parametrised
    parametrize parse parser part partly parts pass passed password passwords path pathlib pattern
    people per percent percentile performant perhaps person pickle piece piles place placeholders
    places plain please pls plus plz poem point pointless points polars polish polls polymorphism
    poor port positional positive possible possibly postgres preceded precondition predict prefer
    prepend present preset pretty prevent previous print printing prints prior probable probably
    problem problems procedure produce produces profile program progress promote proper properly
    property propose protect provide provided pull pure purge purpose push put pydantic python
    pythonic query quick quicker quickly quiet quit quite race raise raised raises raising rate
    rather re read readability readable reading reads ready real really reason rebrand receive
    recent reconsider recursion redis reduce redundant refactor refer reformulate refuse regex
    regular rejected relabel relational relevant remain remaining remark remember remembers remove
    removed removing ren rename renamed renaming reorder replace report request requests require
    required rest restart restructure result results retitle retries retry return returned returning
    returns reusable reuse reverse reversed revert review reviewer rewrite rid right rm rn robust
    round route routine rows run runtimewarning rust s safe safer safety said same sanity save say
    saying says scale scrap script search second secret secrets secure security sed see seem seen
    select self send sense separate server set several sha shall shared she shell shield shifts
    short shortcut shorter should show shrinks sign signature signs silent similar simple simplify
    simply simulate since single skip skips slap slips slow small smaller so some somebody someone
    something sometimes somewhere soon sort sorting sounds source spanish special specific speed
    spell spelled split sql sqlalchemy squares ssl standard start state statement statements stay
    stick still stop store story str strange strategy streaming string strings strip stripped
    structure stuff style subclass subprocess subscriptable substitute subtract subtracted
    subtraction such suddenly suggest sum superfluous supply supplying support supposed sure surely
    surround swallow swap swapped switch switched symbol sync synchronous syntax system t tack tag
    tail take taken takes taking talk task tell telling tempfile templates terminates terrible test
    testable tests text than thank thanks that the their them then there therefore these they thing
    things think this those though thread threading threads three through throughout throw thrown
    throws thus thx tidy till time timeout timeouts titled tls to today todo together token
    tokenizer too took top toss total touches toward tracing trade transform translate trap trash
    treat tried trigger true truthy try tune tuple turn twice two type typed types typescript typing
    typo ugly un unannotated unclear uncomment undecorate undefined under understand undo undocument
    unicode unindent union unit unless unnecessary unneeded unnest unnoticed unresolved unroll
    unsafe until untrusted untype untyped unused unverified up update upfront upgrade upon us usage
    usages use used useful useless user users uses using usual usually vague validate validation
    value values vanish var variable variant vector vectorise vectorize verification verify version
    very via visibly visitor voluntary vulnerability wait want wants was watch way we weak web
    websockets well went were what whatever when whenever where wherever whether which while who
    whole whom whose why will windows wipe wish with within without wonder word work works worth
    would wrap write written wrong wrote xss yaml yes yet yield yields you your yours zero zones
"""

_PROSE = """
    abbreviation acceptable accepted accepts accessed accessible accessing accident accidentally
    accommodate accordingly accurate achieve acquired acts added adding adds advanced advice
    affect affected affects ages agree agrees aka allocated allowed allowing altered analytic
    annoying anonymous anyway anywhere apis apparently appears appended appending applicable
    applied applies applying appreciate approach appropriate appropriately approximately
    approximation aren argue arithmetic arrive ashamed asked asking asks assigning associate
    associated assume assumed assumes assuming assumption asynchronously attached attacker
    attempted attempting attention auditor auditors authorise authorised authorization
    authorized automatically autoscaling auxiliary available avoiding avoids awaits aware
    awkward awkwardly backed backend backoff backslash badly basic basically baz became
    beginners begins behalf behave behaves behavior belong belonging belongs bet bite bites
    bivariate blows booleans boss bothers boundary bounded bounding bpo brackets breakage
    breaking breaks brittle broad broadcasting builds builtin bunch bundled burned business
    bypass calculated calculates calculating calculation calculations capitalise capitalised
    captured capturing care carefully carries catches cause causes center central centre chained
    chance changing characters checked checker choices chokes chosen circular clarity clashes
    classification cleaning cleanly cleanup cleared clearing clears clipped clipping closes
    clustering clutter cluttered coding coefficient coefficients colleague colleagues collected
    collects color colour combination combining coming comma commands commas committed commonly
    comparable compares comparing compatibility compilation complained completes compliant
    complicated composed computation computes computing conda conditions conform confuse
    confused confusion conjunction connecting connective consecutive consequence considered
    considering considers consisting consists constructed constructing constructor constructs
    consumers consuming contained containing continuous contrast controlled convenience
    convenient conventions convergence conversion converted converting converts convinced
    coordinate cope copies copying corner correctly correlation correspond corresponding
    corresponds costs couldn counted counting coverage covered covers crashed crashing creates
    creating creation cryptic curious custom customer customers customise customised customized
    dataframes dates dealing deals decides decoding decomposition dedent dedicated deeply
    defensive defines defining definitely deleting deletion deliberately delimited denotes dense
    dependence dependent depending deployed deployment deploys derivative derived descendant
    described describes describing descriptive deserialization deserialized designed detailed
    detect detected detection detects determinant determine determined determines determining
    developer developers dictionaries didn dies differ differently differs dimensional disables
    discarded discover discussion displayed displaying displays distinguish divided division
    docs documented doubt downstream dozen drawing drawn driven dropping drops duplicate
    duplicated dynamically earlier earth easily edited editing effect effective effectively
    efficiently effort eight elements elementwise eleven elsewhere embarrassing embedded emits
    emitted emitting empirical enables encapsulating enclosing encodes encountered encrypted
    encryption ended endif endogenous ends enforce enjoy ensures ensuring entered entering
    entirely enumeration environments equally equivalent escapes escaping essentially establish
    established estimated estimates estimation evaluated evaluates evaluating evaluations
    evening eventually exact exceed exceeded exceeds exchanged exclude excluding executed
    executes execution exhausted existence exists exiting exogenous expecting expensive
    experience explains explanation explicitness explode explodes exported exposes expressed
    extends external extracted extracting facing failed failing failover fair fall falling falls
    fancy fashioned favor feels fetched fetching fewer fifteen fifth fifty filling fills
    filtering finding finds fire fired fires fitting five flagged flake flaky flattened flight
    flushed followed following fooled forces foreign forever forgets forgetting formed former
    four fourth fractional fragile frankly freed freedom frequency frequently fresh frustrating
    fully functionality garbage general generalized generated generates generating generators
    genuinely getting git giving gluing grab gracefully grained grateful ground grouped growing
    guaranteed guarantees guide guideline guidelines habit hack hadn handed handlers handles
    happened happening happily hardly harmful harmless hashable hasn hate hated hates haven held
    helpful helps hence heuristic hexadecimal hides hierarchical higher highest highlighting
    historical honest honestly honor honour hopefully horrible hot hurt hurts identical
    identifies identifying idiomatic iff ignores ignoring imagine implementations implemented
    implementing implicit implicitly implied implies importable imported importing impossible
    inactive included including inclusion incompatible inconsistent incorrect incorrectly
    indented independent independently indicate indicated indicates indicating individual
    individually inefficient inequality infinite information informative inherited
    initialisation initialising initialization initializing initiated inner innocent inputs
    insensitive inserted inserting insertion inspect installation installed installing installs
    instances instantiated instantiating instinct integration intended intent intention
    intentional intentionally interest interested intermediate intern internal internally
    interns interpret interpreted interrupts introduced intuitive invariant inverted invoked
    invokes invoking involve involved ironic irrelevant irritating isolation issued issuing
    iterates iterating iterators joining joint jump junior juniors keeping keyboard keyspace
    knowing knows lack lacks land larger largest latter lax lazily lazy leads leaving leftover
    leftovers legacy legal lets letters letting lie lies likely likes limited linearly lint
    linters listed listening listing lives locally located logarithm logged logical
    loglikelihood looked looking looks loud loudly love lowest lying mainly maintain maintained
    maintainer maintainers maintaining maintenance makes making malformed management mandatory
    manual manually mapped marginal marked masking matching math matters maximise maximised
    meaningful meant measure measured mentioned merging mess messes messy middle midnight mimic
    mini minimise minimised minus minutes mirrors misbehaves mislead misread misreading missed
    misses misspelled misspelt mix mixed mixing mocked modification modifications modifies
    modifying moment monday months mostly moves moving multiple multiplication multiplied
    multivariate mutate mutated mutating mutation mypy mysterious naive naming narrow nasty
    native natively natural ndarrays near nearest nearly necessarily necessary needful needing
    needlessly negated neighbour newcomers newer newly nicely nine ninety nocover noisily noisy
    nominal non nonlinear nonsense normalisation normalise normalised normalization normally
    notation notified numeric numerical numerically numexpr numpydoc objective obligatory
    observation observations obtain obtained obviously occasionally occur occurrences occurs odd
    offers older oldest omits omitted onwards opening openvino operating operators opposed
    opposite ops optimal optimised optimizations optimized optionally ordinary organise
    organised oriented originally others ourselves outage outermost outlier overall overhead
    overlapping overly overridden override overriding overwriting overwritten owned owns painful
    paper paranoid parentheses parenthesis parses parsing partially particular particularly
    party passes passing past pep perfectly perform performance performed performing performs
    periodically perpendicular personally pick picked pickling picky pieces pixel placed plainly
    play pleasant plotted pointed pointing politely polling pollute pollutes polluting popular
    populated portion possibility posterior potential potentially practice practices precede
    preceding precise precomputed predefined predictable prediction predictor preferably prefers
    prepended preprocessing presence presented preserve preserves preserving pressed presumably
    pretend preventing prevents previously primarily printable printed private processed
    processing produced producing production products promised propagate propagation protection
    protects protobuf provides providing publishing purposes puts pylint pyright pytorch qa
    quadratic qualified quantization queries querying questions quickest quietly quoted quotes
    quotient radial randomly rarely raster reach reached reaches reader readers realise realised
    realize realized reasonable reasonably receives receiving recently recognise recognised
    recognize recognized recommended recorded recording recursively redefined redirects reduces
    referenced referring refers reflect reflected reflects refused regarding regardless
    registering registers regressors rejects relationship relative relatively release released
    releases reliable relied relies rely relying remains reminder removes renders repair
    repeated repeatedly repeating repeats rephrase replaced replaces replacing replay replica
    reported reporting represent representation representations represented representing
    represents requested requesting requires requiring rerun resets resolving respect respective
    responsibility responsible restored restrictions resulting retain retrieve retrieved reused
    reveal reveals reviewed reviewers rfc risk risks risky rolled roughly rude ruff rule rules
    runs sad safely sampling satisfy saves scary scheduled scream screams scrolling searching
    seconds seems sees selecting semantic semantics sending sends senior sensible sensitive sent
    sentence separated separately serialisation serialise serialised serialization serializing
    seriously served serves sets setting seven shadowing shadows shallow shame shaped share
    sharing shipped shipping shorten shouldn showing shown shows shut shutting sided
    significance significant silence silently silly similarly simpler simplification simplified
    singleton situation six sixty sized skipped skipping slash slashes slightly sloppy smallest
    sneaky solid solution somehow somewhat sorry space spaced spam spammy speaks specifically
    specified specifies specify specifying spelling spelt splitting spoken sprint spurious
    stability staging stale standardized stands standup started starting stays stdlib steps
    stopped stops stored stores storing straight strangely strict strictly stripping stronger
    strongly structured stupid stylistic subclasses subdirectories submodules subscript
    subsequent substitution succeeds successfully successive suffers sufficient suggested
    suggests suitable summarise summarised supplied supported supporting supports suppose
    supposedly surprise surprised surprises surprising surrounding survive suspicious swallowed
    swallows symbolic synchronously synonym systems tangled team teammate teammates teams
    technically tells temporarily temporary ten tend tends terribly tested themselves thinks
    third thirty thousand ticket tidier timed timestamps told tonight touch touched towards
    traceback tracebacks tracked tracker tracks trailing transactional transfer transformations
    traversal treated treats trees triggering triggers tripped tripping trips trivial trouble
    troubles truncated trust truth trying tuples turned turns twelve twenty typical typically
    unable unaware unbounded unchanged unconditionally undecorated underlying underscore
    underscores understandable understands unescaped unexpected unfortunate unfortunately
    unhappy unhelpful unified unintuitive unions univariate unknown unlike unlikely unpacking
    unquoted unreachable unreadable unrelated unset unsigned unspecified unsupported untidy
    unwanted updating uploaded uppercase upset upside urgent usable utilise utilised valid
    validated validates validating validity valued various vary varying vectors verbose verified
    vice vulnerable waits wake wanted warns wasn wasted wasteful wastes ways weeks weighted
    weighting weird weirdly weren wheels whereas whichever whoever wide wire wise won wondering
    wont wording workaround working world worried worries worse worst wouldn wrapping writes
    writing wrongly yesterday yielding
"""

COMMON = frozenset(_WORDS.split()) | frozenset(_PROSE.split())
"""Lower-case words that are taken for words, not for names, unless their place says otherwise.

The second list is what comments and docstrings use often and code seldom uses as a name.
"""

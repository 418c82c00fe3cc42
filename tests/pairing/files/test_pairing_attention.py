"""Seconds on screen against changed lines, what may be accepted together, and the summary."""

from __future__ import annotations

import pytest

from midstream.edits.documents import SourceText
from midstream.edits.hunk_store import HunkStore
from midstream.edits.hunks import Hunk, HunkState
from midstream.edits.proposal import FileProposal
from midstream.guard.secrets import sensitive_part
from midstream.pairing.files.attention import (
    MAX_LINE_S,
    Attention,
    Numbers,
    Reading,
    Sighting,
    needed_s,
    risk_of,
)
from midstream.pairing.journal.entries import ReadSoFar


def made(*changes: tuple[str, str]) -> tuple[HunkStore, list[Hunk]]:
    """Hunks that replace old lines by new ones, with context between them."""
    old = "".join(f"{a}keep {n}\n" for n, (a, _) in enumerate(changes))
    new = "".join(f"{b}keep {n}\n" for n, (_, b) in enumerate(changes))
    store = HunkStore()
    proposal = FileProposal("m.py", SourceText.from_bytes(old.encode()), store)
    proposal.begin(0, len(proposal.base.lines))
    proposal.feed(new)
    proposal.finish()
    return store, store.for_path("m.py")


def watch(on: bool = True, flagged: str = "") -> Attention:
    return Attention(on, lambda hunk: flagged, ReadSoFar())


def test_a_hunk_that_stays_on_screen_is_no_news() -> None:
    _, [hunk] = made(("a\nb\n", "c\nd\n"))
    attention = watch()
    for _ in range(2):
        attention.look([Sighting(hunk, last=0.5)], MAX_LINE_S / 2)
    assert attention.news()[0] == [(hunk.id, [(MAX_LINE_S, 2), (0.0, 2)])]
    attention.look([Sighting(hunk, last=0.5)], 1.0)
    assert attention.news()[0] == []
    attention.look([Sighting(hunk)], 1.0)
    assert attention.news()[0] == [(hunk.id, [(MAX_LINE_S, 2), (1.0, 2)])]


def test_unseen_glimpsed_read() -> None:
    _, [hunk] = made(("a\nb\nc\nd\n", "e\nf\ng\nh\n"))
    assert needed_s(hunk) == 0.8
    attention = watch()
    assert attention.reading(hunk) is Reading.UNSEEN
    for _ in range(3):
        attention.look([Sighting(hunk)], 0.25)
    assert attention.reading(hunk) is Reading.GLIMPSED
    attention.look([Sighting(hunk)], 0.25)
    assert attention.reading(hunk) is Reading.READ


def test_one_line_needs_the_least_and_long_pauses_do_not_count() -> None:
    _, [small, large] = made(("", "x\n"), ("a\n" * 9, "b\n" * 9))
    assert needed_s(small) == 0.4
    attention = watch()
    attention.look([Sighting(small), Sighting(large)], 3600)
    assert attention.reading(small) is Reading.READ
    assert attention.reading(large) is Reading.GLIMPSED


def test_a_hunk_in_full_view_for_two_seconds_is_read_whatever_its_size() -> None:
    _, [hunk] = made(("a\n" * 30, "b\n" * 30))
    attention = watch()
    for _ in range(10):
        attention.look([Sighting(hunk)], 0.2)
    assert attention.bulk([hunk]).read == (hunk.id,)


def test_each_line_counts_by_itself() -> None:
    _, [hunk] = made(("", "x\n" * 40))
    attention = watch()
    for _ in range(8):
        attention.look([Sighting(hunk, 0.0, 0.5)], 1.0)
    assert attention.reading(hunk) is Reading.UNSEEN, "the bottom was never on screen"
    for _ in range(2):
        attention.look([Sighting(hunk, 0.5, 1.0)], 1.0)
    assert attention.reading(hunk) is Reading.READ


def test_the_parts_of_a_split_hunk_have_been_on_screen_as_long_as_it_was() -> None:
    store, [hunk] = made(("", "x\ny\n"))
    attention = watch()
    attention.look([Sighting(hunk)], 1.0)
    parts = store.split(hunk.id, [(0, 1)])
    assert [attention.reading(part) for part in parts] == [Reading.READ, Reading.READ]


def test_new_text_is_unread() -> None:
    store, [hunk] = made(("", "x\n"))
    attention = watch()
    attention.look([Sighting(hunk)], 1.0)
    assert attention.reading(hunk) is Reading.READ
    store.edit(hunk.id, ["y"])
    assert attention.reading(hunk) is Reading.UNSEEN


def test_bulk_sorts_by_what_was_read_and_by_risk() -> None:
    changes = [("", "x\n"), ("", "y\n"), ("    assert x\n", ""), ("", "db.execute(q)\n")]
    _, hunks = made(*changes)
    attention = watch()
    attention.look([Sighting(hunks[0]), Sighting(hunks[2])], 1.0)
    bulk = attention.bulk(hunks)
    assert bulk.read == (hunks[0].id,)
    assert bulk.unread == (hunks[1].id,)
    assert bulk.risky == (
        (hunks[2].id, "takes a test or a check away"),
        (hunks[3].id, "is about SQL"),
    )


def test_off_only_what_the_guard_found_stays_out() -> None:
    _, hunks = made(("", "x\n"), ("", "db.execute(q)\n"))
    assert watch(on=False).bulk(hunks).read == tuple(hunk.id for hunk in hunks)
    flagged = watch(on=False, flagged="S608").bulk(hunks)
    assert flagged.read == ()
    assert len(flagged.risky) == 2
    assert watch(on=False).summary(hunks) == ""


def test_the_summary_counts_what_stands() -> None:
    store, hunks = made(("", "x\n"), ("", "y\n"))
    attention = watch()
    assert attention.summary(store) == ""
    attention.look([Sighting(hunks[0])], 1.0)
    for hunk in hunks:
        attention.accepted_all(store, (hunk.id,))
        store.accept(hunk.id)
    assert "1 of 2 hunks (1 line) accepted without" in attention.summary(store)
    store.undo()
    assert hunks[1].state is HunkState.SETTLED
    assert attention.numbers(store).unread_hunks == 0
    assert attention.summary(store) == ""


def test_numbers_and_trailer_say_how_much_was_accepted_unread() -> None:
    store, hunks = made(("", "x\n"), ("a\n", "y\nz\n"))
    attention = watch()
    assert attention.trailer(store) == ""
    for hunk in hunks:
        attention.accepted_all(store, (hunk.id,))
        store.accept(hunk.id)
    assert attention.numbers(store) == Numbers(hunks=2, lines=4, unread_hunks=2, unread_lines=4)
    assert attention.trailer(store) == "Accepted-Unread: 2 of 2 hunks, 4 of 4 lines"
    assert attention.trailer(hunks[:1]) == "Accepted-Unread: 1 of 1 hunk, 1 of 1 line"
    assert watch(on=False).trailer(store) == ""


def test_what_was_accepted_in_a_group_is_not_called_unread() -> None:
    store, hunks = made(("", "x\n"), ("a\n", "y\nz\n"), ("b\n", "c\n"))
    attention = watch()
    assert attention.brief(store) == ""
    attention.look([Sighting(hunks[0])], 1.0)
    ids = [hunk.id for hunk in hunks]
    attention.accepted_all(store, ids)
    store.decide(ids, HunkState.ACCEPTED)
    assert attention.brief(store) == "2 hunks unread"
    attention.accepted_together("rename", ids[:2])
    assert attention.brief(store) == "1 hunk unread, 1 in groups"
    assert attention.was_unread(hunks[2])
    assert attention.in_groups(store) == (1, 1)
    assert watch(on=False).brief(store) == ""
    # Taken back and accepted by itself, a hunk is in no group.
    store.undo()
    attention.accepted_all(store, ids[1:2])
    store.accept(ids[1])
    assert attention.brief(store) == "1 hunk unread"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "    if not ok:\n        raise ValueError\n",
            "    pass\n",
            "takes a test or a check away",
        ),
        ("def test_a():\n    pass\n", "", "takes a test or a check away"),
        ("    raise ValueError\n", "    raise TypeError\n", ""),
        ("", "subprocess.run(x)\n", "is about running programs"),
        ("", "if user.is_admin:\n", "is about authentication"),
        ("", "author = name\n", ""),
        ("total = 0\n", "found = 0\n", ""),
    ],
)
def test_risks(old: str, new: str, why: str) -> None:
    _, hunks = made((old, new))
    assert risk_of(hunks[0]) == why


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("app/auth.py", "auth"),
        ("authentication/views.py", "authentication"),
        ("src/AuthService.ts", "Auth"),
        ("lib/oauth2_client.go", "oauth2"),
        ("crypto/keys.py", "crypto"),
        ("payment.py", "payment"),
        ("shop/checkout/views.py", "checkout"),
        (".github/workflows/release.yml", ".github/workflows"),
        (".gitlab-ci.yml", ".gitlab-ci"),
        ("Jenkinsfile", "Jenkinsfile"),
        ("deploy/secrets.yaml", "secrets"),
        ("web/.env.production", ".env"),
        ("author.py", ""),
        ("blog/authors.py", ""),
        ("pay.md", ""),
        ("environment.py", ""),
    ],
)
def test_what_in_a_path_asks_for_a_deeper_model(path: str, part: str) -> None:
    assert sensitive_part(path) == part

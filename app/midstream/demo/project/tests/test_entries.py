from tally.entries import Entry, for_client, parse_minutes, total_minutes


def test_parse_minutes():
    assert parse_minutes("1:30") == 90
    assert parse_minutes("45") == 45


def test_for_client():
    entries = [Entry("2026-10-02", "Acme", 30), Entry("2026-10-01", "Acme", 60), Entry("2026-10-01", "Globex", 5)]
    assert [entry.minutes for entry in for_client(entries, "Acme")] == [60, 30]


def test_total_minutes():
    assert total_minutes([Entry("2026-10-01", "Acme", 60), Entry("2026-10-02", "Acme", -5)]) == 60

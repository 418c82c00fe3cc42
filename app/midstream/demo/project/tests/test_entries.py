import unittest

from tally.entries import Entry, for_client, parse_minutes, total_minutes


class Entries(unittest.TestCase):
    def test_parse_minutes(self):
        self.assertEqual(parse_minutes("1:30"), 90)
        self.assertEqual(parse_minutes("45"), 45)

    def test_for_client(self):
        entries = [
            Entry("2026-10-02", "Acme", 30),
            Entry("2026-10-01", "Acme", 60),
            Entry("2026-10-01", "Globex", 5),
        ]
        self.assertEqual([entry.minutes for entry in for_client(entries, "Acme")], [60, 30])

    def test_total_minutes(self):
        entries = [Entry("2026-10-01", "Acme", 60), Entry("2026-10-02", "Acme", -5)]
        self.assertEqual(total_minutes(entries), 60)

import unittest

from tally.money import add_tax, format_amount, split_evenly, to_cents


class Money(unittest.TestCase):
    def test_to_cents(self):
        self.assertEqual(to_cents("12.5"), 1250)
        self.assertEqual(to_cents("7"), 700)

    def test_format_amount(self):
        self.assertEqual(format_amount(-1250, "EUR"), "-12.50 EUR")

    def test_add_tax(self):
        self.assertEqual(add_tax(1000, 0.19), 1190)

    def test_split_evenly(self):
        self.assertEqual(split_evenly(100, 3), [34, 33, 33])

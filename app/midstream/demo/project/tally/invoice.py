"""Turning hours into an invoice."""

from tally.entries import for_client, total_minutes
from tally.money import CURRENCY, add_tax, format_amount


class Invoice:
    """The hours of one client at one rate."""

    def __init__(self, client, entries, rate):
        self.client = client
        self.entries = for_client(entries, client)
        self.rate = rate
        self.paid = False

    def net(self):
        """Return the amount before tax, in cents."""
        minutes = total_minutes(self.entries)
        return minutes * self.rate // 60

    def gross(self):
        """Return the amount with tax, in cents."""
        return add_tax(self.net(), 0.19)

    def mark_paid(self, day):
        """Remember when the invoice was paid."""
        if self.paid:
            print("invoice was paid already")
            return False
        self.paid = True
        self.paid_on = day
        return True

    def lines(self):
        """Return the invoice as lines of text."""
        result = ["Invoice for " + self.client, ""]
        for entry in self.entries:
            hours = entry.minutes / 60
            result.append("%s  %5.2f h  %s" % (entry.day, hours, entry.note))
        result.append("")
        result.append("Net    " + format_amount(self.net(), CURRENCY))
        result.append("Total  " + format_amount(self.gross(), CURRENCY))
        return result

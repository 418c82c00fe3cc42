"""Which invoices are due for a friendly reminder."""

import datetime


def days_late(due, today):
    """Return how many days an invoice is overdue, 0 if it is not."""
    delta = today - due
    if delta.days > 0:
        return delta.days
    else:
        return 0


def reminder_text(client, days):
    """Return the text of a reminder that fits the delay."""
    if days > 30:
        return "Dear %s, your invoice is %d days overdue." % (client, days)
    if days > 7:
        return "Hello %s, a gentle reminder about your invoice." % client
    return ""


def needs_reminder(invoice, due, today):
    """Tell whether a reminder should go out today."""
    if invoice.paid:
        return False
    late = days_late(due, today)
    return late > 7 and late % 7 == 0


def next_reminder(due, today):
    """Return the day on which the next reminder is sent."""
    late = days_late(due, today)
    wait = 7 - late % 7
    return today + datetime.timedelta(days=wait)

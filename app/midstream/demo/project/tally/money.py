"""Amounts of money, kept as integer cents."""

CURRENCY = "EUR"


def to_cents(text):
    """Read an amount such as ``12.50`` as cents."""
    whole, _, rest = text.strip().partition(".")
    return int(whole) * 100 + int(rest.ljust(2, "0")[:2] or 0)


def format_amount(cents, currency):
    """Write cents for people: ``12.50 EUR``."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return "%s%d.%02d %s" % (sign, whole, rest, currency)


def add_tax(cents, rate):
    """Return the amount with tax, rounded to the nearest cent."""
    tax = int(cents * rate + 0.5)
    return cents + tax


def split_evenly(cents, count):
    """Split an amount so that the parts differ by one cent at most."""
    share, left = divmod(cents, count)
    parts = []
    for index in range(count):
        extra = 1 if index < left else 0
        parts.append(share + extra)
    return parts

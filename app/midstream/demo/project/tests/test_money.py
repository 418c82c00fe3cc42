from tally.money import add_tax, format_amount, split_evenly, to_cents


def test_to_cents():
    assert to_cents("12.5") == 1250
    assert to_cents("7") == 700


def test_format_amount():
    assert format_amount(-1250, "EUR") == "-12.50 EUR"


def test_add_tax():
    assert add_tax(1000, 0.19) == 1190


def test_split_evenly():
    assert split_evenly(100, 3) == [34, 33, 33]

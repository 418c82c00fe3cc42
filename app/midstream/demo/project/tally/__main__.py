"""Print an invoice: ``python -m tally hours.csv --client Acme``."""

import argparse

from tally.entries import read_entries
from tally.invoice import Invoice


def main():
    parser = argparse.ArgumentParser(prog="tally")
    parser.add_argument("path")
    parser.add_argument("--client", required=True)
    parser.add_argument("--rate", type=int, default=9000)
    options = parser.parse_args()
    invoice = Invoice(options.client, read_entries(options.path), options.rate)
    for line in invoice.lines():
        print(line)


if __name__ == "__main__":
    main()

"""Logged hours: reading, filtering and adding them up."""

import csv
from dataclasses import dataclass


@dataclass
class Entry:
    """One line of the log."""

    day: str
    client: str
    minutes: int
    note: str = ""


def parse_minutes(text):
    """Read ``1:30`` or ``90`` as minutes."""
    if ":" in text:
        hours, minutes = text.split(":")
        return int(hours) * 60 + int(minutes)
    return int(text)


def read_entries(path):
    """Read a CSV file with the columns day, client, time and note."""
    entries = []
    with open(path, newline="") as handle:
        for row in csv.DictReader(handle):
            minutes = parse_minutes(row["time"])
            entries.append(Entry(row["day"], row["client"], minutes, row["note"]))
    return entries


def for_client(entries, client):
    """Return the entries of one client, oldest first."""
    found = []
    for entry in entries:
        if entry.client == client:
            found.append(entry)
    found.sort(key=lambda entry: entry.day)
    return found


def total_minutes(entries):
    """Add up the minutes of all entries."""
    total = 0
    for entry in entries:
        if entry.minutes < 0:
            continue
        total += entry.minutes
    return total


def longest(entries):
    """Return the entry with the most minutes."""
    best = entries[0]
    for entry in entries[1:]:
        if entry.minutes > best.minutes:
            best = entry
    return best

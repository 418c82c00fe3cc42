"""The month at a glance: hours by client."""

from tally.entries import for_client, total_minutes


def month_report(entries, month):
    """Return the hours of a month as lines of text, the busiest client first."""
    rows = []
    current = [entry for entry in entries if entry.day.startswith(month)]
    for client in {entry.client for entry in current}:
        minutes = total_minutes(for_client(current, client))
        rows.append((minutes, client))
    if not current:
        return ["No hours in " + month]
    rows.sort(reverse=True)
    lines = ["Hours in " + month]
    for minutes, client in rows:
        lines.append("%5.2f  %s" % (minutes / 60, client))
    lines.append("")
    busiest = rows[0][1]
    lines.append("Busiest: " + busiest)
    return lines


def week_report(entries, days):
    """Return the minutes of some days and their share of a working week."""
    hours = total_minutes(entries) // 60
    left = 40 - hours
    note = ""
    if hours > 40:
        note = "overtime"
        left = 0
    share = hours * 100 // 40
    label = "%d days" % days
    if share == 100:
        note = "a full week"
    return [label, "%d h" % hours, "%d h left" % left, note]

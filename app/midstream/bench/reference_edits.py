"""The edits used to measure the engine: an instruction and a function each."""

from __future__ import annotations

from midstream.edits.request import RegionRequest, render_request
from midstream.engine.types import GenerateRequest, Message

_TOTAL = """def total(items, tax, discount=0.0):
    result = 0
    for item in items:
        if item is None:
            continue
        result += item.price * item.count
    if discount:
        result *= 1 - discount
    return result * (1 + tax)
"""

_READ = """def read_config(path, defaults):
    values = dict(defaults)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            key, found, value = line.partition("=")
            if not found:
                raise ValueError("%s:%d: no value" % (path, number))
            values[key.strip()] = value.strip()
    return values
"""

_FIND = """def find_user(users, name, active=True):
    for user in users:
        if user.name == name:
            if active and not user.active:
                return None
            else:
                return user
    return None
"""

_MERGE = """def merge(left, right):
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    merged.extend(left[i:])
    merged.extend(right[j:])
    return merged
"""

_SEND = """    def send(self, message, retries=3):
        for attempt in range(retries):
            try:
                self.connection.write(message.encode())
                self.sent += 1
                return True
            except ConnectionError:
                self.reconnect()
        return False
"""

_REPORT = """def report(rows, width):
    lines = []
    for row in rows:
        name = row["name"]
        amount = row["amount"]
        lines.append("{}: {}".format(name, amount))
    header = "=" * width
    return header + "\\n" + "\\n".join(lines)
"""

REFERENCE_EDITS: tuple[tuple[str, str], ...] = (
    ("rename `result` to `amount`", _TOTAL),
    ("add a parameter `rounding` with default `2`", _TOTAL),
    ("rename `values` to `settings`", _READ),
    ("add a parameter `encoding` with default `'utf-8'`", _READ),
    ("remove the else after return", _FIND),
    ("rename `name` to `wanted`", _FIND),
    ("rename `merged` to `out`", _MERGE),
    ("return an empty list if `left` is None", _MERGE),
    ("rename `attempt` to `turn`", _SEND),
    ("add the decorator `@traced`", _SEND),
    ("use an f-string", _REPORT),
    ("rename `rows` to `records`", _REPORT),
)


def edit_requests() -> list[GenerateRequest]:
    """Return the reference edits as requests."""
    return [_request(instruction, region) for instruction, region in REFERENCE_EDITS]


def long_requests() -> list[GenerateRequest]:
    """Return edits of one long region: four of the functions, and a rename in each."""
    region = "\n\n".join((_TOTAL, _READ, _FIND, _MERGE))
    renames = [text for text, function in REFERENCE_EDITS if function in region]
    return [_request(text, region) for text in renames if text.startswith("rename")]


def screenful_requests() -> list[GenerateRequest]:
    """Return the edits of two of the functions as edits of one region of 24 lines."""
    region = "\n\n".join((_TOTAL, _MERGE))
    return [_request(text, region) for text, function in REFERENCE_EDITS if function in region]


def _request(instruction: str, region: str) -> GenerateRequest:
    text = render_request(
        RegionRequest(instruction=instruction, region=region, path="reference.py")
    )
    return GenerateRequest(messages=(Message("user", text),), max_output_tokens=512)

"""Corrections by the guard become requests about the line itself."""

from __future__ import annotations

from midstream.engine.edit_request import EditRequest, corrected_request
from midstream.guard.correction import Correction, CorrectionRequest

CORRECTION = Correction(
    7,
    "S605",
    "Starting a process with a shell",
    "Use subprocess.run with a list of arguments.",
)
REGION = """    def clean(self, path):
        if path:
            self.log(path)
        return path
"""


def corrected(asked: str, kept: str, region: str = REGION) -> EditRequest:
    said = CorrectionRequest(asked, CORRECTION)
    request = EditRequest(said.instruction, region, kept=kept, earlier=(asked,), correction=said)
    return corrected_request(request)


def test_the_line_is_put_where_the_rewrite_has_come_to() -> None:
    kept = REGION.splitlines(keepends=True)[0]
    made = corrected("add `os.system(path)` at the top", kept)
    assert made.instruction == "Use subprocess.run with a list of arguments."
    assert made.region == kept + "        os.system(path)\n" + REGION[len(kept) :]
    assert (made.kept, made.earlier) == (kept, ())


def test_its_indent_is_that_of_its_neighbours() -> None:
    rows = REGION.splitlines(keepends=True)
    before_return = corrected("run `os.system(path)` before the return", "".join(rows[:3]))
    assert before_return.region.splitlines()[3] == "        os.system(path)"
    at_the_end = corrected("end with `os.system(path)`", REGION)
    assert at_the_end.region.splitlines()[4] == "        os.system(path)"
    inside = corrected("call `os.system(path)` first", "".join(rows[:2]))
    assert inside.region.splitlines()[2] == "            os.system(path)"


def test_a_line_that_is_there_is_not_put_there_again() -> None:
    region = REGION.replace("self.log(path)", "os.system(path)")
    kept = "".join(region.splitlines(keepends=True)[:2])
    made = corrected("rename `os.system(path)` to x", kept, region)
    assert made.region == region
    assert corrected("make it quick", kept, region).region == region


def test_any_other_request_stays_as_it_is() -> None:
    said = CorrectionRequest("add a comment", CORRECTION).instruction
    request = EditRequest(said, REGION)
    assert corrected_request(request) is request, "words alone are no correction"

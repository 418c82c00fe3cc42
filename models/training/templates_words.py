"""How people name types and conditions."""

from __future__ import annotations

TYPE_WORDS: dict[str, list[str]] = {
    "str": ["str", "string", "text"],
    "int": ["int", "integer", "whole number"],
    "float": ["float", "floating point number"],
    "bool": ["bool", "boolean", "flag"],
    "bytes": ["bytes"],
    "list[str]": ["list of str", "list of strings", "list of string"],
    "list[int]": ["list of int", "list of ints", "list of integers"],
    "list[float]": ["list of floats", "list of float"],
    "dict[str, str]": ["dict of str to str", "dict from str to str"],
    "dict[str, int]": ["dict of str to int", "dict from str to int"],
    "dict": ["dict", "dictionary"],
    "list": ["list"],
    "tuple": ["tuple"],
    "set": ["set"],
    "set[str]": ["set of str", "set of strings"],
    "str | None": ["optional str", "optional string", "str or None", "string or None"],
    "int | None": ["optional int", "int or None"],
    "float | None": ["optional float", "float or None"],
    "bool | None": ["optional bool", "bool or None"],
    "dict | None": ["optional dict", "dict or None"],
    "None": ["None", "nothing"],
    "object": ["object"],
    "tuple[int, int]": ["tuple of two ints", "pair of ints"],
    "tuple[str, str]": ["pair of strings"],
}

CONDITION_WORDS: dict[str, list[str]] = {
    "{x} is None": [
        "{x} is None",
        "{x} is none",
        "{x} is missing",
        "there is no {x}",
        "{x} is not given",
        "{x} isn't given",
        "{x} is not provided",
        "{x} was not passed",
        "no {x} is given",
        "{x} is null",
        "{x} is absent",
    ],
    "not {x}": [
        "{x} is empty",
        "not {x}",
        "{x} is falsy",
        "{x} is not set",
        "{x} is blank",
        "{x} has no items",
        "{x} is an empty list",
        "{x} is false",
        "{x} has nothing in it",
        "{x} isn't set",
        "there is nothing in {x}",
    ],
    "{x} < 0": [
        "{x} is negative",
        "{x} < 0",
        "{x} is less than zero",
        "{x} is below 0",
        "{x} is smaller than 0",
        "{x} is under zero",
        "{x} gets negative",
    ],
    "{x} == 0": ["{x} is zero", "{x} is 0", "{x} == 0", "{x} equals 0", "{x} equals zero"],
    "{x} <= 0": ["{x} is not positive", "{x} <= 0", "{x} is zero or less", "{x} isn't positive"],
    "{x}": ["{x} is set", "{x} is true", "{x}", "{x} is truthy", "{x} is not empty"],
    "{x} is not None": ["{x} is not None", "{x} is given", "{x} is not none", "{x} was given"],
}

COMPARISON_WORDS: dict[str, list[str]] = {
    ">": [
        ">",
        "is greater than",
        "is more than",
        "is above",
        "exceeds",
        "is over",
        "is larger than",
    ],
    ">=": [">=", "is at least", "is greater than or equal to", "reaches"],
    "<": ["<", "is less than", "is below", "is smaller than", "is under", "is fewer than"],
    "<=": ["<=", "is at most", "is less than or equal to"],
    "==": ["==", "is", "equals", "is equal to", "is exactly"],
    "!=": ["!=", "is not", "is not equal to", "differs from"],
}

KIND_WORDS: dict[str, list[str]] = {
    "str": ["is not a string", "is no string", "is not a str", "isn't a string"],
    "int": ["is not an int", "is no integer", "is not an integer", "isn't an int"],
    "list": ["is not a list", "is no list", "isn't a list"],
    "dict": ["is not a dict", "is no dict", "isn't a dictionary"],
    "bytes": ["is not bytes", "isn't bytes"],
    "tuple": ["is not a tuple", "isn't a tuple"],
}

VALUE_WORDS: dict[str, list[str]] = {
    "[]": ["an empty list", "empty list", "the empty list"],
    "{}": ["an empty dict", "an empty dictionary", "empty dict"],
    '""': ["an empty string", "the empty string", "empty string"],
    "None": ["none", "nothing", "None"],
    "True": ["true"],
    "False": ["false"],
    "0": ["zero"],
    "1": ["one"],
    "2": ["two"],
    "3": ["three"],
    "5": ["five"],
    "10": ["ten"],
    "60": ["sixty"],
    "100": ["a hundred", "hundred"],
    "-1": ["minus one"],
    "()": ["an empty tuple"],
}
"""How people say values without writing them."""

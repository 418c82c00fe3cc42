"""Instruction templates: how people ask for each kind of edit.

A template is a small pattern: `(a|b)` chooses, `[x]` is optional, `{name}` is filled in. Each
template is one family. `TEMPLATES` and `MORE` are for training; the families of `NEW` are kept for
measuring how the model takes phrasings that it never saw. Styles (quotes, politeness, sloppy
typing) are applied on top by `write`.
"""

from __future__ import annotations

import random
import re

TEMPLATES: dict[str, list[str]] = {
    "rename_local": [
        "rename [the] (variable|local|local variable|var) {old} to {new}",
        "rename {old} to {new}",
        "{old} -> {new}",
        "change [the] (name|variable name) {old} (to|into) {new}",
        "rename {old} {new}",
        "rename {old} as {new}",
        "call [the] [variable] {old} {new} instead",
        "{old} should be (called|named) {new}",
        "use {new} instead of {old} [as the name]",
        "use [the name] {new} for {old}",
        "rename {old} -> {new}",
        "change the name of {old} to {new}",
        "(replace|change) {old} (with|to) {new} [everywhere]",
        "(replace|change) [the variable] {old} (by|to) {new}",
        "{old} is a bad name, (call it|use|rename it to) {new}",
        "give {old} a better name: {new}",
    ],
    "rename_parameter": [
        "rename [the] (parameter|argument|param|arg) {old} to {new}",
        "rename {old} to {new}",
        "change [the] (parameter|argument) [name] {old} to {new}",
        "the (parameter|argument) {old} should be (called|named) {new}",
        "{old} -> {new}",
        "(parameter|argument|arg) {old} -> {new}",
        "call the (parameter|argument) {old} {new} instead",
        "change the name of the (parameter|argument|param) {old} to {new}",
        "rename parameter {old} {new}",
        "use {new} instead of {old} [for the parameter]",
    ],
    "rename_function": [
        "rename [the] (function|method) {old} to {new}",
        "rename {old} to {new}",
        "rename (this|the) (function|method) to {new}",
        "change the (function|method) name to {new}",
        "call (this|the) (function|method) {new} [instead]",
        "{old} -> {new}",
        "{old} should be (called|named) {new}",
        "change the name of {old} to {new}",
    ],
    "rename_attribute": [
        "rename [the] (attribute|field|property|member) {old} to {new}",
        "rename {dotted} to {newdotted}",
        "rename {old} to {new}",
        "the attribute {old} should be (called|named) {new}",
        "{dotted} -> {newdotted}",
        "(replace|change) {dotted} (with|to) {newdotted}",
        "use {newdotted} instead of {dotted}",
        "the attribute {old} is now (called|named) {new}",
    ],
    "replace_name": [
        "(replace|change) {old} (with|to) {new}",
        "use {new} instead of {old}",
        "call {new} instead of {old}",
        "{new} instead of {old}",
        "replace [all] (calls to|uses of) {old} with {new}",
        "switch from {old} to {new}",
        "{old} is now [called] {new}",
        "swap {old} for {new}",
    ],
    "replace_exception": [
        "raise {new} instead of {old}",
        "(replace|change) [the exception] {old} (with|to) {new}",
        "use {new} instead of {old}",
        "change the exception [type] to {new}",
        "raise [a] {new} [here]",
        "it should raise {new}, not {old}",
        "change the (error|exception) from {old} to {new}",
        "{new} instead of {old}",
    ],
    "add_parameter": [
        "add [a] [new] (parameter|argument|param) {name} with [the] default [value] {value}",
        "add {sig}",
        "add [a] [new] (parameter|argument|param) {sig}",
        "add (parameter|argument|arg) {name} defaulting to {value}",
        "add [a] (parameter|argument|param) {name}, default {value}",
        "add an optional (parameter|argument) {name} [=|with default] {value}",
        "give it a [new] (parameter|argument) {name} with default {value}",
        "(it|the function) needs a (parameter|argument) {name} that defaults to {value}",
        "new (parameter|argument) {name} = {value}",
        "(take|accept) [an] [extra] (parameter|argument) {name} with default {value}",
        "let the caller pass {name}, default {value}",
        "extend the signature with {name} = {value}",
    ],
    "add_parameter_plain": [
        "add [a] [new] (parameter|argument|param) {name}",
        "add [a] (parameter|argument) (called|named) {name}",
        "give it a [new] (parameter|argument) {name}",
        "(it|the function) should take a (parameter|argument) {name}",
        "new (parameter|argument) {name}",
        "add {name} to the (parameters|signature|arguments)",
        "(it|the function) needs a (parameter|argument) {name}",
        "add {name} as [a] [new] (parameter|argument)",
    ],
    "remove_parameter": [
        "remove [the] [unused] (parameter|argument|param) {name}",
        "delete [the] (parameter|argument) {name}",
        "drop [the] (parameter|argument|param|arg) {name}",
        "get rid of the (parameter|argument) {name}",
        "remove {name} from the (signature|parameters|arguments)",
        "the (parameter|argument) {name} is unused, remove it",
        "drop {name} from the signature",
        "{name} is not needed [as a parameter], (remove|drop) it",
    ],
    "change_default": [
        "change the default [value] of {name} to {value}",
        "set the default [value] of {name} to {value}",
        "make {name} default to {value}",
        "{name} should default to {value}",
        "change the default of {name} from {old} to {value}",
        "let {name} default to {value}",
        "default {name} to {value}",
        "use {value} as [the] default for {name}",
        "give {name} [the] default [value] {value}",
        "the default of {name} should be {value}",
    ],
    "add_decorator": [
        "add [a] [the] decorator {decorator}",
        "add [the] {decorator} decorator",
        "decorate (it|the function|this|the method|{name}) with {decorator}",
        "add {decorator}",
        "add {decorator} (to|on|above) {name}",
        "put {decorator} (on|above|on top of) (it|the function|{name})",
        "apply {decorator} [to {name}]",
        "it needs the {decorator} decorator",
        "use {decorator} on (it|{name}|this function)",
        "mark it with {decorator}",
    ],
    "remove_decorator": [
        "remove [the] decorator {decorator}",
        "remove [the] {decorator} decorator",
        "drop [the] {decorator} [decorator]",
        "delete the decorator {decorator}",
        "get rid of (the {decorator} decorator|{decorator})",
        "remove {decorator}",
        "take {decorator} off",
        "no {decorator} [please]",
    ],
    "remove_decorators": [
        "remove (the|all|all the) decorators",
        "drop the decorators",
        "delete (the|all) decorators",
        "no decorators",
    ],
    "guard_return": [
        "return {value} if {cond}",
        "if {cond}[,] return {value}",
        "add a guard clause: return {value} if {cond}",
        "return {value} early if {cond}",
        "return early with {value} if {cond}",
        "add a (guard|check) that returns {value} (if|when) {cond}",
        "when {cond}[,] return {value}",
        "it should return {value} (if|when) {cond}",
        "(add an early return|early return): return {value} (if|when) {cond}",
        "bail out with {value} (if|when) {cond}",
        "return {value} (right away|first|at the top) (if|when) {cond}",
        "in case {cond}, return {value}",
    ],
    "guard_plain": [
        "return early if {cond}",
        "add a guard clause for {cond}",
        "return if {cond}",
        "if {cond}[,] (return|return early|just return)",
        "(add an early return|early return) (if|when) {cond}",
        "do nothing (if|when) {cond}",
        "stop early (if|when) {cond}",
        "(bail out|exit early) (if|when) {cond}",
    ],
    "guard_raise": [
        "raise {error} if {cond}",
        "if {cond}[,] raise {error}",
        "add a guard clause: raise {error} if {cond}",
        "add a check that raises {error} (if|when) {cond}",
        "(it should raise|raise) [a] {error} (if|when) {cond}",
        "guard: raise {error} (if|when) {cond}",
        "when {cond}[,] raise {error}",
        "throw {error} (if|when) {cond}",
    ],
    "add_hint": [
        "annotate {name} as {type}",
        "add [a] type (hint|annotation) {type} to {name}",
        "{name} is (a|an) {type}",
        "add [the] type (hint|annotation) {type} for [the] [parameter] {name}",
        "type {name} as {type}",
        "{name}: {type}",
        "give {name} the type {type}",
        "{name} should be (a|an|of type) {type}",
        "hint {name} as {type}",
        "annotate [the] (parameter|argument) {name} (with|as) {type}",
        "(the|the parameter) {name} has type {type}",
        "set the type of {name} to {type}",
    ],
    "add_return_hint": [
        "add [a] return type {type}",
        "it returns (a|an) {type}",
        "annotate the return type as {type}",
        "the return type is {type}",
        "add [the] return (annotation|type hint|hint) {type}",
        "add -> {type}",
        "set the return type to {type}",
        "it returns {type}, (add the hint|annotate it)",
        "annotate it to return {type}",
        "-> {type}",
    ],
    "remove_hints": [
        "remove (the|all|all the) type (hints|annotations)",
        "drop (the|all) type (hints|annotations)",
        "strip (the|all) (type hints|annotations|types)",
        "no type (hints|annotations)",
        "delete the (type hints|annotations)",
        "remove the types",
    ],
    "extract_constant": [
        "extract {literal} (to|into) [a] constant {name}",
        "extract [the] constant {name} (for|from) {literal}",
        "make {literal} a constant [called|named] {name}",
        "move {literal} (to|into) [a] constant {name}",
        "replace {literal} with a constant {name}",
        "introduce [a] constant {name} for {literal}",
        "pull {literal} out into {name}",
        "put {literal} (in|into) a constant {name}",
        "name the (magic number|value|constant) {literal} {name}",
        "define {name} = {literal} and use it",
    ],
    "extract_variable": [
        "extract {expr} (to|into) [a] [variable] {name}",
        "extract {expr} as {name}",
        "introduce [a] variable {name} for {expr}",
        "put {expr} (in|into) a [variable] [called] {name}",
        "assign {expr} to [a] [variable] {name} [first]",
        "move {expr} (to|into) [a] [local] variable {name}",
        "pull {expr} out into {name}",
        "store {expr} in {name}",
    ],
    "fstring": [
        "(convert|change) to [an] f-string",
        "use [an] f-string",
        "use f-strings",
        "(convert|change|turn) (the strings|the formatting|it) (to|into) [an] (f-string|f-strings)",
        "replace the (formatting|% formatting|string formatting|format call) with [an] f-string",
        "(make|turn) this [string] [into] an f-string",
        "f-string [please]",
        "rewrite with f-strings",
        "modernize the string formatting",
        "use f-strings instead of (%|format|% formatting|.format)",
    ],
    "invert_if": [
        "invert the (if|condition|if statement)",
        "invert the if and swap the branches",
        "swap the [if] branches",
        "flip the (if|condition)",
        "negate the condition and swap the branches",
        "swap if and else",
        "turn the if around",
        "invert if",
    ],
    "remove_else": [
        "remove the [unnecessary] else after [the] return",
        "remove the [unneeded|redundant] else",
        "no else after return",
        "drop the else",
        "unnest the else [branch]",
        "flatten the else",
        "get rid of the else",
        "the else is not needed[, remove it]",
    ],
    "change_comparison": [
        "change {old} to {new}",
        "use {new} instead of {old}",
        "replace {old} with {new}",
        "{old} -> {new}",
        "{old} should be {new}",
        "the comparison should (use|be) {new} [not {old}]",
        "change the (operator|comparison) to {new}",
        "change the (operator|comparison) from {old} to {new}",
    ],
    "replace_literal": [
        "change {old} to {new}",
        "replace {old} (with|by) {new}",
        "use {new} instead of {old}",
        "{old} -> {new}",
        "{old} should be {new}",
        "(change|replace) the (value|number|string|literal) {old} (to|with) {new}",
        "make it {new} instead of {old}",
        "swap {old} for {new}",
        "change from {old} to {new}",
    ],
    "set_variable": [
        "set {name} to {value}",
        "(initialize|initialise|init) {name} (to|with) {value}",
        "change {name} to {value}",
        "{name} = {value}",
        "{name} should be {value}",
        "assign {value} to {name}",
        "start {name} at {value}",
        "let {name} be {value}",
    ],
    "change_return": [
        "return {value} instead of {old}",
        "return {value} [instead]",
        "change the return value to {value}",
        "it should return {value}",
        "make it return {value}",
        "change [the] return value from {old} to {value}",
        "(it should|should) return {value}, not {old}",
        "let it return {value}",
    ],
    "add_docstring": [
        "add [a] [the] docstring {text}",
        "add a docstring: {raw}",
        "add [the] docstring {text} to {name}",
        "document it (with|as) {text}",
        "add a docstring saying {text}",
        "write a docstring: {raw}",
        "set the docstring to {text}",
        "docstring: {raw}",
        "give it the docstring {text}",
        "(it|the function) needs a docstring: {raw}",
    ],
    "replace_docstring": [
        "change the docstring to {text}",
        "replace the docstring with {text}",
        "change the docstring: {raw}",
        "set the docstring to {text}",
        "update the docstring to {text}",
        "the docstring should (be|say) {text}",
    ],
    "remove_docstring": [
        "remove the docstring",
        "delete the docstring",
        "drop the docstring",
        "no docstring",
        "get rid of the docstring",
        "strip the docstring",
    ],
    "print_log": [
        "replace print with {logger}",
        "use {logger} instead of print",
        "(turn|change|convert) (the prints|prints|print calls|print) (to|into) {logger} [calls]",
        "print -> {logger}",
        "log with {logger} instead of printing",
        "replace (the print|prints|print calls) (with|by) {logger}",
        "use logging instead of print ({logger}|with {logger})",
        "{logger} instead of print",
    ],
    "wrap_try": [
        "wrap the body in try/except {error} and {action}",
        "wrap the body in [a] try/except {error}: {action}",
        "catch {error} and {action}",
        "wrap it in try/except {error} and {action}",
        "put the body in a try block, on {error} {action}",
        "on {error} {action}",
        "handle {error}: {action}",
        "(if it raises|if there is a) {error}, {action}",
        "add a try/except for {error} that does: {action}",
    ],
    "wrap_with": [
        "wrap the body in with {context}",
        "wrap the body in [a] with statement {context}",
        "wrap (it|everything) in with {context}",
        "put the body in with {context}",
        "run the body under with {context}",
        "(hold|use|take) {context} around the body",
    ],
    "add_first": [
        "add {statement} at the (start|beginning|top) [of the body]",
        "insert {statement} at the (start|beginning|top)",
        "start with {statement}",
        "add {statement} as [the] first (line|statement)",
        "put {statement} at the (top|start|beginning) [of the function]",
        "first (do|call|run) {statement}",
        "(call|run|do) {statement} (first|at the start|at the beginning)",
        "begin with {statement}",
    ],
    "add_last": [
        "add {statement} at the end",
        "insert {statement} at the (end|bottom)",
        "end with {statement}",
        "append {statement}",
        "add {statement} as [the] last (line|statement)",
        "put {statement} at the (end|bottom) [of the function]",
        "finally (do|call|run) {statement}",
        "(call|run|do) {statement} (last|at the end)",
    ],
    "add_before_return": [
        "add {statement} before the return",
        "insert {statement} before (the return|returning|it returns)",
        "(call|run|do) {statement} before (the return|returning|it returns)",
        "before (returning|the return), (add|call|do) {statement}",
        "put {statement} (before|above) the return",
        "{statement} before the return",
    ],
    "add_comment": [
        "add [a] [the] comment {text} (at the top|above it|on top)",
        "add a comment: {raw}",
        "add a comment saying {text}",
        "comment it with {text}",
        "put [a] [the] comment {text} above (it|the function)",
        "write a comment: {raw}",
    ],
    "remove_comments": [
        "remove (the|all|all the) comments",
        "delete (the|all) comments",
        "strip [the] comments",
        "drop (the|all) comments",
        "no comments",
        "get rid of the comments",
    ],
    "remove_prints": [
        "remove (the|all|all the) (print|prints|print statements|print calls)",
        "delete the (print|prints|print statements|print calls)",
        "get rid of the (print|prints|print calls|debug print)",
        "drop the (print|prints)",
        "no (prints|printing)",
        "strip the prints",
    ],
    "remove_asserts": [
        "remove (the|all) (assert|asserts|assertions)",
        "delete the (assert|asserts|assertions)",
        "drop the (assert|asserts|assertions)",
        "get rid of the (assert|asserts|assertions)",
    ],
    "delete_statement": [
        "(remove|delete) {statement}",
        "(remove|delete) the (line|statement) {statement}",
        "drop {statement}",
        "get rid of {statement}",
        "{statement} is not needed[, remove it]",
        "take out {statement}",
        "{statement} can go",
        "(delete|remove) the line with {statement}",
    ],
    "delete_assignment": [
        "(remove|delete) the assignment (to|of) {name}",
        "(remove|delete) the [unused] variable {name}",
        "drop the [unused] (variable|assignment) {name}",
        "get rid of [the variable] {name}",
        "{name} is unused, (remove|delete) it",
        "remove {name}",
    ],
    "make_async": [
        "make (it|this|the function|the method|{name}) async",
        "(turn|convert|change) (it|this|{name}) (to|into) [an] async [function]",
        "async",
        "it should be async",
        "use async def",
        "(it|this|{name}) should be an async function",
    ],
    "make_sync": [
        "make (it|this|the function|the method|{name}) (sync|synchronous|not async)",
        "remove async [and await]",
        "(turn|convert|change) (it|this) (to|into) [a] (sync|normal|synchronous) function",
        "not async",
        "no async",
        "drop async [and await]",
    ],
    "add_argument": [
        "pass {argument} to {call}",
        "add {argument} to the call (of|to) {call}",
        "call {call} with {argument}",
        "also pass {argument} to {call}",
        "{call} needs {argument}",
        "add the argument {argument} to {call}",
        "give {call} [the argument] {argument}",
        "pass [the] [keyword] [argument] {argument} (to|into) {call}",
    ],
    "optional_union": [
        "use | None instead of Optional",
        "replace Optional with | None",
        "modernize the (type hints|annotations|typing|types)",
        "Optional -> | None",
        "convert Optional to | None",
        "no Optional",
    ],
}

MORE: dict[str, list[str]] = {
    "rename_local": [
        "rename variable {old} to {new} in this (function|method|block)",
        "make {old} be called {new}",
        "{old} to {new}",
        "let's call {old} {new}",
        "(the variable|variable) {old} (is|becomes) {new}",
        "refactor: rename {old} to {new}",
        "i'd like {old} renamed to {new}",
        "turn [the variable] {old} into {new}",
        "{old} => {new}",
    ],
    "rename_parameter": [
        "rename parameter {old} to {new} (here|in this function|in the signature and body)",
        "{old} => {new}",
        "(replace|change) {old} (with|to) {new} [everywhere]",
        "let's call the (parameter|argument) {old} {new}",
        "(replace|change) the (parameter|argument) {old} (with|by|to) {new}",
        "make the (parameter|argument) {old} be called {new}",
        "{old} should be (called|named) {new}",
        "turn the (parameter|argument) {old} into {new}",
    ],
    "rename_function": [
        "rename it to {new}",
        "rename this to {new}",
        "give (the|this) (function|method) the name {new}",
        "(the|this) (function|method) should be (called|named) {new}",
        "{old} => {new}",
        "name (it|this|this function) {new}",
    ],
    "rename_attribute": [
        "rename the (attribute|field) {dotted} to {newdotted}",
        "{dotted} should be {newdotted}",
        "{old} -> {new}",
        "change the (attribute|field) [name] {old} to {new}",
        "call the (attribute|field) {old} {new} instead",
    ],
    "replace_name": [
        "rename {old} to {new}",
        "replace every {old} with {new}",
        "{old} -> {new}",
        "we (use|call) {new} now, not {old}",
        "change (every|each) call of {old} to {new}",
    ],
    "replace_exception": [
        "make it raise {new}",
        "replace {old} by {new}",
        "{old} -> {new}",
        "throw {new} instead of {old}",
        "raise {new} rather than {old}",
        "the exception should be {new}",
    ],
    "add_parameter": [
        "add {name} = {value} as a parameter",
        "add {sig} to the (parameters|signature|arguments)",
        "add a {name} (parameter|argument) with default {value}",
        "add a {name} (parameter|argument), default {value}",
        "add an optional {name} (parameter|argument) (that defaults|defaulting) to {value}",
        "give (the function|it) an optional {name}, default {value}",
        "parameter {name}, default {value}",
        "add {name} with default [value] {value}",
        "add {name} to the signature, defaulting to {value}",
        "add keyword argument {sig}",
    ],
    "add_parameter_plain": [
        "add a {name} (parameter|argument)",
        "add parameter {name} at the end",
        "take {name} as [an] (argument|parameter)",
        "append [a] (parameter|argument) {name}",
    ],
    "remove_parameter": [
        "remove {name}",
        "remove the {name} (parameter|argument)",
        "drop the {name} (parameter|argument)",
        "delete {name} from the (signature|parameters|arguments)",
        "we do not need the (parameter|argument) {name}",
    ],
    "change_default": [
        "the default for {name} should be {value}",
        "default of {name} = {value}",
        "set {name} to {value} by default",
        "{name} = {value} by default",
        "change {name}'s default to {value}",
        "replace the default of {name} (with|by) {value}",
    ],
    "add_decorator": [
        "add a {decorator} decorator [on top]",
        "{decorator} on (it|top|this function)",
        "wrap (it|{name}) with [the decorator] {decorator}",
        "this should be decorated with {decorator}",
        "make it a {decorator}",
        "add {decorator} as [a] decorator",
    ],
    "remove_decorator": [
        "remove {decorator} from (it|the function)",
        "strip {decorator}",
        "the {decorator} decorator is not needed",
        "drop {decorator} here",
    ],
    "guard_return": [
        "return {value} when {cond}",
        "guard: return {value} (if|when) {cond}",
        "add a guard: if {cond} return {value}",
        "add an early return of {value} (if|when) {cond}",
        "make it return {value} (if|when) {cond}",
        "handle the case that {cond}: return {value}",
        "check if {cond} and return {value}",
        "start with a check: if {cond} return {value}",
    ],
    "guard_plain": [
        "return when {cond}",
        "guard: return (if|when) {cond}",
        "just return (if|when) {cond}",
        "skip everything (if|when) {cond}",
        "check if {cond} and return",
    ],
    "guard_raise": [
        "fail with {error} (if|when) {cond}",
        "check if {cond} and raise {error}",
        "raise {error} when {cond}",
        "add a guard that raises {error} (if|when) {cond}",
        "make it raise {error} (if|when) {cond}",
        "throw [a] {error} when {cond}",
        "validate: raise {error} if {cond}",
    ],
    "add_hint": [
        "add {type} as the type of {name}",
        "add [the] hint {name}: {type}",
        "the type of {name} is {type}",
        "declare {name} as {type}",
        "mark {name} as {type}",
        "(parameter|argument) {name} is (a|an) {type}",
        "add a type hint for {name}: {type}",
        "type hint {name} [as] {type}",
    ],
    "add_return_hint": [
        "returns {type}",
        "add the return type {type} to the signature",
        "declare that it returns (a|an) {type}",
        "type hint the return value as {type}",
        "the function returns (a|an) {type}",
        "mark the return type as {type}",
    ],
    "remove_hints": ["remove annotations", "untyped please", "take the types out", "remove hints"],
    "extract_constant": [
        "move the (magic number|literal|value) {literal} to [a] constant {name}",
        "turn {literal} into the constant {name}",
        "introduce {name} = {literal}",
        "use a constant {name} instead of {literal}",
        "extract the (magic number|literal|value) {literal} as {name}",
        "give {literal} a name: {name}",
    ],
    "fstring": [
        "use an f-string here",
        "use f-string formatting",
        "make it an f-string",
        "turn it into an f-string",
        "replace % formatting with f-strings",
        "replace .format with [an] f-string",
        "convert % formatting to f-strings",
        "convert the format call to an f-string",
        "f-strings",
        "switch to f-strings",
        "format with an f-string",
        "change the formatting to f-strings",
    ],
    "remove_else": [
        "remove else",
        "unindent the else [branch]",
        "avoid the else",
        "early return instead of else",
    ],
    "change_comparison": [
        "compare with {new} instead of {old}",
        "make it {new} instead of {old}",
        "it should be {new}, not {old}",
        "(change|turn) every {old} into {new}",
    ],
    "replace_literal": [
        "(replace|change) {old} to {new} [everywhere]",
        "it should be {new}, not {old}",
        "set {old} to {new}",
        "make {old} {new}",
        "update {old} to {new}",
        "{old} => {new}",
        "{new} instead of {old}",
        "bump {old} to {new}",
    ],
    "set_variable": [
        "change the value of {name} to {value}",
        "make {name} {value}",
        "use {value} for {name}",
        "replace the value of {name} (with|by) {value}",
    ],
    "change_return": [
        "return {value} at the end",
        "replace the return value (with|by) {value}",
        "make {value} the return value",
        "change the return to {value}",
    ],
    "add_docstring": [
        "add docstring: {raw}",
        "add the docstring: {raw}",
        "document this: {text}",
        "put [the] docstring {text} (in|on) it",
        "docstring {text}",
        "insert [a] docstring {text}",
        "write the docstring {text}",
        "add documentation {text}",
        "describe it as {text}",
    ],
    "replace_docstring": [
        "new docstring: {raw}",
        "make the docstring {text}",
        "rewrite the docstring as {text}",
        "the docstring is wrong, it should (be|say) {text}",
    ],
    "remove_docstring": ["remove docstring", "remove the documentation", "take the docstring out"],
    "print_log": [
        "replace print with {logger} calls",
        "change print to {logger}",
        "print should be {logger}",
        "use {logger} rather than print",
        "replace each print (with|by) {logger}",
        "convert print to {logger}",
        "change the print calls to {logger}",
    ],
    "wrap_try": [
        "wrap in try except {error}, {action}",
        "try/except {error} around the body, {action}",
        "add error handling: on {error} {action}",
        "wrap the whole body in try/except {error}, then {action}",
        "surround the body with try/except {error} and {action}",
        "catch {error}, {action}",
        "when {error} is raised, {action}",
    ],
    "add_first": [
        "add {statement} first",
        "insert {statement} (before everything else|as the first line)",
        "add the line {statement} at the (top|start)",
        "the first line should be {statement}",
        "at the (top|start|beginning), (add|insert|call|do) {statement}",
        "add {statement}",
    ],
    "add_last": [
        "add the line {statement} at the (end|bottom)",
        "at the end, (add|insert|call|do) {statement}",
        "the last line should be {statement}",
        "add {statement} last",
    ],
    "add_before_return": [
        "add the line {statement} before the return",
        "just before (returning|the return) (add|call|do) {statement}",
        "add {statement} above the return",
        "insert {statement} right before the return",
    ],
    "add_comment": [
        "comment: {raw}",
        "add comment {text}",
        "add [a] comment {text} above",
        "explain it with a comment: {raw}",
    ],
    "remove_prints": [
        "remove the debug (print|prints)",
        "clean up the prints",
        "take the prints out",
    ],
    "delete_statement": [
        "remove the call {statement}",
        "(remove|delete) this line: {statement}",
        "{statement} should go",
        "we do not need {statement}",
        "cut {statement}",
    ],
    "make_async": ["async def", "make async", "should be async", "turn it async"],
}
"""More families for training."""

NEW: dict[str, list[str]] = {
    "rename_local": [
        "please use the identifier {new} where it says {old}",
        "{new} is a better name than {old}",
        "rename all occurrences of {old} to {new}",
    ],
    "rename_parameter": [
        "the {old} parameter is now {new}",
        "please use {new} as the parameter name in place of {old}",
        "rename the {old} argument to {new}",
    ],
    "rename_function": [
        "this function is now {new}",
        "rename def {old} to {new}",
        "change the function's name from {old} to {new}",
    ],
    "rename_attribute": [
        "replace the attribute {old} by {new}",
        "rename the {old} attribute to {new}",
        "switch {dotted} over to {newdotted}",
    ],
    "replace_name": [
        "use {new} rather than {old}",
        "replace occurrences of {old} by {new}",
        "{old} was renamed to {new}",
    ],
    "replace_exception": [
        "switch the exception from {old} to {new}",
        "{old} should be {new}",
        "replace the {old} with a {new}",
    ],
    "add_parameter": [
        "introduce a parameter {name} whose default is {value}",
        "extend it by a parameter {name} (default {value})",
        "i need a {name} argument here, defaulting to {value}",
    ],
    "add_parameter_plain": [
        "introduce a parameter {name}",
        "extend the signature with {name}",
        "i need a {name} argument here",
    ],
    "remove_parameter": [
        "nobody passes {name}, remove that parameter",
        "eliminate the parameter {name}",
        "the signature should not have {name}",
    ],
    "change_default": [
        "{name} now defaults to {value}",
        "switch the default of {name} to {value}",
        "update the default value of {name} to {value}",
    ],
    "add_decorator": [
        "attach the decorator {decorator}",
        "we need {decorator} above the def",
        "insert {decorator} on top of the function",
    ],
    "remove_decorator": [
        "{decorator} is obsolete, remove it",
        "we no longer need {decorator}",
        "delete {decorator}",
    ],
    "remove_decorators": ["take all decorators off", "strip the decorators"],
    "guard_return": [
        "whenever {cond}, return {value}",
        "exit early with {value} if {cond}",
        "if {cond} then the result is {value}",
    ],
    "guard_plain": ["exit if {cond}", "leave the function when {cond}", "if {cond}, exit early"],
    "guard_raise": [
        "if {cond} it should raise {error}",
        "reject the call with {error} if {cond}",
        "whenever {cond}, raise {error}",
    ],
    "add_hint": [
        "specify the type {type} for {name}",
        "{name} takes (a|an) {type}, annotate it",
        "put the annotation {type} on {name}",
    ],
    "add_return_hint": [
        "specify {type} as the return type",
        "put the annotation -> {type} on it",
        "the result is (a|an) {type}, annotate that",
    ],
    "remove_hints": ["get rid of the type hints", "erase all annotations"],
    "extract_constant": [
        "hoist {literal} into {name}",
        "create a constant called {name} for {literal}",
        "{literal} should be a named constant {name}",
    ],
    "fstring": [
        "prefer f-strings",
        "rewrite the formatted strings as f-strings",
        "the string formatting should be an f-string",
    ],
    "remove_else": ["dedent the else branch", "the else after return is redundant", "flatten it"],
    "change_comparison": [
        "update {old} to {new}",
        "swap {old} for {new}",
        "use the operator {new} not {old}",
    ],
    "replace_literal": [
        "substitute {new} for {old}",
        "turn {old} into {new}",
        "the value should be {new} rather than {old}",
    ],
    "set_variable": [
        "{name} starts as {value}",
        "give {name} the value {value}",
        "put {value} in {name}",
    ],
    "change_return": [
        "the return value should be {value}",
        "return {value} here",
        "have it return {value}",
    ],
    "add_docstring": [
        "include a docstring: {raw}",
        "the docstring should read {text}",
        "document the function with {text}",
    ],
    "replace_docstring": [
        "reword the docstring to {text}",
        "the docstring should read {text}",
        "swap the docstring for {text}",
    ],
    "remove_docstring": ["erase the docstring", "no need for a docstring"],
    "print_log": [
        "swap print for {logger}",
        "all prints should become {logger}",
        "route the prints through {logger}",
    ],
    "wrap_try": [
        "guard the body against {error} and {action}",
        "in case of {error}, {action}",
        "if {error} occurs, {action}",
    ],
    "add_first": [
        "prepend {statement}",
        "open with {statement}",
        "before anything else, run {statement}",
    ],
    "add_last": [
        "finish with {statement}",
        "as the last step, {statement}",
        "close with {statement}",
    ],
    "add_before_return": [
        "right before returning, insert {statement}",
        "{statement} should run before the return",
    ],
    "add_comment": ["annotate it with the comment {text}", "a comment on top: {raw}"],
    "remove_prints": ["eliminate the print calls", "silence the prints"],
    "delete_statement": [
        "eliminate {statement}",
        "erase the line {statement}",
        "{statement} is dead code",
    ],
    "make_async": ["change it into a coroutine with async def", "declare it async"],
    "remove_comments": ["erase the comments"],
    "remove_asserts": ["eliminate the asserts"],
    "delete_assignment": ["eliminate {name}"],
    "make_sync": ["it should be synchronous"],
    "add_argument": ["hand {argument} to {call}"],
    "optional_union": ["prefer | None over Optional"],
    "extract_variable": ["bind {expr} to {name} first"],
    "invert_if": ["exchange the branches"],
    "wrap_with": ["execute the body inside with {context}"],
}
"""Families that only evaluation uses."""

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
    "{x} is None": ["{x} is None", "{x} is none", "{x} is missing", "there is no {x}"],
    "not {x}": ["{x} is empty", "not {x}", "{x} is falsy", "{x} is not set"],
    "{x} < 0": ["{x} is negative", "{x} < 0", "{x} is less than zero", "{x} is below 0"],
    "{x} == 0": ["{x} is zero", "{x} is 0", "{x} == 0"],
    "{x} <= 0": ["{x} is not positive", "{x} <= 0"],
    "{x}": ["{x} is set", "{x} is true", "{x}"],
    "{x} is not None": ["{x} is not None", "{x} is given"],
}

PREFIXES = [
    "please ",
    "can you ",
    "could you ",
    "i want you to ",
    "let's ",
    "now ",
    "then ",
    "ok, ",
    "we should ",
    "you should ",
]
SUFFIXES = [" please", ", please", "?", "!", " here", " in this function", ", thanks", " now"]


def families(task: str, *, held_out: bool) -> list[str]:
    """Return the template families of a task, of training or of the held-out side."""
    return NEW[task] if held_out else TEMPLATES[task] + MORE.get(task, [])


def expand(template: str, rng: random.Random) -> str:
    """Resolve the choices and optional parts of a template."""
    while True:
        found = re.search(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", template)
        if found is None:
            return re.sub(r"\s+", " ", template).strip()
        if found[1] is not None:
            choice = rng.choice(found[1].split("|")) if rng.random() < 0.5 else ""
        else:
            choice = rng.choice(found[2].split("|"))
        template = template[: found.start()] + choice + template[found.end() :]


_BARE_CODE = re.compile(
    r"[\w.]+|@[\w.]+(\([^()\s]*\))?|\[\]|\{\}|\(\)|-\d[\w.]*|[\w.]+\([^()\n]+\)|[\w.]+\[[^\[\]\n]*\]|"
    r"(?:[<>!=]=|[<>])|[\w.]+\(\)"
)


def quoted(text: str, rng: random.Random, *, name: bool) -> str:
    """Write a name or a piece of code bare, in backticks or in quotes, where the text allows it."""
    chance = rng.random()
    if name:
        if chance < 0.5:
            return text
        if chance < 0.8:
            return f"`{text}`"
        quote = "'" if chance < 0.9 else '"'
        return text if quote in text else quote + text + quote
    if (chance < 0.45 and _BARE_CODE.fullmatch(text)) or "`" in text or text in ("''", '""'):
        return text
    return f"`{text}`"


_SMALL = frozenset("a an the to of in it is with for as and should be".split())  # noqa: SIM905


def _sloppy(text: str, rng: random.Random) -> str:
    """Drop one small word, as people do when they type fast."""
    words = text.split(" ")
    small = [k for k, word in enumerate(words) if word in _SMALL]
    if len(words) > 4 and small:
        del words[rng.choice(small)]
    return " ".join(words)


def write(template: str, values: dict[str, str], rng: random.Random) -> str:
    """Fill a template and put it in a random style.

    `values` maps names to text that is ready to be inserted (see `quoted`).
    """
    text = expand(template, rng)
    if rng.random() < 0.12:
        text = _sloppy(text, rng)
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    raw_end = "{raw}" in template
    chance = rng.random()
    if chance < 0.12 and not raw_end:
        text = rng.choice(PREFIXES) + text
    elif chance < 0.2 and not raw_end:
        text += rng.choice(SUFFIXES)
    elif chance < 0.3 and not raw_end:
        text += "."
    if rng.random() < 0.35 and text[:1].isalpha() and not text.startswith(tuple(values.values())):
        text = text[0].upper() + text[1:]
    return text


def vocabulary() -> list[str]:
    """Return every plain word of the templates: the tokenizer should know them."""
    words: set[str] = set()
    phrases = [t for table in (TEMPLATES, MORE) for group in table.values() for t in group]
    phrases += [w for group in TYPE_WORDS.values() for w in group]
    phrases += [w for group in CONDITION_WORDS.values() for w in group]
    for phrase in [*phrases, *PREFIXES, *SUFFIXES]:
        words.update(w.lower() for w in re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", "", phrase)))
    return sorted(words)

"""The supported languages: their grammars, queries for definitions, and names of test files.

Python is read by its own parser (``code.syntax``); the others by tree-sitter grammars.  A language
is one row of ``LANGUAGES`` and one query.  The captures of a query:

- ``@function``, ``@class``, ``@assignment``: a definition, each together with ``@name``;
- ``@scope``: what gives the names inside of it a prefix, but is no definition itself, such as a
  namespace; with ``@name``;
- ``@owner``: what a definition belongs to although it stands elsewhere, such as a Go receiver;
- ``@local``: a name that a parameter or a local variable binds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final


@dataclass(frozen=True, slots=True)
class Language:
    """A language with a tree-sitter grammar.

    Attributes:
        name: As people write it.
        suffixes: Endings of its files, with the dot, in lower case.
        query: The query for definitions of names, see the module.
        module: The package of the grammar.
        grammar: The function of that package that returns it.
        files: Names of files without such an ending, in lower case.
        family: Languages of one family use one another's names.
        wrappers: Kinds of nodes that belong to the one definition inside of them.
        leading: Kinds of nodes that belong to the definition below them.
        lists: Kinds of nodes in which a comma at the end says nothing.
        macros: Whether valid files have faults, because their macros are no part of the grammar.
    """

    name: str
    suffixes: tuple[str, ...]
    query: str
    module: str
    grammar: str = "language"
    files: tuple[str, ...] = ()
    family: str = ""
    wrappers: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset({"comment"})
    lists: frozenset[str] = frozenset()
    macros: bool = False


_JAVASCRIPT = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(method_definition name: (_) @name) @function
(class_declaration name: (_) @name) @class
(variable_declarator name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(variable_declarator name: (identifier) @name) @assignment
(assignment_expression left: (identifier) @name
  right: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name
  value: [(arrow_function) (function_expression)]) @function
(variable_declarator name: (identifier) @local)
(arrow_function parameter: (identifier) @local)
(assignment_pattern left: (identifier) @local)
(rest_pattern (identifier) @local)
(array_pattern (identifier) @local)
(shorthand_property_identifier_pattern) @local
(catch_clause parameter: (identifier) @local)
(for_in_statement left: (identifier) @local)
"""
_SCRIPT_WRAPPERS = frozenset({
    "export_statement", "lexical_declaration", "variable_declaration", "expression_statement",
    "ambient_declaration",
})  # fmt: skip
_SCRIPT_LISTS = frozenset({
    "arguments", "array", "array_pattern", "enum_body", "export_clause", "formal_parameters",
    "named_imports", "object", "object_pattern", "tuple_type", "type_arguments", "type_parameters",
})  # fmt: skip
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @class
(internal_module name: (_) @name) @scope
(module name: (identifier) @name) @scope
(public_field_definition name: (_) @name value: [(arrow_function) (function_expression)]) @function
(public_field_definition name: (_) @name) @assignment
(required_parameter pattern: (identifier) @local)
(optional_parameter pattern: (identifier) @local)
"""
)
_C = """
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @function
(function_definition declarator: (pointer_declarator
  declarator: (function_declarator declarator: (identifier) @name))) @function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator
  declarator: (function_declarator declarator: (identifier) @name)))) @function
(preproc_function_def name: (identifier) @name) @function
(preproc_def name: (identifier) @name) @assignment
(struct_specifier name: (type_identifier) @name body: (_)) @class
(union_specifier name: (type_identifier) @name body: (_)) @class
(enum_specifier name: (type_identifier) @name body: (_)) @class
(type_definition declarator: (type_identifier) @name) @class
(declaration declarator: (init_declarator declarator: (identifier) @name)) @assignment
(declaration declarator: (init_declarator
  declarator: (array_declarator declarator: (identifier) @name))) @assignment
(declaration declarator: (init_declarator
  declarator: (pointer_declarator declarator: (identifier) @name))) @assignment
(parameter_declaration declarator: (identifier) @local)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @local))
(parameter_declaration declarator: (array_declarator declarator: (identifier) @local))
(init_declarator declarator: (identifier) @local)
(init_declarator declarator: (pointer_declarator declarator: (identifier) @local))
(init_declarator declarator: (array_declarator declarator: (identifier) @local))
(declaration declarator: (identifier) @local)
(declaration declarator: (array_declarator declarator: (identifier) @local))
(declaration declarator: (pointer_declarator declarator: (identifier) @local))
"""
_CPP = (
    _C
    + """
(function_definition declarator: (function_declarator declarator:
  [(field_identifier) (qualified_identifier) (destructor_name) (operator_name)] @name)) @function
(function_definition declarator: (reference_declarator (function_declarator declarator:
  [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name))) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator:
  [(field_identifier) (qualified_identifier)] @name))) @function
(class_specifier name: [(type_identifier) (qualified_identifier)] @name body: (_)) @class
(alias_declaration name: (type_identifier) @name) @class
(concept_definition name: (identifier) @name) @class
(namespace_definition name: (_) @name) @scope
(parameter_declaration declarator: (reference_declarator (identifier) @local))
(optional_parameter_declaration declarator: (identifier) @local)
(for_range_loop declarator: (identifier) @local)
(for_range_loop declarator: (reference_declarator (identifier) @local))
(init_declarator declarator: (reference_declarator (identifier) @local))
"""
)
_GO = """
(function_declaration name: (identifier) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @owner
    (pointer_type (type_identifier) @owner)
    (generic_type type: (type_identifier) @owner)
    (pointer_type (generic_type type: (type_identifier) @owner))]))
  name: (field_identifier) @name) @function
(type_spec name: (type_identifier) @name) @class
(type_alias name: (type_identifier) @name) @class
(const_spec name: (identifier) @name) @assignment
(var_spec name: (identifier) @name) @assignment
(parameter_declaration name: (identifier) @local)
(variadic_parameter_declaration name: (identifier) @local)
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))
(var_spec name: (identifier) @local)
(const_spec name: (identifier) @local)
"""
_RUST = """
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @function
(struct_item name: (type_identifier) @name) @class
(enum_item name: (type_identifier) @name) @class
(union_item name: (type_identifier) @name) @class
(trait_item name: (type_identifier) @name) @class
(type_item name: (type_identifier) @name) @class
(const_item name: (identifier) @name) @assignment
(static_item name: (identifier) @name) @assignment
(mod_item name: (identifier) @name body: (_)) @scope
(impl_item type: (type_identifier) @name) @scope
(impl_item type: (generic_type type: (type_identifier) @name)) @scope
(impl_item type: (scoped_type_identifier name: (type_identifier) @name)) @scope
(parameter pattern: (identifier) @local)
(parameter pattern: (mut_pattern (identifier) @local))
(let_declaration pattern: (identifier) @local)
(let_declaration pattern: (tuple_pattern (identifier) @local))
(for_expression pattern: (identifier) @local)
(for_expression pattern: (tuple_pattern (identifier) @local))
(closure_parameters (identifier) @local)
"""
_JAVA = """
(class_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @class
(enum_declaration name: (identifier) @name) @class
(record_declaration name: (identifier) @name) @class
(annotation_type_declaration name: (identifier) @name) @class
(method_declaration name: (identifier) @name) @function
(constructor_declaration name: (identifier) @name) @function
(compact_constructor_declaration name: (identifier) @name) @function
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @assignment
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @assignment
(formal_parameter name: (identifier) @local)
(catch_formal_parameter name: (identifier) @local)
(enhanced_for_statement name: (identifier) @local)
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
(lambda_expression parameters: (identifier) @local)
(inferred_parameters (identifier) @local)
(resource name: (identifier) @local)
"""
_RUBY = """
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(class name: (_) @name) @class
(module name: (_) @name) @class
(assignment left: (constant) @name) @assignment
(assignment left: (identifier) @name) @assignment
(method_parameters (identifier) @local)
(block_parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(optional_parameter name: (identifier) @local)
(keyword_parameter name: (identifier) @local)
(splat_parameter name: (identifier) @local)
(assignment left: (identifier) @local)
(operator_assignment left: (identifier) @local)
(left_assignment_list (identifier) @local)
"""
_SHELL = """
(function_definition name: (word) @name) @function
(variable_assignment name: (variable_name) @name) @assignment
(variable_assignment name: (variable_name) @local)
(declaration_command (variable_name) @local)
(for_statement variable: (variable_name) @local)
"""

LANGUAGES: Final = (
    Language(
        *("JavaScript", (".js", ".mjs", ".cjs", ".jsx")),
        _JAVASCRIPT
        + "(formal_parameters (identifier) @local)\n"
        + "(field_definition property: (_) @name value: [(arrow_function) (function_expression)])"
        + " @function\n(field_definition property: (_) @name) @assignment\n",
        "tree_sitter_javascript",
        family="script",
        wrappers=_SCRIPT_WRAPPERS,
        leading=frozenset({"comment", "decorator"}),
        lists=_SCRIPT_LISTS,
    ),
    Language(
        *("TypeScript", (".ts", ".mts", ".cts"), _TYPESCRIPT),
        *("tree_sitter_typescript", "language_typescript"),
        family="script",
        wrappers=_SCRIPT_WRAPPERS,
        leading=frozenset({"comment", "decorator"}),
        lists=_SCRIPT_LISTS,
    ),
    Language(
        *("TypeScript with JSX", (".tsx",), _TYPESCRIPT),
        *("tree_sitter_typescript", "language_tsx"),
        family="script",
        wrappers=_SCRIPT_WRAPPERS,
        leading=frozenset({"comment", "decorator"}),
        lists=_SCRIPT_LISTS,
    ),
    Language(
        *("Go", (".go",), _GO, "tree_sitter_go"),
        wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration"}),
        lists=frozenset({"argument_list", "literal_value", "parameter_list"}),
    ),
    Language(
        *("Rust", (".rs",), _RUST, "tree_sitter_rust"),
        leading=frozenset({"line_comment", "block_comment", "attribute_item"}),
        lists=frozenset({
            "arguments", "array_expression", "closure_parameters", "enum_variant_list",
            "field_declaration_list", "field_initializer_list", "match_arm",
            "ordered_field_declaration_list", "parameters", "slice_pattern", "struct_pattern",
            "tuple_expression", "tuple_pattern", "tuple_struct_pattern", "tuple_type",
            "type_arguments", "type_parameters", "use_list", "where_clause",
        }),
    ),
    Language(
        *("Java", (".java",), _JAVA, "tree_sitter_java"),
        leading=frozenset({"line_comment", "block_comment"}),
    ),
    Language("C", (".c",), _C, "tree_sitter_c", family="c", macros=True),
    # C headers can be read as C++; the reverse does not hold.
    Language(
        *("C++", (".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".ipp"), _CPP),
        "tree_sitter_cpp",
        family="c",
        wrappers=frozenset({"template_declaration"}),
        macros=True,
    ),
    Language(
        *("Ruby", (".rb", ".rake", ".gemspec"), _RUBY, "tree_sitter_ruby"),
        files=("rakefile", "gemfile"),
    ),
    Language(
        *("shell", (".sh", ".bash"), _SHELL, "tree_sitter_bash"),
        files=(".bashrc", ".bash_profile", ".profile"),
        wrappers=frozenset({"declaration_command"}),
    ),
)  # fmt: skip

_BY_SUFFIX: Final = {suffix: each for each in LANGUAGES for suffix in each.suffixes}
_BY_NAME: Final = {name: each for each in LANGUAGES for name in each.files}
_TEST_PATH: Final = re.compile(
    r"(?:^|/)(?:tests?|testing|spec|specs|__tests__)/|(?:^|/)(?:test_[^/]*|conftest\.py)$"
    r"|(?:_test|_spec|\.test|\.spec)\.\w+$|Tests?\.(?:java|cs|kt)$"
)

_TEST_NAMES: Final = (
    re.compile(r"tests?[_.-](?P<of>.+)", re.IGNORECASE),
    re.compile(r"(?P<of>.+)[_.-](?:tests?|spec)", re.IGNORECASE),
    re.compile(r"(?P<of>.+)Tests?"),
    re.compile(r"Test(?P<of>[A-Z].*)"),
)
"""How a test file is called after the file that it tests, without the extension."""


def spelled(languages: Sequence[str]) -> str:
    """The names of languages as people write them: ``Python, Go and JavaScript``."""
    known = {language.name.lower(): language.name for language in LANGUAGES}
    *most, last = [known.get(name, name.capitalize()) for name in languages]
    return f"{', '.join(most)} and {last}" if most else last


def grammar_of(path: str) -> Language | None:
    """The language of a file by its name; ``None`` for Python and what has no grammar here."""
    file = PurePosixPath(path)
    return _BY_SUFFIX.get(file.suffix.lower()) or _BY_NAME.get(file.name.lower())


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its name."""
    return _TEST_PATH.search(path) is not None


def tested_names(path: str) -> list[str]:
    """The names, in lower case and without endings, of the files that a test file may be about, by
    its own name.
    """
    stem = PurePosixPath(path).stem
    found = (pattern.fullmatch(stem) for pattern in _TEST_NAMES)
    return [match["of"].lower() for match in found if match is not None]

"""Near-duplicates: training snippets that say nearly the same as one of the held-out packages, and
functions that carry the name of a public benchmark's task.

Two snippets are near-duplicates where one shares at least `SHARE` of its shingles (five tokens in a
row, names and all) with the other. A held-out package's code that was copied elsewhere, or vendored
and edited, would otherwise be trained on.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

SHINGLE = 5
SHARE = 0.6
_TOKEN = re.compile(r"\w+|[^\w\s]")

_BENCHMARK_NAMES = """
    bitcount breadth_first_search bucketsort depth_first_search detect_cycle find_first_in_sorted
    find_in_sorted flatten gcd get_factors hanoi is_valid_parenthesization kheapsort knapsack kth
    lcs_length levenshtein lis longest_common_subsequence max_sublist_sum mergesort
    minimum_spanning_tree next_palindrome next_permutation pascal possible_change powerset
    quicksort reverse_linked_list rpn_eval shortest_path_length shortest_paths shunting_yard sieve
    subsequences to_base topological_ordering has_close_elements separate_paren_groups
    truncate_number below_zero mean_absolute_deviation intersperse parse_nested_parens
    filter_by_substring sum_product rolling_max is_palindrome make_palindrome string_xor longest
    greatest_common_divisor all_prefixes string_sequence count_distinct_characters parse_music
    how_many_times sort_numbers find_closest_elements rescale_to_unit filter_integers strlen
    largest_divisor factorize remove_duplicates flip_case concatenate filter_by_prefix
    get_positive is_prime poly find_zero sort_third unique fizz_buzz sort_even decode_cyclic
    prime_fib triples_sum_to_zero car_race_collision incr_list pairs_sum_to_zero change_base
    triangle_area fib4 median modp decode_shift remove_vowels below_threshold same_chars fib
    correct_bracketing monotonic common largest_prime_factor sum_to_n derivative fibfib
    vowels_count circular_shift digitSum fruit_distribution pluck search strange_sort_list
    will_it_fly smallest_change total_match is_multiply_prime is_simple_power iscube hex_key
    decimal_to_binary is_happy numerical_letter_grade prime_length starts_one_ends solve
    anti_shuffle get_row sort_array encrypt next_smallest is_bored any_int encode skjkasdkd
    check_dict_case count_up_to multiply count_upper closest_integer make_a_pile words_string
    choose_num rounded_avg unique_digits by_length even_odd_palindrome count_nums move_one_ball
    exchange histogram reverse_delete odd_count minSubArraySum max_fill select_words
    get_closest_vowel match_parens maximum solution add_elements get_odd_collatz valid_date
    split_words is_sorted intersection prod_signs minPath tri digits is_nested sum_squares
    check_if_last_char_is_a_letter can_arrange largest_smallest_integers compare_one
    is_equal_to_sum_even special_factorial fix_spaces file_name_check words_in_sentence simplify
    order_by_points specialFilter get_max_triples bf sorted_list_sum x_or_y double_the_difference
    compare Strongest_Extension cycpattern_check even_odd_count int_to_mini_roman
    right_angle_triangle find_max eat do_algebra string_to_md5 generate_integers
"""

BENCHMARK_NAMES = frozenset(_BENCHMARK_NAMES.split())
"""Names of the functions of HumanEval and QuixBugs (EditEval edits HumanEval's)."""

_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


def shingles(text: str) -> set[int]:
    """Return the hashes of all runs of `SHINGLE` tokens."""
    tokens = _TOKEN.findall(text)
    return {
        int.from_bytes(
            hashlib.blake2b(" ".join(tokens[k : k + SHINGLE]).encode(), digest_size=8).digest()
        )
        for k in range(len(tokens) - SHINGLE + 1)
    }


class NearDuplicates:
    """Finds texts that are nearly the same as one of a collection."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Index the collection."""
        self._where: dict[int, list[int]] = defaultdict(list)
        self._sizes: list[int] = []
        for number, text in enumerate(texts):
            found = shingles(text)
            self._sizes.append(len(found))
            for each in found:
                self._where[each].append(number)

    def has(self, text: str) -> bool:
        """Whether some text of the collection shares most of its shingles with this one."""
        found = shingles(text)
        if len(found) < 4:
            return False
        shared: Counter[int] = Counter()
        for each in found:
            members = self._where.get(each, ())
            if len(members) <= 200:  # what stands in hundreds of snippets is idiom, no copy
                shared.update(members)
        return any(
            count >= SHARE * min(len(found), max(self._sizes[number], 4))
            for number, count in shared.most_common(3)
        )


def is_benchmark(text: str) -> bool:
    """Whether a snippet defines a function of the name of a benchmark's task."""
    first = _DEFINITION.match(text)
    return first is not None and first.group(1) in BENCHMARK_NAMES

// "did you mean ...": the nearest of a list of known words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace takt {

// The candidate with the smallest edit distance (transposition counts one), "" when none is near enough
// (distance above a third of the word, at least 1).
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'x'?" or, without a near word, "; known: a, b, c".
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace takt

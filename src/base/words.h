// Words of a user: which known word a misspelt one is nearest to, lists of words in messages, and
// words in markup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace allranks {

// The one of `known` that `word` is most likely meant to be, or nothing.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);
// " (did you mean 'launch'?)", or nothing.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);
// "a, b, c"
std::string Join(const std::vector<std::string>& words);
// With entities in place of &, <, > and ", for HTML and XML.
std::string EscapedMarkup(std::string_view text);

}  // namespace allranks

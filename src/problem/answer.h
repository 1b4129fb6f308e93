// From a model's reply to the source to judge. A reply may be anything: prose around code, several
// blocks, a file without fences, half a file because the output was cut, 50 MB of noise.
#pragma once

#include <string>
#include <string_view>

#include "problem/source.h"

namespace allranks::problem {

struct Answer {
  enum class Kind {
    kSource,     // `source` is there
    kNone,       // no code in it
    kTruncated,  // it ends in the middle of code: never compiled as if it were whole
    kTooLarge,   // the code is longer than kLargestSource
    kNotText,    // NUL bytes or no UTF-8 in the code
    kRefused,    // the provider or the model declined (set by who knows: campaign)
  };
  Kind kind = Kind::kNone;
  std::string source;  // a whole file or an edit region; problem::Assemble takes both
  std::string text;    // one sentence for the model: why there is no source
};

// `cut`: the provider says that the output cap ended the reply. `region` is the template's: the
// block that belongs to it is preferred to others. answer.cpp says which block wins and why.
Answer ReadAnswer(std::string_view reply, bool cut, const Region& region);

const char* NameOf(Answer::Kind kind);  // source none truncated too_large not_text refused

}  // namespace allranks::problem

// Theory. A reply is read once, line by line; of all code blocks only the best so far is kept, so a
// reply of any size and any number of fences costs time in proportion and no memory.
//
// Fences are those of CommonMark, a little more generous: any indentation, a closing fence behind
// the last brace, words behind a closing fence, and a fence with a language's name inside of an
// open block, which begins another block (no C++ has such a line). What stands behind the language,
// a file's name or a path, means nothing: answers have one file, and its place is ours.
//
// Which block wins, by what it has:
//   3  both edit markers, and between them something else than the template has
//   2  definitions of all entry points that the template's region has
//   1  C++ by its language's name or its looks
//   0  anything else
// The highest wins, and among equals the last. Markers stand above entry points because models
// explain a whole file by pieces of it more often than they replace it by one; later stands above
// earlier because drafts come first. Blocks are never joined: nobody can tell in which order
// pieces belong together, and the prompt asks for one.
//
// A block is whole if its closing fence is there, or if it has the end marker, behind which nothing
// can come. If the model ended by itself and only the fence is missing (some servers take it for
// the end of the reply), definitions of all entry points with all brackets closed will do. A reply
// that was cut, or ends in half a block, is taken only for a whole block of 2 or 3: a snippet
// before it is not the answer that was about to come.
#include "problem/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "problem/text.h"

namespace allranks::problem {
namespace {

// ---- What a problem's template tells ----

struct Wanted {
  std::string_view begin, end;            // the markers
  std::string_view inside;                // the template's own region
  std::vector<std::string_view> entries;  // "launch", "host"
};

Wanted WantedOf(const Region& region) {
  Wanted wanted;
  std::string_view rest = Trimmed(region.before);
  wanted.begin = Trimmed(rest.substr(rest.rfind('\n') + 1));
  rest = region.after;
  wanted.end = Trimmed(TakeLine(&rest));
  wanted.inside = Trimmed(region.inside);
  constexpr std::string_view kExtern = "extern \"C\"";
  for (std::size_t at = wanted.inside.find(kExtern); at != std::string_view::npos;
       at = wanted.inside.find(kExtern, at + 1)) {
    const std::size_t open = wanted.inside.find('(', at);
    if (open == std::string_view::npos) break;
    std::size_t first = open;
    while (first > at && IsWord(wanted.inside[first - 1])) --first;
    if (first < open) wanted.entries.push_back(wanted.inside.substr(first, open - first));
  }
  return wanted;
}

bool DefinesAll(std::string_view code, const Wanted& wanted) {
  return !wanted.entries.empty() &&
         std::all_of(wanted.entries.begin(), wanted.entries.end(),
                     [&](std::string_view name) { return Defines(code, name); });
}

// What lies between the markers; no data if they are not both there.
std::string_view BetweenMarkers(std::string_view code, const Wanted& wanted) {
  if (wanted.begin.empty() || wanted.end.empty()) return {};
  std::string_view rest = code, inside;
  while (!rest.empty()) {
    const std::string_view line = TakeLine(&rest), word = Trimmed(line);
    if (inside.data() == nullptr) {
      if (word == wanted.begin) inside = rest;
    } else if (word == wanted.end) {
      return inside.substr(0, inside.size() - rest.size() - line.size());
    }
  }
  return {};
}

// ---- Fences ----

struct Fence {
  char mark = 0;
  std::size_t length = 0, indent = 0;
  std::string_view info;  // behind it
};

// No length: the line is no fence.
Fence FenceOf(std::string_view line) {
  Fence fence;
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || (line[first] != '`' && line[first] != '~')) return fence;
  const std::size_t end = std::min(line.find_first_not_of(line[first], first), line.size());
  const std::string_view info = Trimmed(line.substr(end));
  if (end - first < 3) return fence;
  if (line[first] == '`' && info.find('`') != std::string_view::npos) return fence;
  return {line[first], end - first, first, info};
}

struct Block {
  std::string_view code;
  std::size_t indent = 0;
  std::string language;
  int rank = 0;
  bool whole = false;
};

enum class End {
  kFence,    // closed
  kNext,     // another block began
  kStopped,  // the reply is over, and the model ended it
  kCut,      // the reply is over because it was cut
};

void Assess(const Wanted& wanted, End end, Block* block) {
  const bool patch = block->language == "diff" || block->language == "patch" ||
                     block->code.starts_with("diff --git ") || block->code.starts_with("--- ");
  const std::string_view inside = patch ? std::string_view() : BetweenMarkers(block->code, wanted);
  const bool markers = inside.data() != nullptr;
  const std::string_view own = Trimmed(markers ? inside : block->code);
  const bool untouched = own.empty() || own == wanted.inside;
  const bool all = !patch && DefinesAll(block->code, wanted);
  if (markers && !untouched) {
    block->rank = 3;
  } else if (all && !untouched) {
    block->rank = 2;
  } else if (markers || all || IsCodeName(block->language)) {
    block->rank = Trimmed(block->code).empty() ? 0 : 1;
  } else if (!IsOtherName(block->language) && !patch) {
    block->rank = LooksLikeCode(block->code) ? 1 : 0;
  }
  block->whole = end == End::kFence || markers || (end != End::kCut && all && Closed(block->code));
  if (markers && end != End::kFence) {
    // Sentences behind the end marker, where the closing fence was forgotten.
    std::string_view rest = block->code;
    rest.remove_prefix(static_cast<std::size_t>(inside.data() - rest.data()) + inside.size());
    TakeLine(&rest);
    block->code.remove_suffix(rest.size());
  }
}

// The text without fences, as a block: a file, perhaps with sentences before and behind it.
Block Unfenced(std::string_view text, const Wanted& wanted, End end) {
  Block block;
  std::string_view rest = text, first;
  while (!rest.empty() && Trimmed(first).empty()) first = TakeLine(&rest);
  const bool file = BeginsCode(first);
  const std::string_view inside = BetweenMarkers(text, wanted);
  if (!file && !Trimmed(inside).empty() && Trimmed(inside) != wanted.inside) {
    block.code = inside;
    block.rank = 3;
    block.whole = true;
    return block;
  }
  rest = text;
  std::size_t from = file ? 0 : std::string_view::npos, to = 0;
  while (!rest.empty()) {
    const std::size_t at = text.size() - rest.size();
    const std::string_view line = TakeLine(&rest);
    if (from == std::string_view::npos && BeginsCode(line)) from = at;
    if (EndsCode(line)) to = text.size() - rest.size();
  }
  if (from == std::string_view::npos) return block;
  block.code = end == End::kCut || to <= from ? text.substr(from) : text.substr(from, to - from);
  if (!file && !DefinesAll(block.code, wanted)) return block;
  Assess(wanted, end, &block);
  // Without any fence there is nothing but the brackets to tell that it is over.
  if (block.rank == 1 && end == End::kStopped) block.whole = Closed(block.code);
  return block;
}

struct Found {
  Block best;           // rank 0: none
  bool broken = false;  // the reply ends in half a block of code
};

Found FindBlock(std::string_view text, bool cut, const Wanted& wanted) {
  const End over = cut ? End::kCut : End::kStopped;
  Found found;
  Fence open;  // of the block that is open; length 0: none
  Block block;
  std::size_t first_fence = std::string_view::npos, begin = 0;
  const auto close = [&](std::size_t at, End end) {
    block.code = text.substr(begin, at - begin);
    Assess(wanted, end, &block);
    if (block.rank > 0 && block.whole && block.rank >= found.best.rank) found.best = block;
    found.broken = block.rank > 0 && !block.whole;
    open.length = 0;
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t at = text.size() - rest.size();
    const std::string_view line = TakeLine(&rest);
    const Fence fence = FenceOf(line);
    const std::string language = fence.length == 0 ? "" : LanguageOf(fence.info);
    if (open.length > 0) {
      if (fence.length == 0) {
        const std::string_view word = Trimmed(line);
        if (open.mark == '`' && word.ends_with("```")) {
          const std::size_t tick = word.find('`');
          const std::string_view before = word.substr(0, tick);
          if (word.find_first_not_of('`', tick) == std::string_view::npos &&
              std::count(before.begin(), before.end(), '"') % 2 == 0 &&
              before.find("//") == std::string_view::npos) {
            close(static_cast<std::size_t>(word.data() - text.data()) + tick, End::kFence);
          }
        }
        continue;
      }
      const bool named = IsCodeName(language) || IsOtherName(language);
      if (fence.mark != open.mark && !(fence.mark == '`' && named)) continue;
      if (!named) {
        if (fence.length >= open.length) close(at, End::kFence);
        continue;
      }
      close(at, End::kNext);
    }
    if (fence.length == 0) continue;
    first_fence = std::min(first_fence, at);
    open = fence;
    begin = text.size() - rest.size();
    block = Block();
    block.indent = fence.indent;
    block.language = language;
  }
  if (open.length > 0) close(text.size(), over);
  if (found.best.rank < 2) {
    const bool alone = first_fence == std::string_view::npos;
    Block bare = Unfenced(text.substr(0, first_fence), wanted, alone ? over : End::kStopped);
    if (bare.whole && bare.rank > found.best.rank) found.best = bare;
    if (alone) found.broken = bare.rank > 0 && !bare.whole;
  }
  return found;
}

// ---- The text that is taken ----

// Without the fence's indentation and the carriage returns of CRLF; it ends with a newline.
std::string Clean(const Block& block) {
  std::string clean;
  clean.reserve(block.code.size() + 1);
  std::string_view rest = block.code;
  while (!rest.empty()) {
    std::string_view line = TakeLine(&rest);
    std::size_t blanks = 0;
    while (blanks < block.indent && blanks < line.size() &&
           (line[blanks] == ' ' || line[blanks] == '\t'))
      ++blanks;
    line.remove_prefix(blanks);
    if (line.ends_with("\r\n")) {
      clean += line.substr(0, line.size() - 2);
      clean += '\n';
    } else {
      clean += line;
    }
  }
  if (!clean.empty() && clean.back() != '\n') clean += '\n';
  return clean;
}

// A whole file that has lost its markers begins with the template's own lines, which are put before
// a region anyway: they would be there twice. Blank lines and comments need not be the same.
std::string WithoutTemplate(const std::string& source, const Region& region) {
  const auto is_code = [](std::string_view line) {
    line = Trimmed(line);
    return !line.empty() && !line.starts_with("//");
  };
  std::string_view rest = source, ours = region.before;
  while (!ours.empty()) {
    const std::string_view own = TakeLine(&ours);
    if (!is_code(own)) continue;
    std::string_view other;
    while (!rest.empty() && !is_code(other)) other = TakeLine(&rest);
    if (Trimmed(own) != Trimmed(other)) return source;
  }
  const std::size_t first = std::min(rest.find_first_not_of(kBlank), rest.size());
  return std::string(rest.substr(rest.rfind('\n', first) + 1));
}

// Some servers leave a model's reasoning in the reply, where drafts look like answers. False: there
// is nothing else.
bool SkipReasoning(std::string_view* text) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  const std::string_view start =
      text->substr(std::min(text->find_first_not_of(kBlank), text->size()));
  const std::size_t end = text->find(kEnd);
  if (end == std::string_view::npos) return !start.starts_with(kBegin);
  if (start.starts_with(kBegin) || text->substr(0, end).find(kBegin) == std::string_view::npos)
    text->remove_prefix(end + kEnd.size());
  return true;
}

Answer Without(Answer::Kind kind, std::string text) { return {kind, "", std::move(text)}; }

constexpr const char* kAsk = "give the whole file, or only the region to edit, in one fenced block";

}  // namespace

Answer ReadAnswer(std::string_view reply, bool cut, const Region& region) {
  using Kind = Answer::Kind;
  if (reply.starts_with("\xef\xbb\xbf")) reply.remove_prefix(3);
  std::string_view text = reply;
  const bool answered = SkipReasoning(&text);
  const Found found = answered ? FindBlock(text, cut, WantedOf(region)) : Found();
  const Block& best = found.best;
  if (best.rank < 2 && cut) {
    return Without(
        Kind::kTruncated,
        fmt::format("The output limit cut the reply before its code was complete; {} and "
                    "keep the rest short.",
                    kAsk));
  }
  if (best.rank < 2 && found.broken) {
    return Without(Kind::kTruncated,
                   fmt::format("The reply ends in the middle of its code; {}.", kAsk));
  }
  if (best.rank == 0) {
    if (text.find('\0') != std::string_view::npos) {
      return Without(Kind::kNotText,
                     fmt::format("The reply has NUL bytes and no readable code; {}.", kAsk));
    }
    return Without(Kind::kNone, fmt::format("The reply has no code; {}.", kAsk));
  }
  if (best.code.size() > kLargestSource) {
    return Without(Kind::kTooLarge, fmt::format("The code has {} bytes; the limit is {}.",
                                                best.code.size(), kLargestSource));
  }
  if (best.code.find('\0') != std::string_view::npos)
    return Without(Kind::kNotText, "The code has NUL bytes; give plain text.");
  if (!IsUtf8(best.code)) return Without(Kind::kNotText, "The code is not valid UTF-8.");
  const std::string source = Clean(best);
  return {Kind::kSource, best.rank == 2 ? WithoutTemplate(source, region) : source, ""};
}

const char* NameOf(Answer::Kind kind) {
  switch (kind) {
    case Answer::Kind::kSource:
      return "source";
    case Answer::Kind::kNone:
      return "none";
    case Answer::Kind::kTruncated:
      return "truncated";
    case Answer::Kind::kTooLarge:
      return "too_large";
    case Answer::Kind::kNotText:
      return "not_text";
    case Answer::Kind::kRefused:
      return "refused";
  }
  return "";
}

}  // namespace allranks::problem

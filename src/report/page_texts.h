// The texts of a page (statements, sources, logs, feedback) within a budget of bytes: what matters
// most is read and taken first, and what no longer fits is left out by name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace allranks::report {

// What is taken first; within one of these, what was wanted first.
enum class Weight { kProblem, kExtreme, kPrompt, kBest, kWords, kWorst, kRound, kOther };

class PageTexts {
 public:
  // `roots`: the folders of the runs. A page is handed around, and a run may come from others: a
  // link in it that leads out of these is not followed, whatever it points at.
  PageTexts(std::size_t budget, const std::vector<std::filesystem::path>& roots);

  // The number that the page knows the text by. A longer text than `limit` is shortened.
  int WantFile(Weight weight, std::filesystem::path path, std::size_t limit);
  int WantText(Weight weight, std::string text, std::size_t limit);

  struct Text {
    enum class Kind { kText, kSame, kLeftOut };
    Kind kind = Kind::kText;
    std::string text;  // empty: there is no such file
    int same = 0;      // kSame: as this other one
  };
  // One for each number. Reads the files.
  std::vector<Text> Take() const;

 private:
  struct Wanted {
    Weight weight;
    std::filesystem::path path;  // empty: `text` is it
    std::string text;
    std::size_t limit;
  };
  bool Inside(const std::filesystem::path& path) const;

  std::size_t budget_;
  std::vector<std::filesystem::path> roots_;  // without links
  std::vector<Wanted> wanted_;
};

// reply.txt without the source that was taken out of it: the page has that one anyway, and puts it
// between the fences that remain.
std::string WithoutSource(std::string reply, std::string_view source);

// prompt.json as a person reads it; anything else as it is.
std::string ReadableMessages(const std::string& json);

}  // namespace allranks::report

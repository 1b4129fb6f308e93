// Every file in tests/ptx/data is a test: its text is parsed, and lines in it say what must come
// out.
//   //= line    stands, in this order, in the description of the module (describe.h)
//   //! text    parsing fails with exactly this message
// A file without either must only parse.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ptx/describe.h"
#include "ptx/parser.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(ALLRANKS_SOURCE_DIR) / "tests/ptx/data";

std::vector<std::string> Marked(const std::string& text, const std::string& mark) {
  std::vector<std::string> lines;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t start = at + mark.size();
    lines.push_back(text.substr(start, text.find('\n', start) - start));
  }
  return lines;
}

class DataTest : public testing::TestWithParam<std::string> {};

TEST_P(DataTest, HoldsWhatItSays) {
  const std::string text = ReadFile(kData / (GetParam() + ".ptx"));
  const std::vector<std::string> errors = Marked(text, "//! ");
  const Result<Module> module = Parse(text);
  if (!errors.empty()) {
    ASSERT_FALSE(module.has_value()) << "parsed, but must not";
    EXPECT_EQ(module.error().message, errors[0]);
    return;
  }
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const std::vector<std::string> lines = Describe(*module);
  auto at = lines.begin();
  for (const std::string& expected : Marked(text, "//= ")) {
    const auto found = std::find(at, lines.end(), expected);
    if (found == lines.end()) {
      std::string rest;
      for (const std::string& line : lines) rest += "  " + line + "\n";
      FAIL() << "not found, or not in this order: " << expected << "\nin\n" << rest;
    }
    at = found + 1;
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kData)) {
    if (entry.path().extension() == ".ptx") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ptx, DataTest, testing::ValuesIn(Names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace allranks::ptx

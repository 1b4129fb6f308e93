// Every arithmetic form of forms.txt against its model: all pairs of edge values and at least 10^5
// random operands for each form, on all instruction sets. One test per group of the file.
#include <chrono>
#include <set>

#include "alu/property.h"

namespace allranks::node::alu_test {
namespace {

// Sanitizers look for other faults and take ten times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kRandom = 1000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr std::size_t kRandom = 1000;
#else
constexpr std::size_t kRandom = 100000;
#endif
#else
constexpr std::size_t kRandom = 100000;
#endif

const std::map<std::string, std::vector<Line>>& Forms() {
  static const auto kForms =
      ReadForms(std::string(ALLRANKS_SOURCE_DIR "/tests/node/alu/forms.txt"));
  return kForms;
}

bool MakeModel(const Line& line, Model* model) {
  return ApproximateModel(line, model) || SmallFloatModel(line, model) ||
         ConvertModel(line, model) || VideoModel(line, model) || CompareModel(line, model) ||
         MoveModel(line, model) || HalfModel(line, model) || FloatModel(line, model) ||
         IntegerModel(line, model) || BitModel(line, model);
}

// The lines of one test: a part of a group, whole forms together.
constexpr int kParts = 4;

class AluProperty : public ::testing::TestWithParam<std::tuple<std::string, int>> {};
TEST_P(AluProperty, AgreesWithItsModel) {
  const auto& [group, part] = GetParam();
  std::map<std::string, std::vector<const Line*>> forms;
  for (const Line& line : Forms().at(group)) forms[line.form].push_back(&line);
  std::size_t number = 0, tried = 0, shapes = 0, operands = 0;
  for (const auto& [form, lines] : forms) {
    if (static_cast<int>(number++ % kParts) != part) continue;
    ++tried;
    for (const Line* line : lines) {
      Model model;
      ASSERT_TRUE(MakeModel(*line, &model)) << "no model of " << line->text;
      Property property(*line);
      ASSERT_TRUE(property.selected()) << line->text << ": " << property.error();
      const std::size_t random = (kRandom + lines.size() - 1) / lines.size();
      const std::string difference = property.Run(model, random);
      EXPECT_EQ(difference, "");
      ++shapes;
      operands += random;
    }
  }
  std::printf("%s, part %d: %zu forms in %zu shapes, %zu random operands\n", group.c_str(), part,
              tried, shapes, operands);
}

std::vector<std::string> Groups() {
  std::vector<std::string> names;
  for (const auto& [name, lines] : Forms()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Forms, AluProperty,
                         ::testing::Combine(::testing::ValuesIn(Groups()),
                                            ::testing::Range(0, kParts)),
                         [](const auto& p) {
                           std::string name;
                           for (const char c : std::get<0>(p.param))
                             name += std::isalnum(c) ? c : '_';
                           return name + "_" + std::to_string(std::get<1>(p.param));
                         });

// As many as the assembler accepted when the list was made; fewer means that the list was cut.
TEST(AluProperty, HasAllForms) {
  std::set<std::string> forms;
  for (const auto& [name, lines] : Forms()) {
    for (const Line& line : lines) forms.insert(line.form);
  }
  EXPECT_GE(forms.size(), 6707u);
  // What nvcc emits for the toolkit's own device functions is among them.
  std::ifstream emitted(std::string(ALLRANKS_SOURCE_DIR "/tests/node/alu/accepted.txt"));
  for (std::string text; std::getline(emitted, text);) {
    if (text.empty() || text[0] == '#') continue;
    EXPECT_EQ(forms.count(text.substr(0, text.find(' '))), 1u) << text;
  }
}

}  // namespace
}  // namespace allranks::node::alu_test

// Where the parts of a run lie (record.h has the picture).
#include <fmt/format.h>

#include <cctype>

#include "campaign/record.h"
#include "judge/scratch.h"

namespace allranks::campaign {
namespace {

constexpr std::size_t kLongestName = 120;

// A name as a folder: one level, never hidden, and different for different names.
std::string FolderName(const std::string& name) {
  std::string folder;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                       (c == '.' && !folder.empty());
    folder += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (folder.empty()) return "%";
  // A file system takes 255 bytes; '%' is followed by two digits in all other names.
  if (folder.size() > kLongestName) {
    folder.resize(kLongestName);
    folder += "%-" + judge::HashOf({name}).substr(0, 16);
  }
  return folder;
}

}  // namespace

std::filesystem::path SampleFolder(const std::string& model, const std::string& problem,
                                   int sample) {
  return std::filesystem::path("samples") / FolderName(model) / FolderName(problem) /
         std::to_string(sample);
}

std::filesystem::path RoundFolder(const std::string& model, const std::string& problem, int sample,
                                  int round) {
  return SampleFolder(model, problem, sample) / fmt::format("round-{}", round);
}

}  // namespace allranks::campaign

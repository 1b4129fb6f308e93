#include "report/dates.h"

#include <algorithm>
#include <fstream>
#include <ios>
#include <string_view>

namespace allranks::report {
namespace {

constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
constexpr std::streamoff kTail = 64 << 10;  // more than a line of the log

std::string TimeAt(std::string_view text) {
  if (text.size() <= kForm.size() || text[kForm.size()] != ' ') return "";
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return "";
  }
  return std::string(text.substr(0, kForm.size()));
}

}  // namespace

Dates DatesOf(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "log.txt";
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error))) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(kForm.size() + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  Dates dates;
  dates.first = TimeAt(text);
  file.clear();
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (dates.first.empty() || size < 0) return {};
  file.seekg(std::max<std::streamoff>(0, size - kTail));
  text.assign(static_cast<std::size_t>(std::min(size, kTail)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // The last line that begins with a time: a line of several may end the log.
  for (std::size_t end = text.size(); dates.last.empty();) {
    const std::size_t before = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    dates.last = TimeAt(std::string_view(text).substr(begin));
    if (before == std::string::npos) break;
    end = before;
  }
  if (dates.last.empty()) dates.last = dates.first;
  return dates;
}

}  // namespace allranks::report

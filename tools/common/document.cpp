// See document.h.
#include "common/document.h"

#include <ctime>
#include <fstream>

#include "common/run.h"

namespace allranks::tools {

Result<bool> PutBetween(const std::string& begin, const std::string& end, const std::string& text,
                        const std::filesystem::path& document, bool write) {
  const std::string before = ReadText(document);
  const std::size_t first = before.find(begin), last = before.find(end);
  if (first == std::string::npos || last == std::string::npos || last < first)
    return Fail("{} has no place for the table: no line {}", document.string(), begin);
  std::string after = before;
  after.replace(first, last - first, begin + text);
  if (write && !(std::ofstream(document, std::ios::binary) << after))
    return Fail("cannot write {}", document.string());
  return after == before;
}

std::string Today() {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  return date;
}

}  // namespace allranks::tools

#include "node/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace allranks::node {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFindings = 1'000;

// Whatever the compiler has made of a line: an unrolled loop has several forms of it.
bool SamePlace(const FindingAccess& a, const FindingAccess& b) {
  const auto key = [](const FindingAccess& x) {
    return std::tie(x.what, x.kernel, x.file, x.line, x.inlined_at);
  };
  if (key(a) != key(b)) return false;
  // Without a place in the source the object has to tell them apart.
  return !a.file.empty() || a.object == b.object;
}

// "races", but "2 portability": names that are no things have no plural.
std::string Plural(const char* name, std::size_t count) {
  const std::string_view text = name;
  if (count == 1 || (text != "race" && text != "leak" && text != "barrier" && text != "mbarrier"))
    return std::string(text);
  return std::string(text) + "s";
}

bool IsPathByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '-' || c == '.' || c == '/';
}

void Replace(std::string_view from, std::string_view to, std::string* text) {
  for (std::size_t at = 0; (at = text->find(from, at)) != std::string::npos;) {
    if (at > 0 && IsPathByte((*text)[at - 1])) {
      ++at;
      continue;
    }
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

Json Optional(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json Optional(int number) { return number < 0 ? Json(nullptr) : Json(number); }

Json JsonOf(const FindingAccess& access) {
  const bool in_kernel = !access.kernel.empty();
  const Dim3& block = access.block;
  return {{"what", access.what},
          {"form", Optional(access.form)},
          {"write", access.write},
          {"rank", Optional(access.rank)},
          {"device", Optional(access.device)},
          {"kernel", Optional(access.kernel)},
          {"block", in_kernel ? Json::array({block.x, block.y, block.z}) : Json(nullptr)},
          {"thread", in_kernel ? Json(access.thread) : Json(nullptr)},
          {"file", Optional(access.file)},
          {"line", access.file.empty() ? Json(nullptr) : Json(access.line)},
          {"inlined_at", Optional(access.inlined_at)},
          {"object", Optional(access.object)},
          {"offset", access.offset},
          {"bytes", access.bytes},
          {"time_ns", access.time == 0 ? Json(nullptr) : Json(ToNs(access.time))}};
}

std::string TextIn(const Json& json, const char* name) {
  const auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

template <class T>
T NumberIn(const Json& json, const char* name, T otherwise) {
  const auto it = json.find(name);
  return it != json.end() && it->is_number() ? it->get<T>() : otherwise;
}

FindingAccess AccessOf(const Json& json) {
  FindingAccess access;
  access.what = TextIn(json, "what");
  access.form = TextIn(json, "form");
  access.write = json.value("write", false);
  access.rank = NumberIn(json, "rank", -1);
  access.device = NumberIn(json, "device", -1);
  access.kernel = TextIn(json, "kernel");
  if (const auto it = json.find("block"); it != json.end() && it->is_array() && it->size() == 3)
    access.block = {(*it)[0].get<std::uint32_t>(), (*it)[1].get<std::uint32_t>(),
                    (*it)[2].get<std::uint32_t>()};
  access.thread = NumberIn<std::uint32_t>(json, "thread", 0);
  access.file = TextIn(json, "file");
  access.line = NumberIn(json, "line", 0);
  access.inlined_at = TextIn(json, "inlined_at");
  access.object = TextIn(json, "object");
  access.offset = NumberIn<std::uint64_t>(json, "offset", 0);
  access.bytes = NumberIn<std::uint32_t>(json, "bytes", 0);
  access.time = Ns(NumberIn<std::int64_t>(json, "time_ns", 0));
  return access;
}

}  // namespace

std::vector<Finding> FindingsFromJson(std::string_view text) {
  std::vector<Finding> findings;
  const Json all = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_array()) return findings;
  for (const Json& json : all) {
    if (!json.is_object()) continue;
    const auto kind = KindNamed(TextIn(json, "kind"));
    const auto accesses = json.find("accesses");
    if (!kind || accesses == json.end() || !accesses->is_array() || accesses->empty()) continue;
    Finding& finding = findings.emplace_back();
    finding.kind = *kind;
    finding.text = TextIn(json, "text");
    finding.missing = TextIn(json, "missing");
    finding.advice = TextIn(json, "advice");
    finding.count = NumberIn<std::uint64_t>(json, "count", 1);
    finding.schedule = NumberIn<std::uint64_t>(json, "schedule", 0);
    for (const Json& access : *accesses) finding.accesses.push_back(AccessOf(access));
  }
  return findings;
}

bool SamePlaces(const Finding& a, const Finding& b) {
  return a.kind == b.kind && std::equal(a.accesses.begin(), a.accesses.end(), b.accesses.begin(),
                                        b.accesses.end(), SamePlace);
}

void Fold(std::vector<Finding> more, std::vector<Finding>* all) {
  for (Finding& finding : more) {
    const auto known = std::find_if(all->begin(), all->end(),
                                    [&](const Finding& one) { return SamePlaces(one, finding); });
    if (known != all->end()) {
      known->count += finding.count;
    } else {
      // Those that do not count leave room for those that do.
      const std::size_t counted = CountedOf(*all);
      const bool room =
          Counts(finding) ? counted < kMostFindings : all->size() - counted < kMostFindings / 4;
      if (room) all->push_back(std::move(finding));
    }
  }
}

bool Counts(const Finding& finding) {
  const FindingClass of = ClassOf(finding.kind);
  return of != FindingClass::kPortability && of != FindingClass::kLeak;
}

std::size_t CountedOf(const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), Counts));
}

std::string Summary(const std::vector<Finding>& findings) {
  if (findings.empty()) return "no findings";
  std::vector<std::pair<Finding::Kind, std::size_t>> kinds;
  for (const Finding& finding : findings) {
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == finding.kind; });
    if (known != kinds.end()) {
      ++known->second;
    } else {
      kinds.emplace_back(finding.kind, 1);
    }
  }
  std::sort(kinds.begin(), kinds.end());
  std::string text = fmt::format("{} finding{}:", findings.size(), findings.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < kinds.size(); ++i)
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", kinds[i].second,
                        Plural(NameOf(kinds[i].first), kinds[i].second));
  return text;
}

void ReplacePaths(std::string_view from, std::string_view to, Finding* finding) {
  if (from.empty()) return;
  for (std::string* text : {&finding->text, &finding->missing, &finding->advice})
    Replace(from, to, text);
  for (FindingAccess& access : finding->accesses) {
    Replace(from, to, &access.file);
    Replace(from, to, &access.inlined_at);
  }
}

const char* NameOf(FindingClass of) {
  switch (of) {
    case FindingClass::kRace:
      return "race";
    case FindingClass::kMemory:
      return "memory";
    case FindingClass::kSynchronisation:
      return "synchronisation";
    case FindingClass::kPortability:
      return "portability";
    case FindingClass::kLeak:
      return "leak";
  }
  return "?";
}

std::string ToJson(const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    Json accesses = Json::array();
    for (const FindingAccess& access : finding.accesses) accesses.push_back(JsonOf(access));
    all.push_back({{"kind", NameOf(finding.kind)},
                   {"class", NameOf(ClassOf(finding.kind))},
                   {"text", finding.text},
                   {"missing", finding.missing},
                   {"advice", finding.advice},
                   {"count", finding.count},
                   {"schedule", finding.schedule},
                   {"accesses", std::move(accesses)}});
  }
  // A program's strings need not be UTF-8.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace allranks::node

#include "node/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
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
  // Without a place in the source the object has to tell them apart. The judge touches all tensors.
  return !a.file.empty() || a.what == "judge" ||
         (a.object == b.object && a.site.Place() == b.site.Place());
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

Json JsonOf(const std::vector<HostFrame>& frames) {
  Json all = Json::array();
  for (const HostFrame& frame : frames) {
    all.push_back({{"file", Optional(frame.file)},
                   {"line", frame.file.empty() ? Json(nullptr) : Json(frame.line)},
                   {"function", Optional(frame.function)}});
  }
  return all;
}

Json JsonOf(const HostSite& site) {
  if (!site.known()) return nullptr;
  return {{"call", Optional(site.call)}, {"host", JsonOf(site.frames)}};
}

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
          {"call", Optional(access.site.call)},
          {"stream", Optional(access.stream)},
          {"host", JsonOf(access.site.frames)},
          {"object", Optional(access.object)},
          {"allocated", JsonOf(access.allocated)},
          {"freed", JsonOf(access.freed)},
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

HostSite SiteOf(const Json& json) {
  HostSite site;
  if (!json.is_object()) return site;
  site.call = TextIn(json, "call");
  const auto frames = json.find("host");
  if (frames == json.end() || !frames->is_array()) return site;
  for (const Json& frame : *frames)
    site.frames.push_back(
        {TextIn(frame, "file"), NumberIn(frame, "line", 0), TextIn(frame, "function")});
  return site;
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
  access.site = SiteOf(json);
  access.stream = TextIn(json, "stream");
  access.object = TextIn(json, "object");
  access.allocated = SiteOf(json.value("allocated", Json()));
  access.freed = SiteOf(json.value("freed", Json()));
  access.offset = NumberIn<std::uint64_t>(json, "offset", 0);
  access.bytes = NumberIn<std::uint32_t>(json, "bytes", 0);
  access.time = Ns(NumberIn<std::int64_t>(json, "time_ns", 0));
  return access;
}

std::vector<Edit::Place> PlacesOf(const Json& json) {
  std::vector<Edit::Place> places;
  if (!json.is_array()) return places;
  for (const Json& place : json) {
    places.push_back({TextIn(place, "file"), NumberIn(place, "line", 0),
                      NumberIn(place, "column", 0), TextIn(place, "function")});
  }
  return places;
}

Edit EditOf(const Json& json) {
  Edit edit;
  const auto find = [&](const char* member, auto last, auto* into) {
    using Name = std::decay_t<decltype(*into)>;
    const std::string name = TextIn(json, member);
    for (int i = 0; i <= static_cast<int>(last); ++i)
      if (name == NameOf(static_cast<Name>(i))) *into = static_cast<Name>(i);
  };
  find("action", Edit::Action::kHoist, &edit.action);
  find("by", Edit::By::kHost, &edit.by);
  edit.at = PlacesOf(json.value("at", Json::array()));
  edit.to = PlacesOf(json.value("to", Json::array()));
  edit.text = TextIn(json, "text");
  edit.from = TextIn(json, "from");
  edit.form = TextIn(json, "form");
  return edit;
}

// The statement that an edit changes: in the file of the kernel, as deep as calls were inlined.
const Edit::Place& PlaceOf(const Edit& edit) {
  const std::string& file = edit.at.back().file;
  return *std::find_if(edit.at.begin(), edit.at.end(),
                       [&](const Edit::Place& at) { return at.file == file; });
}

bool SamePlaces(const std::vector<Edit::Place>& a, const std::vector<Edit::Place>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Edit::Place& x, const Edit::Place& y) {
                      return std::tie(x.file, x.line) == std::tie(y.file, y.line);
                    });
}

bool SameEdit(const Edit& a, const Edit& b) {
  if (a.action != b.action || a.at.empty() || b.at.empty()) return false;
  // A call that waits for two others needs both; a helper is called from several places.
  if (a.by == Edit::By::kHost && a.at[0].line != 0)
    return b.by == a.by && SamePlaces(a.at, b.at) && SamePlaces(a.to, b.to);
  const Edit::Place &p = PlaceOf(a), &q = PlaceOf(b);
  if (std::tie(p.file, p.line, p.column) != std::tie(q.file, q.line, q.column)) return false;
  // What has no line is told apart by its names.
  return p.line != 0 ||
         (p.function == q.function && a.text == b.text && a.to.empty() == b.to.empty() &&
          (a.to.empty() || a.to[0].function == b.to[0].function));
}

// Scopes, and fences and barriers by them, the narrowest first; -1: something else.
int Width(const std::string& text) {
  static constexpr std::array<std::string_view, 10> kTexts = {"cta",
                                                              "cluster",
                                                              "gpu",
                                                              "sys",
                                                              "__threadfence_block();",
                                                              "__threadfence();",
                                                              "__threadfence_system();",
                                                              "__syncwarp();",
                                                              "__syncthreads();",
                                                              ""};
  const auto at = std::find(kTexts.begin(), kTexts.end() - 1, text);
  return at == kTexts.end() - 1 ? -1 : static_cast<int>(at - kTexts.begin());
}

std::string Brief(const FindingAccess& access) {
  std::string text = access.what;
  if (!access.file.empty()) text += fmt::format(" at {}:{}", access.file, access.line);
  if (!access.inlined_at.empty()) text += fmt::format(" (inlined at {})", access.inlined_at);
  return text;
}

Json JsonOf(const std::vector<Edit::Place>& places) {
  Json all = Json::array();
  for (const Edit::Place& place : places) {
    all.push_back({{"file", Optional(place.file)},
                   {"line", place.line == 0 ? Json(nullptr) : Json(place.line)},
                   {"column", place.column == 0 ? Json(nullptr) : Json(place.column)},
                   {"function", Optional(place.function)}});
  }
  return all;
}

Json JsonOf(const Edit& edit) {
  return {{"action", NameOf(edit.action)}, {"by", NameOf(edit.by)},
          {"at", JsonOf(edit.at)},         {"text", edit.text},
          {"from", Optional(edit.from)},   {"form", Optional(edit.form)},
          {"to", JsonOf(edit.to)}};
}

constexpr std::size_t kMostAlso = 8;

// Of the accesses, in any order. Without kernels: no.
bool SameKernels(const Finding& a, const Finding& b) {
  const auto kernels = [](const Finding& finding) {
    std::vector<std::string_view> all;
    for (const FindingAccess& access : finding.accesses) all.push_back(access.kernel);
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<std::string_view> of = kernels(a);
  return !of.empty() && !of.back().empty() && of == kernels(b);
}

}  // namespace

bool SameCause(const Finding& a, const Finding& b) {
  if (a.kind != b.kind || a.edits.empty() != b.edits.empty()) return false;
  // Without -lineinfo nothing but the object tells places apart.
  const auto lines = [](const Finding& finding) {
    return std::any_of(finding.accesses.begin(), finding.accesses.end(),
                       [](const FindingAccess& access) { return !access.file.empty(); });
  };
  // Nothing between two kernels tells of what comes before: wherever it is missed.
  if (a.edits.empty())
    return a.kind == Finding::Kind::kRace && !a.advice.empty() && a.advice == b.advice &&
           lines(a) && lines(b) && SameKernels(a, b);
  if (!SameEdit(a.edits[0], b.edits[0])) return false;
  // What has no line: the beginning of a kernel, or an order between two operations of streams,
  // which is of one object.
  return PlaceOf(a.edits[0]).line != 0 || a.edits[0].by == Edit::By::kBlock ||
         (lines(a) && lines(b) && a.accesses[0].object == b.accesses[0].object);
}

void Widen(const Finding& more, Finding* into) {
  // What the first pair did not show, another one may.
  bool wider = into->edits.empty() && !more.edits.empty();
  if (!wider && more.edits.size() != into->edits.size()) return;
  for (std::size_t i = 0; i < into->edits.size(); ++i) {
    if (!SameEdit(more.edits[i], into->edits[i])) return;
    const int was = Width(into->edits[i].text), is = Width(more.edits[i].text);
    // Scopes, fences and barriers are not compared with each other.
    const auto sort = [](int width) { return width < 4 ? 0 : width < 7 ? 1 : 2; };
    if (is < was || sort(is) != sort(was)) return;
    wider |= is > was;
  }
  if (!wider) return;
  into->edits = more.edits;
  into->advice = more.advice;
  into->missing = more.missing;
}

void Merge(Finding more, Finding* into) {
  into->count += more.count;
  if (SamePlaces(more, *into)) return;
  Widen(more, into);
  into->pairs += more.pairs;
  const auto add = [&](FindingPair pair) {
    if (std::find(into->also.begin(), into->also.end(), pair) != into->also.end()) return;
    if (into->also.size() < kMostAlso) into->also.push_back(std::move(pair));
  };
  if (more.accesses.size() > 1) add({Brief(more.accesses[0]), Brief(more.accesses[1])});
  for (FindingPair& pair : more.also) add(std::move(pair));
}

namespace {

// The kernel, if only one of the two accesses is a kernel's.
std::string_view LoneKernel(const Finding& finding) {
  if (finding.accesses.size() != 2) return {};
  const std::string &a = finding.accesses[0].kernel, &b = finding.accesses[1].kernel;
  return a.empty() ? b : b.empty() ? std::string_view(a) : std::string_view();
}

// A flag between a kernel and a host or a stream that one side accesses weakly.
bool WeakHostFlag(const Finding& finding) {
  return finding.kind == Finding::Kind::kRace && !finding.edits.empty() &&
         (finding.edits[0].from == "weak" || finding.edits[0].from.starts_with("cudaMem")) &&
         !LoneKernel(finding).empty();
}

// What that flag should order: accesses of its kernel after a poll, or before a store.
bool IsBehindHostFlag(const Finding& one, const Finding& flag) {
  const std::size_t side = flag.edits[0].form.starts_with("st") ? 1 : 0;
  return LoneKernel(one) == LoneKernel(flag) && !one.accesses[side].kernel.empty() &&
         one.accesses[0].rank == flag.accesses[0].rank &&
         one.accesses[1].rank == flag.accesses[1].rank;
}

void FoldBehindHostFlags(std::vector<Finding>* findings) {
  for (std::size_t i = 0; i < findings->size();) {
    const Finding& one = (*findings)[i];
    const bool open = one.kind == Finding::Kind::kRace && !WeakHostFlag(one);
    const auto flag =
        !open || LoneKernel(one).empty()
            ? findings->end()
            : std::find_if(findings->begin(), findings->end(), [&](const Finding& other) {
                return WeakHostFlag(other) && IsBehindHostFlag(one, other);
              });
    if (flag == findings->end()) {
      ++i;
      continue;
    }
    Finding more = std::move((*findings)[i]);
    more.edits.clear();
    Merge(std::move(more), &*flag);
    findings->erase(findings->begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

void FoldConsequences(std::vector<Finding>* findings) {
  FoldBehindHostFlags(findings);
  const auto weak_flag = [](const Finding& one) {
    return one.kind == Finding::Kind::kRace && one.accesses.size() == 2 && !one.edits.empty() &&
           one.edits[0].from == "weak";
  };
  const auto same_kernels = [](const Finding& a, const Finding& b) {
    const auto kernels = [](const Finding& one) {
      return std::minmax(one.accesses[0].kernel, one.accesses[1].kernel);
    };
    return kernels(a) == kernels(b);
  };
  for (std::size_t i = 0; i < findings->size();) {
    Finding& one = (*findings)[i];
    const bool open = one.kind == Finding::Kind::kRace && one.accesses.size() == 2 &&
                      one.edits.empty() && !one.accesses[0].kernel.empty() &&
                      !one.accesses[1].kernel.empty();
    const auto flag = open ? std::find_if(findings->begin(), findings->end(),
                                          [&](const Finding& other) {
                                            return weak_flag(other) && same_kernels(one, other);
                                          })
                           : findings->end();
    if (flag == findings->end()) {
      ++i;
      continue;
    }
    Merge(std::move(one), &*flag);
    findings->erase(findings->begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<Finding> first, others;
  for (Finding& one : *findings) {
    const bool explains =
        one.kind == Finding::Kind::kBarrier || one.kind == Finding::Kind::kWarpMask;
    (explains ? first : others).push_back(std::move(one));
  }
  std::move(others.begin(), others.end(), std::back_inserter(first));
  *findings = std::move(first);
}

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
    finding.pairs = NumberIn<std::uint64_t>(json, "pairs", 1);
    if (const auto also = json.find("also"); also != json.end() && also->is_array()) {
      for (const Json& pair : *also)
        finding.also.push_back({TextIn(pair, "later"), TextIn(pair, "earlier")});
    }
    if (const auto edits = json.find("edits"); edits != json.end() && edits->is_array())
      for (const Json& edit : *edits) finding.edits.push_back(EditOf(edit));
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
    const auto known = std::find_if(all->begin(), all->end(), [&](const Finding& one) {
      return SamePlaces(one, finding) || SameCause(one, finding);
    });
    if (known != all->end()) {
      Merge(std::move(finding), &*known);
    } else {
      // Those that do not count leave room for those that do.
      const std::size_t counted = CountedOf(*all);
      const bool room =
          Counts(finding) ? counted < kMostFindings : all->size() - counted < kMostFindings / 4;
      if (room) all->push_back(std::move(finding));
    }
  }
  FoldOrders(all);
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
    for (HostSite* site : {&access.site, &access.allocated, &access.freed})
      for (HostFrame& frame : site->frames) Replace(from, to, &frame.file);
  }
  for (Edit& edit : finding->edits) {
    for (Edit::Place& place : edit.at) Replace(from, to, &place.file);
    for (Edit::Place& place : edit.to) Replace(from, to, &place.file);
  }
  for (FindingPair& pair : finding->also) {
    Replace(from, to, &pair.later);
    Replace(from, to, &pair.earlier);
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
    case FindingClass::kApi:
      return "api";
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
    Json edits = Json::array(), also = Json::array();
    for (const Edit& edit : finding.edits) edits.push_back(JsonOf(edit));
    for (const FindingPair& pair : finding.also)
      also.push_back({{"later", pair.later}, {"earlier", pair.earlier}});
    all.push_back({{"kind", NameOf(finding.kind)},
                   {"class", NameOf(ClassOf(finding.kind))},
                   {"text", finding.text},
                   {"missing", finding.missing},
                   {"advice", finding.advice},
                   {"edits", std::move(edits)},
                   {"count", finding.count},
                   {"pairs", finding.pairs},
                   {"also", std::move(also)},
                   {"schedule", finding.schedule},
                   {"accesses", std::move(accesses)}});
  }
  // A program's strings need not be UTF-8.
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace allranks::node

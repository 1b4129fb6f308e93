// Reading and writing reference.lock. Times stand there in nanoseconds, exact to the picosecond.
#include "problem/lock.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "problem/problem.h"
#include "problem/reader.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

bool ReadTime(Section& section, const char* key, double* out) {
  const char* expected = "nanoseconds";
  const toml::node* node = section.Find(key, Section::kRequired, expected);
  if (node == nullptr) return false;
  const std::optional<double> value = node->value<double>();
  if (!value || !node->is_number() || !(*value >= 0) || !(*value < 1e15)) {
    section.Wrong(node, key, expected);
    return false;
  }
  *out = std::round(*value * 1000) / 1000;
  return true;
}

void ReadTimes(const toml::table* table, const std::string& path, Faults* faults,
               LockedTimes* out) {
  Section section(table, path, faults);
  ReadTime(section, "isolated_ns", &out->isolated_ns);
  ReadTime(section, "call_ns", &out->call_ns);
  const char* key = "thread_instructions";
  const toml::node* node = section.Find(key, Section::kRequired, "a count");
  const auto* value = node == nullptr ? nullptr : node->as_integer();
  if (value != nullptr && value->get() >= 0) {
    out->thread_instructions = static_cast<std::uint64_t>(value->get());
  } else if (node != nullptr) {
    section.Wrong(node, key, "a count");
  }
  section.RejectOthers();
}

std::string RenderTimes(const LockedTimes& times) {
  return fmt::format("{{ isolated_ns = {:.3f}, call_ns = {:.3f}, thread_instructions = {} }}",
                     times.isolated_ns, times.call_ns, times.thread_instructions);
}

}  // namespace

std::string HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) {
    if (c == '\r') continue;
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

std::string Deciding(std::string_view toml) {
  std::string deciding;
  bool head = true;  // before the first section, where only the library decides
  while (!toml.empty()) {
    const std::size_t end = std::min(toml.find('\n'), toml.size() - 1) + 1;
    const std::string_view line = toml.substr(0, end);
    head = head && !line.starts_with('[');
    if (!head || line.starts_with("library")) deciding += line;
    toml.remove_prefix(end);
  }
  return deciding;
}

const LockEntry* Lock::Find(const std::string& profile, const std::string& one) const {
  const auto cases = profiles.find(profile);
  if (cases == profiles.end()) return nullptr;
  const auto entry = cases->second.find(one);
  return entry == cases->second.end() ? nullptr : &entry->second;
}

std::uint64_t Lock::MostInstructions(const std::string& profile) const {
  std::uint64_t most = 0;
  if (const auto cases = profiles.find(profile); cases != profiles.end()) {
    for (const auto& [name, entry] : cases->second)
      most = std::max(most, entry.reference.thread_instructions);
  }
  return most;
}

std::filesystem::path LockPath(const Problem& problem) {
  return problem.folder /
         (problem.variant.empty() ? "reference.lock" : "reference." + problem.variant + ".lock");
}

Result<Lock> LoadLock(const Problem& problem) {
  const std::filesystem::path path = LockPath(problem);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Lock();
  const auto text = ReadFile(path);
  if (!text) return Fail(text.error());
  toml::table table;
  try {
    table = toml::parse(*text, path.string());
  } catch (const toml::parse_error& fault) {
    return Fail("{}:{}: {}", path.string(), fault.source().begin.line, fault.description());
  }
  Faults faults(path.string());
  Lock lock;
  Section root(&table, "", &faults);
  int schema = 0;
  root.Int("schema", &schema, Lock::kSchema, Lock::kSchema, Section::kRequired);
  root.Text("reference", &lock.reference);
  root.Text("baseline", &lock.baseline);
  root.Text("problem", &lock.problem);
  root.Text("nccl", &lock.nccl, Section::kOptional);
  Section profiles(root.Table("profile", Section::kOptional), "profile", &faults);
  for (const auto& [profile, node] : profiles.InOrder()) {
    Section cases(profiles.Table(profile.c_str(), Section::kRequired), "profile." + profile,
                  &faults);
    for (const auto& [name, entry] : cases.InOrder()) {
      const std::string full = "profile." + profile + "." + name;
      Section one(cases.Table(name.c_str(), Section::kRequired), full, &faults);
      LockEntry& locked = lock.profiles[profile][name];
      ReadTimes(one.Table("reference", Section::kRequired), full + ".reference", &faults,
                &locked.reference);
      ReadTimes(one.Table("baseline", Section::kRequired), full + ".baseline", &faults,
                &locked.baseline);
      if (const toml::table* nccl = one.Table("nccl", Section::kOptional))
        ReadTimes(nccl, full + ".nccl", &faults, &locked.nccl.emplace());
      one.RejectOthers();
    }
  }
  root.RejectOthers();
  if (faults.Any()) return Fail("{}", faults.Text());
  return lock;
}

std::string Render(const Lock& lock) {
  std::string text = fmt::format(
      "# How fast reference and baseline are: modelled nanoseconds. Written by\n"
      "# `allranks problems check --update`.\n"
      "schema = {}\nreference = \"{}\"\nbaseline = \"{}\"\nproblem = \"{}\"\n",
      Lock::kSchema, lock.reference, lock.baseline, lock.problem);
  if (!lock.nccl.empty()) text += fmt::format("nccl = \"{}\"\n", lock.nccl);
  for (const auto& [profile, cases] : lock.profiles) {
    for (const auto& [name, entry] : cases) {
      text += fmt::format("\n[profile.\"{}\".\"{}\"]\nreference = {}\nbaseline = {}\n", profile,
                          name, RenderTimes(entry.reference), RenderTimes(entry.baseline));
      if (entry.nccl) text += fmt::format("nccl = {}\n", RenderTimes(*entry.nccl));
    }
  }
  return text;
}

std::string StaleBecause(const Lock& lock, const std::filesystem::path& folder) {
  const auto changed = [&](const char* file, const std::string& hash) {
    const auto text = ReadFile(folder / file);
    return text && HashOf(*text) != hash;
  };
  const auto toml = ReadFile(folder / "problem.toml");
  if (toml && HashOf(Deciding(*toml)) != lock.problem) return "problem.toml has changed since";
  if (changed("reference.cu", lock.reference)) return "reference.cu has changed since";
  if (changed("baseline.cu", lock.baseline)) return "baseline.cu has changed since";
  if (changed("nccl.cu", lock.nccl)) return "nccl.cu has changed since";
  return "";
}

}  // namespace allranks::problem

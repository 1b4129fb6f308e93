// See perturb.h. What is not a time or a rate (sizes, counts, packet formats) stays, and so do the
// costs of arithmetic: they are known better, and no problem is decided by them.
#include "judge/perturb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <vector>

#include "judge/stream.h"
#include "node/hardware/profile.h"
#include "node/hardware/profile_file.h"

namespace allranks::judge {
namespace {

struct Keys {
  const char* section;
  std::vector<const char*> keys;  // empty: all of them
};

// Of every section below [links] as well.
constexpr const char* kOfLinks[] = {"gbs", "latency_ns"};

const std::vector<Keys>& Scaled() {
  static const std::vector<Keys> kScaled = {
      {"latency", {"l2", "hbm", "atomic", "fence_cta", "fence_gpu", "fence_sys"}},
      {"bandwidth", {"hbm_gbs", "l2_gbs", "sm_l2_gbs"}},
      {"multicast", {"efficiency", "reduce_ns"}},
      {"copy_engine", {"startup_ns", "gbs"}},
      {"launch", {}},
      {"host", {"poll_ns"}},
  };
  return kScaled;
}

void Scale(toml::table* table, const std::string& section, const std::string& key, int number) {
  toml::node* node = table->get(key);
  if (node == nullptr) return;
  const double factor = FactorOf(section, key, number);
  if (auto* integer = node->as_integer(); integer != nullptr && section == "latency") {
    // Cycles are whole: the nearest number of them that is still within the bounds.
    const auto cycles = static_cast<double>(integer->get());
    *integer = static_cast<std::int64_t>(std::clamp(std::round(cycles * factor),
                                                    std::ceil(cycles / kMostFactor),
                                                    std::floor(cycles * kMostFactor)));
  } else if (const std::optional<double> value = node->value<double>()) {
    // An efficiency is no more than all.
    const double scaled = *value * factor;
    table->insert_or_assign(key, key == "efficiency" ? std::min(scaled, 1.0) : scaled);
  }
}

std::vector<std::string> KeysOf(const toml::table& table) {
  std::vector<std::string> keys;
  for (const auto& [key, node] : table) keys.emplace_back(key.str());
  return keys;
}

}  // namespace

double FactorOf(const std::string& section, const std::string& key, int number) {
  static const Key kOpen = KeyOf("perturbed profiles", "band 1");
  Stream stream(kOpen, fmt::format("{} {} {}", number, section, key));
  const double even = static_cast<double>(stream.Next64() >> 11) * 0x1p-53;  // [0, 1)
  const double factor = std::exp((2 * even - 1) * std::log(kMostFactor));
  // So few digits that every machine's exp and log agree on them.
  return std::clamp(std::round(factor * 1e6) / 1e6, 1 / kMostFactor, kMostFactor);
}

Result<std::string> PerturbedProfile(const std::string& path, int number) {
  Result<toml::table> file = node::ReadProfileFile(path);
  if (!file) return Fail(file.error());
  for (const Keys& scaled : Scaled()) {
    toml::table* table = (*file)[scaled.section].as_table();
    if (table == nullptr) continue;  // whoever reads the profile says so
    std::vector<std::string> keys(scaled.keys.begin(), scaled.keys.end());
    if (keys.empty()) keys = KeysOf(*table);
    for (const std::string& key : keys) Scale(table, scaled.section, key, number);
  }
  if (toml::table* links = (*file)["links"].as_table()) {
    for (const std::string& name : KeysOf(*links)) {
      toml::table* link = links->get(name)->as_table();
      for (const char* key : kOfLinks)
        if (link != nullptr) Scale(link, "links." + name, key, number);
    }
  }
  std::ostringstream text;
  text << *file << "\n";
  const Result<node::Profile> read = node::ParseProfile(text.str(), path);
  if (!read) return Fail("as perturbed profile {}: {}", number, read.error().message);
  return text.str();
}

}  // namespace allranks::judge

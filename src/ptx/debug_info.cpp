// Positions and inlining (debug_info.h).
#include "ptx/debug_info.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace allranks::ptx {
namespace {

// File numbers are below 2^16 (kMaxFiles), columns are cut to 16 bits.
std::uint64_t PositionKey(std::uint32_t file, std::uint32_t line, std::uint32_t column) {
  return (std::uint64_t{file} << 48) | (std::uint64_t{line} << 16) | (column & 0xffff);
}

}  // namespace

std::size_t DebugInfo::SiteHash::operator()(const SiteKey& key) const {
  std::uint64_t hash = std::hash<std::string_view>()(key.function);
  for (const std::int32_t part : {key.file, key.line, key.column, key.inlined_at}) {
    hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

void DebugInfo::BeginFunction() {
  current_ = SourceLoc();
  inlined_positions_ = {};
}

SourceLoc DebugInfo::Enter(const LocDirective& loc) {
  if (loc.line == 0) return current_;
  SourceLoc entered;
  entered.file = static_cast<std::int32_t>(loc.file) - 1;
  entered.line = static_cast<std::int32_t>(loc.line);
  entered.column = static_cast<std::int32_t>(loc.column);
  highest_file_ = std::max(highest_file_, loc.file);
  if (loc.inlined) {
    InlineSite site;
    site.call.file = static_cast<std::int32_t>(loc.call_file) - 1;
    site.call.line = static_cast<std::int32_t>(loc.call_line);
    site.call.column = static_cast<std::int32_t>(loc.call_column);
    site.function = loc.function_label;  // replaced by the name in Finish
    highest_file_ = std::max(highest_file_, loc.call_file);
    const auto outer =
        inlined_positions_.find(PositionKey(loc.call_file, loc.call_line, loc.call_column));
    if (outer != inlined_positions_.end()) site.call.inlined_at = outer->second;
    const SiteKey key{site.call.file, site.call.line, site.call.column, site.call.inlined_at,
                      site.function};
    const auto [found, added] =
        sites_.emplace(key, static_cast<std::int32_t>(module_->inline_sites.size()));
    if (added) module_->inline_sites.push_back(site);
    entered.inlined_at = found->second;
    inlined_positions_[PositionKey(loc.file, loc.line, loc.column)] = entered.inlined_at;
  } else if (!inlined_positions_.empty()) {
    inlined_positions_.erase(PositionKey(loc.file, loc.line, loc.column));
  }
  current_ = entered;
  return entered;
}

void DebugInfo::AddFile(std::uint32_t number, std::string_view name) {
  if (module_->files.size() < number) module_->files.resize(number);
  module_->files[number - 1] = std::string(name);
}

void DebugInfo::Finish() {
  auto strings = std::make_unique<std::string>(std::move(strings_));
  const std::string_view bytes = *strings;
  // Backwards, so that the end of a string is looked for only up to the next label: linear however
  // many labels share one string.
  std::size_t next_start = bytes.size();
  std::size_t next_end = bytes.size();
  for (auto label = labels_.rbegin(); label != labels_.rend(); ++label) {
    const std::size_t start = label->second;
    const std::size_t zero = bytes.substr(start, next_start - start).find('\0');
    next_end = zero == std::string_view::npos ? next_end : start + zero;
    next_start = start;
    names_[label->first] = bytes.substr(start, next_end - start);
  }
  module_->owned.push_back(std::move(strings));
  files_ = module_->files.size();
  Settle(0);
  for (Function& function : module_->functions) TakeOutUnknown(&function.code);
}

void DebugInfo::FinishLater(std::size_t first_site, std::vector<Instruction>* code) {
  Settle(first_site);
  TakeOutUnknown(code);
}

void DebugInfo::Settle(std::size_t first_site) {
  for (std::size_t i = first_site; i < module_->inline_sites.size(); ++i) {
    InlineSite& site = module_->inline_sites[i];
    const auto name = names_.find(site.function);
    site.function = name != names_.end() ? name->second : std::string_view();
    if (site.call.file >= 0 && static_cast<std::size_t>(site.call.file) >= files_)
      site.call.file = -1;
  }
}

void DebugInfo::TakeOutUnknown(std::vector<Instruction>* code) const {
  if (highest_file_ <= files_) return;
  for (Instruction& instruction : *code) {
    std::int32_t& file = instruction.loc.file;
    if (file >= 0 && static_cast<std::size_t>(file) >= files_) file = -1;
  }
}

}  // namespace allranks::ptx

// Source positions: .file, .loc with its inlining, and the names in .debug_str. The parser feeds it
// what it reads; it fills Module::files and Module::inline_sites.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/module.h"

namespace allranks::ptx {

// One .loc as written; file numbers count from 1.
struct LocDirective {
  std::uint32_t file = 0, line = 0, column = 0;
  bool inlined = false;
  std::uint32_t call_file = 0, call_line = 0, call_column = 0;
  std::string_view function_label;
};

class DebugInfo {
 public:
  explicit DebugInfo(Module* module) : module_(module) {}

  void BeginFunction();
  // The position that holds from here on.
  SourceLoc Enter(const LocDirective& loc);
  void AddFile(std::uint32_t number, std::string_view name);

  // Content of .debug_str, in order.
  void AddLabel(std::string_view label) { labels_.emplace_back(label, strings_.size()); }
  void AddByte(std::uint8_t byte) { strings_.push_back(static_cast<char>(byte)); }

  // After the last line: names the inlined functions, and takes out file numbers nobody declared.
  void Finish();
  // The same for a body that is read later, into `code`; its inlined calls begin at `first_site`.
  void FinishLater(std::size_t first_site, std::vector<Instruction>* code);

 private:
  struct SiteKey {
    std::int32_t file, line, column, inlined_at;
    std::string_view function;
    bool operator==(const SiteKey&) const = default;
  };
  struct SiteHash {
    std::size_t operator()(const SiteKey& key) const;
  };

  Module* module_;
  SourceLoc current_;
  std::uint32_t highest_file_ = 0;
  // nvcc writes the chain of an inlined position outermost first, and a link names its call site
  // only by (file, line, column): this is the newest position written there, if it was inlined.
  std::unordered_map<std::uint64_t, std::int32_t> inlined_positions_;
  std::unordered_map<SiteKey, std::int32_t, SiteHash> sites_;
  void Settle(std::size_t first_site);
  void TakeOutUnknown(std::vector<Instruction>* code) const;

  std::string strings_;
  std::vector<std::pair<std::string_view, std::size_t>> labels_;
  std::unordered_map<std::string_view, std::string_view> names_;  // of inlined functions, by label
  std::size_t files_ = 0;  // of the module, when the last line has been read
};

}  // namespace allranks::ptx

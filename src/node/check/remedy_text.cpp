// What a remedy says: the sentence, and the edits of the source that it stands for. remedy.cpp
// finds the chain that is broken.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <tuple>

#include "node/check/checker.h"
#include "node/check/remedy.h"

namespace allranks::node::check {

namespace {

std::vector<Edit::Place> PlacesOf(const Code& code, std::uint32_t pc) {
  std::vector<Edit::Place> at;
  const SourceLine& line = code.lines[pc];
  if (line.line == 0) return at;
  at.push_back({line.file, line.line, line.column, ""});
  for (const SourceCall& call : line.calls) {
    at.back().function = call.callee;
    at.push_back({call.file, call.line, call.column, ""});
  }
  at.back().function = code.name;
  return at;
}

// Whatever the case of its letters; `word` is in small ones.
bool Mentions(const std::string& text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }) != text.end();
}

// The order that an instruction names and that may be too little.
std::string HasOrder(const std::string& form) {
  for (const char* order : {"relaxed", "acquire", "release"})
    if (form.find(fmt::format(".{}", order)) != std::string::npos) return order;
  return "";
}

// The order that a relaxed instruction could have itself; "": none, or it is of a library, whose
// text is not the program's. A helper that is called from many places is right everywhere then.
const char* OrderOf(const Code& code, std::uint32_t pc, bool release) {
  if (code.ops[pc].kind != OpKind::kMemory) return "";
  const MemoryOp& op = code.memory[code.ops[pc].aux];
  const SourceLine& line = code.lines[pc];
  const std::string& form = code.forms[pc];
  if (HasOrder(form).empty() || op.count > 1 ||
      (op.order != Order::kRelaxed && op.kind != MemoryOpKind::kAtomic) ||
      form.find(".mmio") != std::string::npos ||
      (!line.calls.empty() && line.calls.back().file != line.file)) {
    return "";
  }
  // A function that says it is relaxed is one to choose from: its caller needs the order.
  if (!line.calls.empty() && Mentions(line.calls.front().callee, HasOrder(form))) return "";
  if (op.kind == MemoryOpKind::kAtomic && !form.starts_with("atom"))
    return release ? "release" : "";
  return op.kind == MemoryOpKind::kAtomic ? "acq_rel" : release ? "release" : "acquire";
}

// Two links of a chain may need the same change of one helper.
bool Same(const Edit& a, const Edit& b) {
  const auto key = [](const Edit::Place& at) { return std::tie(at.file, at.line, at.column); };
  if (a.action != b.action || a.from != b.from || a.text != b.text || a.by != b.by) return false;
  if (a.action == Edit::Action::kReplace && a.at[0].file == a.at.back().file)
    return key(a.at[0]) == key(b.at[0]);
  return std::equal(a.at.begin(), a.at.end(), b.at.begin(), b.at.end(),
                    [&](const auto& x, const auto& y) { return key(x) == key(y); });
}

}  // namespace

std::string RemedySearch::Missing(const std::string& first, const std::string& second) const {
  const Link& from = best_.links.front();
  const Link& to = best_.links.back();
  const Code& writer = CodeOf(from.writer);
  const Code& reader = CodeOf(to.reader);
  std::string text = fmt::format(
      "the flag that {} stores ({}, {}) and {} reads ({}, {}) does not order the accesses around "
      "it",
      first, PlaceOf(writer, from.write->pc), writer.forms[from.write->pc], second,
      PlaceOf(reader, to.read->pc), reader.forms[to.read->pc]);
  if (best_.links.size() > 1)
    text += fmt::format("; it passes through {} other block{}", best_.links.size() - 1,
                        best_.links.size() == 2 ? "" : "s");
  return text;
}

namespace {

std::string Sentence(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; and ") + part;
  return text;
}

}  // namespace

void RemedySearch::Tell(Finding* finding) const {
  std::vector<std::string> parts;
  for (const Fault& fault : best_.faults) {
    const Code& code = CodeOf(fault.agent);
    const std::string place = PlaceOf(code, fault.pc);
    const std::string& form = code.forms[fault.pc];
    const char* scope = ScopeName(fault.need);
    Edit edit;
    edit.at = PlacesOf(code, fault.pc);
    edit.form = form;
    const auto order = [&](Edit* made, std::uint32_t pc, bool release) {
      const std::string word = OrderOf(code, pc, release);
      if (word.empty()) return;
      made->action = Edit::Action::kReplace;
      made->from = HasOrder(code.forms[pc]);
      made->text = word;
    };
    switch (fault.fix) {
      case Fault::Fix::kFenceBefore:
        parts.push_back(fmt::format(
            "the {} at {} is not a release: use {}.release.{}{}, or put {} before it in the same "
            "thread",
            form.starts_with("st") ? "store" : "atomic", place,
            form.starts_with("st") ? "st" : form.substr(0, form.find('.')), scope,
            form.starts_with("st") ? " (or a release atomic)" : "", FenceName(fault.need)));
        edit.text = fmt::format("{};", FenceName(fault.need));
        order(&edit, fault.pc, true);
        break;
      case Fault::Fix::kFenceAfter:
        parts.push_back(fmt::format(
            "the load at {} is not an acquire: use {}.acquire.{}, or put {} after it in the same "
            "thread",
            place, form.substr(0, form.find('.')), scope, FenceName(fault.need)));
        edit.action = Edit::Action::kInsertAfter;
        edit.text = fmt::format("{};", FenceName(fault.need));
        order(&edit, fault.pc, false);
        break;
      case Fault::Fix::kScope:
        parts.push_back(
            fmt::format("use scope .{} instead of .{} at {}", scope, ScopeName(fault.has), place));
        edit.action = Edit::Action::kReplace;
        edit.from = ScopeName(fault.has);
        edit.text = scope;
        break;
      case Fault::Fix::kBarrierBefore:
        edit.by = fault.by;
        edit.text = fault.by == Edit::By::kWarp    ? "__syncwarp();"
                    : fault.by == Edit::By::kBlock ? "__syncthreads();"
                                                   : "cooperative_groups::this_grid().sync();";
        if (fault.behind != kNoPc) {
          // Where the wait is: it may be in a function that is called several times.
          edit.action = Edit::Action::kInsertAfter;
          edit.at = PlacesOf(code, fault.behind);
          edit.form = code.forms[fault.behind];
          parts.push_back(fmt::format(
              "put {} after the wait at {}, before {}, where all threads of the {} execute it: "
              "only the thread that has read the flag is ordered",
              edit.text.substr(0, edit.text.size() - 1), PlaceOf(code, fault.behind), place,
              NameOf(fault.by)));
          break;
        }
        parts.push_back(fmt::format(
            "put {} before {}, where all threads of the {} execute it: the flag also announces "
            "accesses of other threads",
            edit.text.substr(0, edit.text.size() - 1), place, NameOf(fault.by)));
        break;
      case Fault::Fix::kCopyWait: {
        const bool bulk = stamp_.warp >= kBulkReads;
        if (stamp_.warp >= kMbarrierCopies) {
          parts.push_back(fmt::format("wait for the mbarrier's phase before {}", place));
          continue;
        }
        const char* wait = bulk ? "cp.async.bulk.wait_group 0" : "cp.async.wait_all";
        parts.push_back(fmt::format("put {} before {}, in the thread that started the copy{}", wait,
                                    place,
                                    bulk ? ": wait_group.read waits for the source only" : ""));
        edit.text = fmt::format("asm volatile(\"{}{};\" ::: \"memory\");",
                                bulk ? "cp.async.bulk.commit_group; " : "", wait);
        break;
      }
      case Fault::Fix::kWidth:
        parts.push_back(fmt::format("access the flag with the same width on both sides: {} at {}",
                                    form, place));
        continue;
    }
    if (edit.at.empty() || std::any_of(finding->edits.begin(), finding->edits.end(),
                                       [&](const Edit& one) { return Same(one, edit); })) {
      continue;
    }
    finding->edits.push_back(std::move(edit));
  }
  finding->advice = Sentence(parts);
  // The rest alone does not help.
  if (std::any_of(best_.faults.begin(), best_.faults.end(),
                  [](const Fault& fault) { return fault.fix == Fault::Fix::kWidth; })) {
    finding->edits.clear();
  }
  if (!best_.late) return;
  finding->edits.clear();
  finding->advice = fmt::format(
      "the store at {} announces what was accessed a round before it, and nothing announces the "
      "last access: store a flag after {}, and wait for that one",
      PlaceOf(CodeOf(best_.links.front().writer), best_.links.front().write->pc),
      PlaceOf(CodeOf(stamp_.agent), e_.pc));
}

bool RemedySearch::TellEarly(Finding* finding) const {
  if (early_.write == nullptr) return false;
  const Code& code = CodeOf(early_.writer);
  const Code& mine = CodeOf(stamp_.agent);
  const bool same = SameThread(*early_.write, early_.writer);
  finding->missing = fmt::format(
      "the flag that is stored at {} and read at {} is stored before the access that it should "
      "announce",
      PlaceOf(code, early_.write->pc), PlaceOf(CodeOf(early_.reader), early_.read->pc));
  finding->advice =
      fmt::format("move the store at {} after {}{}", PlaceOf(code, early_.write->pc),
                  PlaceOf(mine, e_.pc), same ? "" : ", with __syncthreads() between them");
  Edit edit;
  edit.action = Edit::Action::kMoveAfter;
  edit.by = same ? Edit::By::kThread : Edit::By::kBlock;
  edit.at = PlacesOf(code, early_.write->pc);
  edit.form = code.forms[early_.write->pc];
  edit.to = PlacesOf(mine, e_.pc);
  if (!same) edit.text = "__syncthreads();";
  // What an atomic returns may be needed before the access.
  const bool returns = edit.form.starts_with("atom");
  if (!edit.at.empty() && !edit.to.empty() && !returns) finding->edits.push_back(std::move(edit));
  return true;
}

Edit EditAt(const Code& code, std::uint32_t pc, Edit::Action action, Edit::By by,
            std::string text) {
  Edit edit;
  edit.action = action;
  edit.by = by;
  edit.at = PlacesOf(code, pc);
  edit.form = code.forms[pc];
  edit.text = std::move(text);
  return edit;
}

void AddEdit(Edit edit, Finding* finding) {
  if (!edit.at.empty()) finding->edits.push_back(std::move(edit));
}

}  // namespace allranks::node::check

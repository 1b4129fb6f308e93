// Findings of one missing order between operations of streams: which are one, and the remedy that
// creates the whole order. See findings.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "node/findings.h"

namespace allranks::node {
namespace {

bool SamePoint(const std::vector<Edit::Place>& a, const std::vector<Edit::Place>& b) {
  if (a.empty() || b.empty() || a[0].line == 0) return false;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Edit::Place& x, const Edit::Place& y) {
                      return std::tie(x.file, x.line) == std::tie(y.file, y.line);
                    });
}

// A stream or the host waits before `at` for `to`.
bool IsOrder(const Edit& edit) {
  return edit.by == Edit::By::kHost && edit.action == Edit::Action::kInsertBefore &&
         !edit.at.empty() && edit.at[0].line != 0 && !edit.to.empty() &&
         (edit.text.find("cudaStreamWaitEvent") != std::string::npos ||
          edit.text.starts_with("cudaStreamSynchronize"));
}

bool OrdersOperations(const Finding& finding) {
  return finding.kind == Finding::Kind::kRace && finding.accesses.size() == 2 &&
         !finding.edits.empty() && std::all_of(finding.edits.begin(), finding.edits.end(), IsOrder);
}

// The two streams between which order is missing; equal ones: not known.
std::pair<std::string_view, std::string_view> Streams(const Finding& finding) {
  return std::minmax<std::string_view>(finding.accesses[0].stream, finding.accesses[1].stream);
}

// The same earlier or later operation, the same two in both directions, or the same two streams:
// there is no order between them.
bool SameOrder(const Finding& a, const Finding& b) {
  const auto [first, second] = Streams(a);
  const auto where = [](const Finding& one) {
    const auto place = [](const FindingAccess& access) {
      return std::pair(access.rank, access.device);
    };
    return std::minmax({place(one.accesses[0]), place(one.accesses[1])});
  };
  if (first != second && !first.empty() && Streams(b) == std::pair(first, second) &&
      where(a) == where(b))
    return true;
  return std::any_of(a.edits.begin(), a.edits.end(), [&](const Edit& one) {
    return std::any_of(b.edits.begin(), b.edits.end(), [&](const Edit& other) {
      return SamePoint(one.to, other.to) || SamePoint(one.at, other.at) ||
             (SamePoint(one.at, other.to) && SamePoint(one.to, other.at));
    });
  });
}

void Unite(Finding more, Finding* into) {
  const std::vector<Edit> edits = std::move(more.edits);
  more.edits.clear();
  Merge(std::move(more), into);
  for (const Edit& edit : edits) {
    const auto same = [&](const Edit& one) {
      return SamePoint(one.at, edit.at) && SamePoint(one.to, edit.to) && one.text == edit.text;
    };
    if (std::any_of(into->edits.begin(), into->edits.end(), same)) continue;
    into->advice += "; likewise before " + edit.at[0].file + ":" + std::to_string(edit.at[0].line);
    into->edits.push_back(edit);
  }
}

}  // namespace

void FoldOrders(std::vector<Finding>* findings) {
  for (std::size_t i = 0; i < findings->size(); ++i) {
    if (!OrdersOperations((*findings)[i])) continue;
    for (std::size_t j = i + 1; j < findings->size();) {
      if (!OrdersOperations((*findings)[j]) || !SameOrder((*findings)[i], (*findings)[j])) {
        ++j;
        continue;
      }
      Unite(std::move((*findings)[j]), &(*findings)[i]);
      findings->erase(findings->begin() + static_cast<std::ptrdiff_t>(j));
      j = i + 1;  // what it brought may have more in common
    }
  }
}

}  // namespace allranks::node

// The text of --fault. See faults.h.
#include "node/faults.h"

#include <charconv>
#include <cmath>
#include <string>

#include "base/words.h"

namespace allranks::node {
namespace {

bool ReadNumber(std::string_view text, double* value, std::string_view* rest) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (read.ec != std::errc() || !std::isfinite(*value)) return false;
  *rest = text.substr(static_cast<std::size_t>(read.ptr - text.data()));
  return true;
}

bool ReadTime(std::string_view text, Time* time) {
  double number = 0;
  std::string_view unit;
  if (!ReadNumber(text, &number, &unit) || number < 0) return false;
  const double ps = unit == "ns"   ? 1e3
                    : unit == "us" ? 1e6
                    : unit == "ms" ? 1e9
                    : unit == "s"  ? 1e12
                                   : 0;
  if (ps == 0 || number * ps > 1e18) return false;
  *time = std::llround(number * ps);
  return true;
}

}  // namespace

Result<PlannedFault> ParseFault(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return Fail(
        "--fault {}: {}; examples: link:gpu0-nvswitch=0.25@10us, nic:nic0=dead@1ms or "
        "rank:2=dead@50us",
        text, why);
  };
  const std::size_t colon = text.find(':'), equals = text.find('=');
  if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) {
    return wrong("expected KIND:NAME=STATE");
  }
  const std::string_view kind = text.substr(0, colon);
  const std::string_view name = text.substr(colon + 1, equals - colon - 1);
  std::string_view state = text.substr(equals + 1);
  PlannedFault fault;
  if (const std::size_t at = state.find('@'); at != std::string_view::npos) {
    if (!ReadTime(state.substr(at + 1), &fault.at))
      return wrong("the time is not a number of ns, us, ms or s");
    state = state.substr(0, at);
  }
  if (state != "dead") {
    std::string_view rest;
    if (!ReadNumber(state, &fault.rate, &rest) || !rest.empty() || fault.rate <= 0 ||
        fault.rate > 1) {
      return wrong(
          fmt::format("the state is neither dead nor a fraction of the rate, above 0 and up to 1{}",
                      DidYouMean(state, {"dead"})));
    }
  }
  if (name.empty()) return wrong("the name is empty");
  if (kind == "rank") {
    const auto read = std::from_chars(name.data(), name.data() + name.size(), fault.rank);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() || fault.rank < 0) {
      return wrong("the rank is not a number");
    }
    if (fault.rate != 0) return wrong("a rank can only be dead");
    return fault;
  }
  if (kind != "link" && kind != "nic" && kind != "gpu") {
    return wrong(fmt::format("the kind is none of link, nic, gpu and rank{}",
                             DidYouMean(kind, {"link", "nic", "gpu", "rank"})));
  }
  fault.name = name;
  return fault;
}

}  // namespace allranks::node

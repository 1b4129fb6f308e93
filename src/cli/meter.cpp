#include "cli/meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/terminal.h"
#include "judge/verdict.h"
#include "report/table.h"

namespace allranks::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr char kErase[] = "\r\x1b[2K";

}  // namespace

Meter::Meter(Form form) : form_(std::move(form)), shown_(IsTerminal(form_.fd)) {
  if (shown_) ticker_ = std::thread([this] { Tick(); });
}

Meter::~Meter() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  Erase();
}

void Meter::Tick() {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, form_.delay, [&] { return over_; });
  while (!over_) {
    Draw();
    ended_.wait_for(lock, kRedraw, [&] { return over_; });
  }
}

std::string Meter::Line() const {
  std::string text = form_.what;
  if (total_ > 0) text += fmt::format(": {}/{} {}", done_, total_, form_.unit);
  for (const auto& [verdict, count] : verdicts_) text += fmt::format(", {} {}", count, verdict);
  const auto now = Clock::now();
  text += " | " + Duration(std::chrono::duration<double>(now - start_).count());
  if (done_ > 0 && done_ < total_) {
    const double each = std::chrono::duration<double>(now - first_).count() / done_;
    text += fmt::format(", about {} left", Duration(each * (total_ - done_)));
  }
  if (!now_.empty()) text += " | " + now_;  // last: it is what a narrow terminal cuts off
  return report::Shown(text, ColumnsOf(form_.fd) - 1);
}

void Meter::Write(const std::string& text) const {
  // One call: nobody else's output comes between. Progress that cannot be written is lost.
  if (write(form_.fd, text.data(), text.size()) < 0) return;
}

void Meter::Draw() {
  Write(kErase + Line());
  drawn_ = true;
}

void Meter::Erase() {
  if (drawn_) Write(kErase);
  drawn_ = false;
}

void Meter::AddTotal(int units) {
  const std::lock_guard lock(mutex_);
  if (total_ == 0) first_ = Clock::now();
  total_ += units;
}

void Meter::Done(const std::string& verdict) {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (!verdict.empty()) ++verdicts_[verdict];
}

void Meter::Now(const std::string& what) {
  const std::lock_guard lock(mutex_);
  now_ = what;
}

void Meter::Print(const std::function<void()>& print) {
  const std::lock_guard lock(mutex_);
  const bool drawn = drawn_;
  Erase();
  print();
  if (drawn) Draw();
}

void JudgeMeter::OnCases(int cases) {
  meter_.AddTotal(cases);
  meter_.Now("");
}

void JudgeMeter::OnCase(const judge::CaseResult& result) {
  meter_.Done(judge::NameOf(result.verdict));
  meter_.Now("");
}

void JudgeMeter::OnSchedule(int number, int count) {
  meter_.Now(fmt::format("replays and other schedules: {} of {}", number, count));
}

}  // namespace allranks::cli

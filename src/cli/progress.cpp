#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/terminal.h"
#include "report/table.h"

namespace allranks::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{200};
constexpr std::chrono::seconds kLineEvery{10};

// Names and messages come from others: one line, no control characters.
std::string Clean(const std::string& text, std::size_t most) { return report::Shown(text, most); }

std::string ResultOf(const campaign::Sample& sample) {
  const campaign::Round* best = nullptr;
  for (const campaign::Round& round : sample.rounds)
    if (round.strict && (best == nullptr || round.score > best->score)) best = &round;
  if (best != nullptr)
    return fmt::format("pass, {:.1f} % of the roofline (round {})", best->score * 100, best->round);
  return sample.rounds.empty() ? "nothing" : sample.rounds.back().verdict;
}

bool Passes(const campaign::Sample& sample) {
  return std::any_of(sample.rounds.begin(), sample.rounds.end(),
                     [](const campaign::Round& round) { return round.strict; });
}

}  // namespace

Progress::Progress(Style style, bool colour, double budget)
    : style_(style), colour_(colour), budget_(budget) {
  if (style_ != Style::kQuiet) ticker_ = std::thread([this] { Tick(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  Erase();
}

void Progress::Tick() {
  std::unique_lock lock(mutex_);
  const bool terminal = style_ == Style::kTerminal;
  while (!over_) {
    if (terminal) {
      ended_.wait_for(lock, kRedraw);
      if (!over_) Draw();
    } else {
      ended_.wait_for(lock, kLineEvery);
      if (!over_ && total_ > 0) SayLocked(Status());
    }
  }
}

std::string Progress::Status() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const int mine = done_ - before_;
  std::string text = fmt::format("{}/{} samples done", done_, total_);
  if (mine > 0) text += fmt::format(", {} of {} pass", passes_, mine);
  if (failed_ > 0) text += fmt::format(", {} unfinished", failed_);
  text +=
      fmt::format(" | {} queued, {} waiting for the model, {} waiting for a judge, {} being judged",
                  std::max(0, total_ - done_ - failed_ - asking_ - judgements_), asking_,
                  judgements_ - judging_, judging_);
  if (seconds > 1 && rounds_ > 0)
    text += fmt::format(" | {:.1f} replies, {:.1f} judgements/min", replies_ * 60 / seconds,
                        rounds_ * 60 / seconds);
  text += fmt::format(" | ${:.2f}", dollars_);
  if (std::isfinite(budget_)) text += fmt::format(" of ${:.2f}", budget_);
  if (retries_ > 0) text += fmt::format(" | {} retries", retries_);
  if (repeats_ > 0) text += fmt::format(" | {} judged again", repeats_);
  text += " | " + Duration(seconds);
  if (mine > 1 && seconds > 3 && done_ < total_)
    text += fmt::format(", about {} left", Duration(seconds / mine * (total_ - done_)));
  return text;
}

std::string Progress::Painted(const std::string& text, const char* colour) const {
  return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
}

std::vector<std::string> Progress::Block() const {
  const std::size_t columns = ColumnsOf(STDERR_FILENO) - 1;
  std::vector<std::string> lines;
  const std::size_t width = std::min<std::size_t>(columns, 60) - 2;
  const std::size_t full =
      total_ > 0 ? width * static_cast<std::size_t>(done_) / static_cast<std::size_t>(total_) : 0;
  lines.push_back("[" + Painted(std::string(full, '='), "32") + std::string(width - full, ' ') +
                  "]");
  // The status in as many lines as the terminal needs.
  std::string line, status = Status();
  for (std::size_t at = 0; at < status.size();) {
    const std::size_t end = std::min(status.find(" | ", at), status.size());
    const std::string part = status.substr(at, end - at);
    if (!line.empty() && line.size() + 3 + part.size() > columns) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : "   ") + part;
    at = end + 3;
  }
  lines.push_back(line);
  if (!retry_.empty()) lines.push_back(Painted(Clean(retry_, columns), "33"));
  return lines;
}

void Progress::Erase() {
  if (style_ != Style::kTerminal) return;
  std::string text;
  for (int i = 0; i < drawn_; ++i) text += "\x1b[1A\x1b[2K";
  drawn_ = 0;
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

void Progress::Draw() {
  if (style_ != Style::kTerminal || total_ == 0) return;
  const std::vector<std::string> lines = Block();
  std::string text;
  for (int i = 0; i < drawn_; ++i) text += "\x1b[1A\x1b[2K";
  for (const std::string& line : lines) text += line + "\n";
  drawn_ = static_cast<int>(lines.size());
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
}

void Progress::SayLocked(const std::string& line) {
  Erase();
  fmt::print(stderr, "{}\n", line);
  Draw();
}

void Progress::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  SayLocked(line);
}

void Progress::OnRetry(const std::string& model, const std::string& why, double seconds) {
  const std::lock_guard lock(mutex_);
  ++retries_;
  retry_ = fmt::format("{}: {}; retry in {:.0f} s", model, why, seconds);
  // The first ones of many say enough.
  if (style_ == Style::kLines && retries_ <= 3) SayLocked(Clean(retry_, 300));
}

void Progress::OnBegin(int samples, int already_done, double dollars) {
  const std::lock_guard lock(mutex_);
  total_ = samples;
  done_ = before_ = already_done;
  dollars_ = dollars;
  if (style_ != Style::kQuiet && already_done > 0)
    SayLocked(fmt::format("{} of {} samples already exist", already_done, samples));
}

void Progress::OnAsk(bool begins) {
  const std::lock_guard lock(mutex_);
  asking_ += begins ? 1 : -1;
}

void Progress::OnReply(const std::string& /*model*/, const std::string& /*problem*/,
                       const model::Reply& reply) {
  const std::lock_guard lock(mutex_);
  ++replies_;
  dollars_ += reply.dollars + reply.wasted_dollars;
  retry_.clear();
}

void Progress::OnJudge(bool begins) {
  const std::lock_guard lock(mutex_);
  judgements_ += begins ? 1 : -1;
}

void Progress::OnJudging(bool begins) {
  const std::lock_guard lock(mutex_);
  judging_ += begins ? 1 : -1;
}

void Progress::OnRepeat(const std::string& why) {
  const std::lock_guard lock(mutex_);
  ++repeats_;
  if (style_ != Style::kQuiet) SayLocked("judged again: " + Clean(why, 300));
}

void Progress::OnRound(const campaign::Sample& /*so_far*/) {
  const std::lock_guard lock(mutex_);
  ++rounds_;
}

void Progress::OnSample(const campaign::Sample& sample) {
  const std::lock_guard lock(mutex_);
  ++done_;
  const bool pass = Passes(sample);
  if (pass) ++passes_;
  if (style_ == Style::kQuiet) return;
  SayLocked(fmt::format("{} {} #{}: {}", Clean(sample.model, 60), Clean(sample.problem, 60),
                        sample.sample, Painted(Clean(ResultOf(sample), 100), pass ? "32" : "31")));
}

void Progress::OnUnfinished(const campaign::Unfinished& what) {
  const std::lock_guard lock(mutex_);
  ++failed_;
  SayLocked(Painted(fmt::format("{} {} #{}: unfinished: {}", Clean(what.model, 60),
                                Clean(what.problem, 60), what.sample, Clean(what.why, 500)),
                    "33"));
}

}  // namespace allranks::cli

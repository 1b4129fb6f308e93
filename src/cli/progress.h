// What `allranks run` shows while it works, on stderr: on a terminal a block that is drawn again
// and again, elsewhere plain lines.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "campaign/campaign.h"

namespace allranks::cli {

class Progress : public campaign::Observer {
 public:
  enum class Style {
    kQuiet,     // only what is wrong
    kLines,     // a line per sample and one every few seconds
    kTerminal,  // a block
  };
  Progress(Style style, bool colour, double budget);
  ~Progress() override;  // ends the block

  void OnRetry(const std::string& model, const std::string& why, double seconds) override;
  void OnBegin(int samples, int already_done, double dollars) override;
  void OnAsk(bool begins) override;
  void OnReply(const std::string& model, const std::string& problem,
               const model::Reply& reply) override;
  void OnJudge(bool begins) override;
  void OnJudging(bool begins) override;
  void OnRepeat(const std::string& why) override;
  void OnRound(const campaign::Sample& so_far) override;
  void OnSample(const campaign::Sample& sample) override;
  void OnUnfinished(const campaign::Unfinished& what) override;

  // What is told to people between samples, above the block.
  void Say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void Tick();
  std::string Status() const;  // one line
  std::vector<std::string> Block() const;
  std::string Painted(const std::string& text, const char* colour) const;
  void SayLocked(const std::string& line);
  void Draw();
  void Erase();

  const Style style_;
  const bool colour_;
  const double budget_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  int drawn_ = 0;  // lines of the block on the screen
  int total_ = 0, done_ = 0, before_ = 0, passes_ = 0, asking_ = 0, judging_ = 0, retries_ = 0,
      judgements_ = 0, repeats_ = 0, replies_ = 0, rounds_ = 0, failed_ = 0;
  double dollars_ = 0;
  std::string retry_;  // the last one, for the block
  std::thread ticker_;
};

}  // namespace allranks::cli

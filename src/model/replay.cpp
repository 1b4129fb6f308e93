// Plays recorded answers. Two layouts are known: FOLDER/PROBLEM/SAMPLE.ROUND.txt with an optional
// SAMPLE.ROUND.json, and the samples/MODEL folder of a finished run
// (FOLDER/PROBLEM/SAMPLE/round-ROUND/reply.txt and reply.json).
//
// A sample that was not recorded is played by one that was, in turn; a round that was not recorded
// repeats the last one before it. Tokens are as recorded; nothing is spent.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/files.h"
#include "model/local_models.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

struct Recording {
  fs::path text, facts;
};
using Rounds = std::map<int, Recording>;

constexpr int kMostRecordings = 100'000;  // of a problem
constexpr std::size_t kLargestFacts = 1 << 20;

std::optional<int> Whole(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::map<int, Rounds> Recorded(const fs::path& folder) {
  std::map<int, Rounds> samples;
  std::error_code error;
  int left = kMostRecordings;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (--left < 0) break;
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error)) {
      const auto sample = Whole(name);
      if (!sample) continue;
      for (const auto& inner : fs::directory_iterator(entry.path(), error)) {
        if (--left < 0) break;
        const std::string round_name = inner.path().filename().string();
        if (!round_name.starts_with("round-")) continue;
        const auto round = Whole(std::string_view(round_name).substr(6));
        const fs::path reply = inner.path() / "reply.txt";
        if (round && fs::is_regular_file(reply, error))
          samples[*sample][*round] = {reply, inner.path() / "reply.json"};
      }
    } else if (entry.path().extension() == ".txt" && entry.is_regular_file(error)) {
      const std::string stem = entry.path().stem().string();
      const std::size_t dot = stem.find('.');
      if (dot == std::string::npos) continue;
      const auto sample = Whole(std::string_view(stem).substr(0, dot));
      const auto round = Whole(std::string_view(stem).substr(dot + 1));
      if (sample && round) samples[*sample][*round] = {entry.path(), folder / (stem + ".json")};
    }
  }
  return samples;
}

class Replay : public Model {
 public:
  explicit Replay(Entry entry) : entry_(std::move(entry)) {}

  Outcome Generate(const Ask& ask, const Stop& stop) override {
    const auto fail = [](Failure::Kind kind, std::string message) {
      return tl::unexpected(Failure{kind, std::move(message), 0});
    };
    if (stop.requested()) return fail(Failure::Kind::kStopped, "stopped");
    if (ask.problem == nullptr)
      return fail(Failure::Kind::kRequest, "replay models solve problems only");
    const fs::path root = entry_.source;
    std::error_code error;
    if (!fs::is_directory(root, error))
      return fail(Failure::Kind::kModel,
                  fmt::format("{}: no such folder: {}", entry_.name, root.string()));
    const auto samples = Recorded(root / ask.problem->slug);
    if (samples.empty()) {
      const bool run = fs::exists(root / "run.json", error);
      return fail(Failure::Kind::kRequest,
                  fmt::format("{} has no recording of {}: expected {}{}", entry_.name,
                              ask.problem->slug, (root / ask.problem->slug / "0.1.txt").string(),
                              run ? "; for a run folder, give samples/MODEL" : ""));
    }
    auto sample = samples.find(ask.sample);
    if (sample == samples.end()) {
      const auto turn = static_cast<std::size_t>(ask.sample) % samples.size();
      sample = std::next(samples.begin(), static_cast<std::ptrdiff_t>(turn));
    }
    auto round = sample->second.upper_bound(ask.round);
    if (round != sample->second.begin()) --round;
    return Play(ask, round->second);
  }

  double MostDollars(const std::vector<Message>&) const override { return 0; }
  int concurrency() const override { return entry_.concurrency; }

 private:
  Outcome Play(const Ask& ask, const Recording& recording) const {
    const auto fail = [&](const std::string& message) {
      return tl::unexpected(Failure{Failure::Kind::kRequest, entry_.name + ": " + message, 0});
    };
    auto text = ReadWhole(recording.text, kLargestRaw);
    if (!text) return fail(text.error().message);
    Reply reply;
    reply.text = std::move(*text);
    reply.usage = EstimateUsage(ask.messages, reply.text);
    std::error_code error;
    if (fs::is_regular_file(recording.facts, error)) {
      const auto facts = ReadWhole(recording.facts, kLargestFacts);
      if (!facts) return fail(facts.error().message);
      if (const Status taken = TakeFacts(*facts, &reply); !taken)
        return fail(recording.facts.string() + ": " + taken.error().message);
      reply.dollars = 0;  // spent when it was recorded
    }
    reply.served_by = "replay";
    reply.request = fmt::format("{{\"replay\":{}}}", Quoted(recording.text.string()));
    reply.raw = reply.text;
    return reply;
  }

  Entry entry_;
};

}  // namespace

std::unique_ptr<Model> MakeReplayModel(const Entry& entry) {
  return std::make_unique<Replay>(entry);
}

}  // namespace allranks::model

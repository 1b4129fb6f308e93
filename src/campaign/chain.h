// One sample: the chain of its rounds, from what lies on the disk to sample.json.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "campaign/campaign.h"
#include "campaign/reply.h"
#include "campaign/setup.h"
#include "campaign/store.h"
#include "campaign/talk.h"

namespace allranks::campaign {

// What all chains of a run have in common. Everything may be used from many threads.
struct Shared {
  const Plan& plan;
  const Setup& setup;
  const Store& store;
  Judgements& judgements;
  Executor* executor;
  Observer& observer;
  const Stop& stop;  // the user's wish, or the end because of a full disk
  model::Budget budget;
  std::atomic<bool> no_money = false;       // all of it is spent
  std::atomic<double> refused_dollars = 0;  // the most of a reply that it had no room for
  // By model: the budget has no room for its replies.
  std::unique_ptr<std::atomic<bool>[]> poor =
      std::make_unique<std::atomic<bool>[]>(plan.models.size());
};

struct ChainEnd {
  enum class Kind {
    kFinished,  // sample.json is there
    kOpen,      // only looked: there is something to do
    kStopped,   // by the wish to stop
    kFailed,    // this chain only
    kModel,     // nothing will work with this model
    kNoMoney,   // the budget has no room for the next reply
    kBroken,    // files cannot be written, or are not of this run
  };
  Kind kind = Kind::kFinished;
  std::string why;
};

class Chain {
 public:
  // `model` and `problem` are places in the plan.
  Chain(Shared* shared, std::size_t model, std::size_t problem, int sample);

  // Reads what there is, and whether it belongs to this run: kFinished, kOpen or kBroken.
  ChainEnd Look();
  // Does what is left. `model` may be used by others at the same time.
  ChainEnd Run(model::Model* model);

  int replies() const { return replies_; }  // that are there, after Look or Run
  const Sample& sample() const { return sample_; }
  const std::string& model_name() const;
  const std::string& problem_name() const { return asked_.facts.slug; }
  int number() const { return number_; }
  const Asked& asked() const { return asked_; }
  // Its rounds are on the disk.
  void Forget() { sample_.rounds = {}; }

 private:
  struct Reply;
  struct Step;
  ChainEnd Walk();
  ChainEnd OneRound(int round, std::vector<Attempt>* attempts, bool* over);
  ChainEnd Request(const std::vector<model::Message>& messages, const std::string& key, int round,
                   bool* refused);
  ChainEnd Load(const std::vector<model::Message>& messages, const std::string& key,
                Reply* reply) const;
  ChainEnd Copy(const ReplyRecord& record) const;
  ChainEnd ReadRound(const Reply& reply, Step* step) const;
  ChainEnd MakeRound(const Reply& reply, Step* step);
  ChainEnd Conclude(const Reply& reply, const Step& step, std::string* stopped,
                    std::string* feedback);
  ChainEnd Judge(const std::string& source, std::string* verdict);
  ChainEnd Finish(std::string stopped);
  ChainEnd Write(const std::filesystem::path& path, std::string_view bytes) const;
  model::Ask AskFor(const std::vector<model::Message>& messages, int round) const;
  std::string CheckVisible(const std::string& source, const Stop& stop) const;

  Shared& shared_;
  const std::size_t model_;
  const Asked& asked_;
  const int number_;
  const std::filesystem::path folder_;  // below the run's
  std::filesystem::path inside_;        // of the round
  model::Model* asks_ = nullptr;        // nullptr: only looking
  const char* kind_ = "first";          // of the round: first | repair | improve
  int replies_ = 0;
  Sample sample_;
};

}  // namespace allranks::campaign

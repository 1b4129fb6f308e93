// Theory of operation.
//
// A chain is one sample of one model on one problem: chain.cpp walks through its rounds. Each model
// has threads of its own that take chains from that model's list one after the other, so all
// providers work at once and a slow one delays nobody. There are as many threads as the model may
// be asked at once and judgements may run, which keeps both busy: a thread waits either for its
// reply (the model bounds those) or for its judgement (the executor bounds these).
//
// What survives. Every step ends with a file that is put in place whole (base/files.h), and a step
// whose file is there is never done again:
//   reply.json   the reply with its text and what it cost: it is not asked for again;
//   judged/KEY   this source is judged: neither this chain nor another one judges it again;
//   round.json   the round is over;   sample.json   the chain is over.
// What a step is made of is written before the file that ends it (source.cu, verdict.json and
// feedback.md before round.json); copies for people come after it and are made again if they are
// missing. A process may be killed between any two: the next one finds the last whole step. The
// only thing that is ever repeated is a request that was under way.
//
// What belongs together. reply.json has the hash of all that the request was made from (model,
// messages, sample, round, problem), round.json that and the hash of all that the judgement was
// made from (problem, profile, seed, judge, options). Before anything is sent, every chain is
// looked at; if a file has another hash, or run.json other settings, nothing is sent and nothing is
// written. So what is in a folder was made under the settings that its run.json states, and there
// may be more of it later: models, problems, samples, rounds.
//
// How it ends early. The wish to stop ends requests and judgements that are under way. No room in
// the budget for a model's next reply: that model is asked no more; all of it spent: nobody is.
// What has been paid for is judged. A model that cannot work (its key, its name) ends its own
// chains only. A full disk ends everything, since replies that cannot be kept are money thrown
// away.
#include "campaign/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "base/files.h"
#include "campaign/chain.h"
#include "campaign/reply.h"
#include "campaign/setup.h"
#include "campaign/store.h"
#include "problem/source.h"

namespace allranks::campaign {
namespace {

constexpr std::size_t kMostThreads = 1024;

// The observer's calls one at a time, whoever makes them.
class OneAtATime : public Observer {
 public:
  explicit OneAtATime(Observer* observer) : observer_(observer) {}
  void OnAttempt(const std::string& model) override {
    Call([&](Observer* to) { to->OnAttempt(model); });
  }
  void OnRetry(const std::string& model, const std::string& why, double seconds) override {
    Call([&](Observer* to) { to->OnRetry(model, why, seconds); });
  }
  void OnLimit(const std::string& model, int concurrent) override {
    Call([&](Observer* to) { to->OnLimit(model, concurrent); });
  }
  void OnBegin(int samples, int already_done, double dollars) override {
    Call([&](Observer* to) { to->OnBegin(samples, already_done, dollars); });
  }
  void OnAsk(bool begins) override {
    Call([&](Observer* to) { to->OnAsk(begins); });
  }
  void OnReply(const std::string& model, const std::string& problem,
               const model::Reply& reply) override {
    Call([&](Observer* to) { to->OnReply(model, problem, reply); });
  }
  void OnJudge(bool begins) override {
    Call([&](Observer* to) { to->OnJudge(begins); });
  }
  void OnJudging(bool begins) override {
    Call([&](Observer* to) { to->OnJudging(begins); });
  }
  void OnRepeat(const std::string& why) override {
    Call([&](Observer* to) { to->OnRepeat(why); });
  }
  void OnRound(const Sample& so_far) override {
    Call([&](Observer* to) { to->OnRound(so_far); });
  }
  void OnSample(const Sample& sample) override {
    Call([&](Observer* to) { to->OnSample(sample); });
  }
  void OnUnfinished(const Unfinished& what) override {
    Call([&](Observer* to) { to->OnUnfinished(what); });
  }

 private:
  template <class What>
  void Call(What what) {
    if (observer_ == nullptr) return;
    const std::lock_guard lock(mutex_);
    what(observer_);
  }
  Observer* observer_;
  std::mutex mutex_;
};

// run.json and what was asked, for readers of the folder.
Status LayOut(const Setup& setup, const Store& store) {
  for (const Asked& asked : setup.problems) {
    const std::filesystem::path folder =
        std::filesystem::path("problems") / std::filesystem::path(asked.facts.slug).filename();
    if (store.Has(folder / "problem.json")) continue;
    const std::pair<const char*, Result<std::string>> files[] = {
        {"statement.md", ReadWhole(asked.problem->folder / "statement.md")},
        {"template.cu", problem::TemplateOf(*asked.problem)}};
    for (const auto& [name, text] : files) {
      if (!text) return Fail(text.error());
      if (const Status wrote = store.Write(folder / name, *text); !wrote) return wrote;
    }
    nlohmann::ordered_json json = {{"schema", kRunSchema}};
    json.update(FactsJson<nlohmann::ordered_json>(asked.facts));
    json["origin"] = asked.problem->origin;
    if (!asked.context.examples.empty()) {
      for (const problem::Example& example : asked.context.examples)
        json["examples"].push_back(example.slug);
    }
    if (const Status wrote = store.Write(
            folder / "problem.json",
            json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
        !wrote)
      return wrote;
  }
  const std::string json = ToJson(setup.settings);
  if (const Result<std::string> stored = store.Read("run.json"); stored && *stored == json)
    return Ok();
  return store.Write("run.json", json);
}

// The chains of one model that are not finished, in order: the first samples of all problems come
// before the second ones.
struct Line {
  std::size_t model = 0;
  std::unique_ptr<model::Model> asked;
  std::vector<Chain> chains;
  std::mutex mutex;
  std::size_t next = 0;
  std::string dead;         // why nothing works with this model
  bool told_money = false;  // that the budget has no room for its next reply
};

class Campaign {
 public:
  Campaign(const Plan& plan, const Setup& setup, const Store& store, Executor* executor,
           Observer* observer)
      : observer_(observer),
        judgements_(&store, executor),
        shared_{plan,     setup,     store,  judgements_,
                executor, observer_, inner_, model::Budget(plan.budget)} {}

  // Reads what there is. Fails if some of it belongs to another run.
  Status Look() {
    const Plan& plan = shared_.plan;
    for (std::size_t m = 0; m < plan.models.size(); ++m) {
      auto line = std::make_unique<Line>();
      line->model = m;
      for (int sample = 0; sample < plan.samples; ++sample) {
        for (std::size_t p = 0; p < plan.problems.size(); ++p) {
          Chain chain(&shared_, m, p, sample);
          const ChainEnd end = chain.Look();
          if (end.kind == ChainEnd::Kind::kBroken)
            return Fail("{}: {}", plan.out.string(), end.why);
          if (end.kind == ChainEnd::Kind::kFinished) {
            ++ending_.finished;
          } else {
            chain.Forget();
            line->chains.push_back(std::move(chain));
          }
        }
      }
      lines_.push_back(std::move(line));
    }
    total_ = static_cast<int>(plan.models.size() * plan.problems.size()) * plan.samples;
    return Ok();
  }

  Estimate Foresee() const;

  // One model per line with something to do: a model whose samples are all there needs no key.
  Status MakeModels() {
    for (const auto& line : lines_) {
      if (line->chains.empty()) continue;
      const model::Entry& entry = shared_.plan.models[line->model];
      const auto make = shared_.plan.make_model ? shared_.plan.make_model : model::MakeModel;
      Result<std::unique_ptr<model::Model>> made = make(entry, shared_.budget, &observer_);
      if (!made) return Fail("model {}: {}", entry.name, made.error().message);
      line->asked = std::move(*made);
    }
    return Ok();
  }

  Ending Run(const Stop& stop) {
    const Spent before = SpentInRun(shared_.store.folder());
    shared_.budget.AddSpent(before.known + before.perhaps);
    observer_.OnBegin(total_, ending_.finished, shared_.budget.spent());
    std::vector<std::thread> threads;
    std::atomic<int> working = 0;
    for (const auto& line : lines_) {
      if (line->chains.empty()) continue;
      const std::size_t wanted = static_cast<std::size_t>(std::max(1, line->asked->concurrency()) +
                                                          shared_.executor->jobs());
      const std::size_t most = std::max<std::size_t>(1, kMostThreads / lines_.size());
      for (std::size_t i = 0; i < std::min({wanted, most, line->chains.size()}); ++i) {
        ++working;
        threads.emplace_back([this, &working, at = line.get()] {
          Work(at);
          --working;
        });
      }
    }
    // A short look at first: a run of recordings is over in an instant.
    for (int look = 1; working > 0; look = std::min(20, look + 1)) {
      if (stop.requested()) inner_.Request();
      std::this_thread::sleep_for(std::chrono::milliseconds(look));
    }
    for (std::thread& thread : threads) thread.join();
    ending_.stopped = stop.requested();
    ending_.out_of_money = shared_.no_money || told_money_;
    ending_.refused_dollars = shared_.refused_dollars;
    ending_.unfinished = total_ - ending_.finished;
    const Spent spent = SpentInRun(shared_.store.folder());
    ending_.dollars = spent.known;
    ending_.perhaps_dollars = spent.perhaps;
    return std::move(ending_);
  }

 private:
  void Work(Line* line) {
    for (;;) {
      Chain* chain = nullptr;
      {
        const std::lock_guard lock(line->mutex);
        if (inner_.requested() || line->next == line->chains.size() || !line->dead.empty()) return;
        chain = &line->chains[line->next++];
      }
      Take(line, *chain, chain->Run(line->asked.get()));
      chain->Forget();
    }
  }

  // What has become of a chain.
  void Take(Line* line, const Chain& chain, const ChainEnd& end) {
    using Kind = ChainEnd::Kind;
    bool first = true;
    switch (end.kind) {
      case Kind::kFinished: {
        {
          const std::lock_guard lock(mutex_);
          ++ending_.finished;
        }
        observer_.OnSample(chain.sample());
        return;
      }
      case Kind::kOpen:
      case Kind::kStopped:
        return;
      case Kind::kModel: {
        const std::lock_guard lock(line->mutex);
        first = line->dead.empty();
        line->dead = end.why;
        break;
      }
      case Kind::kBroken:
        inner_.Request();
        break;
      case Kind::kNoMoney: {
        const std::lock_guard lock(line->mutex);
        first = !std::exchange(line->told_money, true);
        break;
      }
      case Kind::kFailed:
        break;
    }
    const Unfinished what{chain.model_name(), chain.problem_name(), chain.number(), end.why};
    // Without money every chain that is left comes here: one word is enough.
    if (end.kind != Kind::kBroken && end.kind != Kind::kNoMoney) {
      const std::filesystem::path folder = SampleFolder(what.model, what.problem, what.sample);
      (void)shared_.store.Write(folder / "unfinished.txt", end.why + "\n");
      shared_.store.Log(
          fmt::format("{} {} {}: unfinished: {}", what.model, what.problem, what.sample, what.why));
    }
    {
      const std::lock_guard lock(mutex_);
      if (end.kind == Kind::kBroken) {
        first = ending_.broken.empty();
        ending_.broken = end.why;
      }
      if (end.kind == Kind::kNoMoney) told_money_ = true;
      if (first) ending_.why.push_back(what);
    }
    if (first) observer_.OnUnfinished(what);
  }

  OneAtATime observer_;
  Judgements judgements_;
  Stop inner_;
  Shared shared_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::mutex mutex_;
  Ending ending_;
  bool told_money_ = false;
  int total_ = 0;
};

// Bytes of a request of this round, about: the prompt, and attempts as long as the template with
// feedback of a page.
double BytesOf(const Asked& asked, int round) {
  constexpr double kPage = 2000;
  const auto size = [](const std::string& text) { return static_cast<double>(text.size()); };
  const double attempts = std::min<double>(round - 1, kAttemptsShown);
  const double source =
      size(asked.region.before) + 3 * size(asked.region.inside) + size(asked.region.after);
  return size(asked.prompt.system) + size(asked.prompt.task) + attempts * (source + kPage);
}

Estimate Campaign::Foresee() const {
  constexpr double kBytesPerToken = 4;
  Estimate estimate;
  estimate.done = ending_.finished;
  for (const auto& line : lines_) {
    const model::Entry& entry = shared_.plan.models[line->model];
    Estimate::Row row;
    row.model = entry.name;
    const bool free = entry.protocol == model::Protocol::kCommand ||
                      entry.protocol == model::Protocol::kReplay ||
                      entry.protocol == model::Protocol::kMaterial;
    row.price_known = free || entry.price.known;
    for (const Chain& chain : line->chains) {
      for (int round = chain.replies() + 1; round <= shared_.setup.settings.rounds; ++round) {
        ++row.generations;
        const double input = BytesOf(chain.asked(), round) / kBytesPerToken;
        row.input_tokens += input;
        if (free) continue;
        row.output_tokens += entry.parameters.max_output_tokens;
        model::Usage usage;
        usage.input = static_cast<std::uint64_t>(input);
        usage.output = static_cast<std::uint64_t>(entry.parameters.max_output_tokens);
        row.dollars += model::DollarsOf(entry.price, usage);
      }
    }
    estimate.rows.push_back(std::move(row));
  }
  return estimate;
}

}  // namespace

Result<Estimate> Foresee(const Plan& plan) {
  Setup setup;
  if (const Status good = Prepare(plan, &setup); !good) return Fail(good.error());
  const Store store(plan.out, plan.before_write);
  Campaign campaign(plan, setup, store, nullptr, nullptr);
  if (const Status good = campaign.Look(); !good) return Fail(good.error());
  return campaign.Foresee();
}

Result<Ending> Execute(const Plan& plan, Executor* executor, const Stop& stop, Observer* observer) {
  const Result<RunLock> lock = RunLock::Take(plan.out);
  if (!lock) return Fail(lock.error());
  Setup setup;
  if (const Status good = Prepare(plan, &setup); !good) return Fail(good.error());
  const Store store(plan.out, plan.before_write);
  Campaign campaign(plan, setup, store, executor, observer);
  if (const Status good = campaign.Look(); !good) return Fail(good.error());
  if (const Status good = campaign.MakeModels(); !good) return Fail(good.error());
  SweepUnfinished(plan.out);
  if (const Status good = LayOut(setup, store); !good) return Fail(good.error());
  store.Log(setup.fresh ? "started" : "continued");
  Result<Ending> ending = campaign.Run(stop);
  store.Log(fmt::format("ended: {} finished, {} not{}", ending->finished, ending->unfinished,
                        ending->stopped ? ", stopped" : ""));
  return ending;
}

}  // namespace allranks::campaign

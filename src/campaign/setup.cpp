#include "campaign/setup.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/check.h"
#include "base/files.h"
#include "judge/build.h"
#include "judge/scratch.h"
#include "problem/source.h"

namespace allranks::campaign {
namespace {

namespace fs = std::filesystem;

std::string DrawSeed() {
  unsigned char bytes[16];
  CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes);
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// The program, the libraries that ranks load and what candidates include. A file that is not there
// differs from every other; judging will say that it is missing.
std::string HashOfJudge(const judge::Tools& tools) {
  std::vector<fs::path> files = {tools.allranks, fs::path(tools.cuda) / "bin/nvcc"};
  for (const std::string& folder : {tools.shim, tools.include}) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
      if (at->is_regular_file(error)) found.push_back(at->path());
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  std::string all;
  for (const fs::path& file : files) {
    if (file.empty()) continue;
    const Result<std::string> hash = judge::HashOfFile(file.string());
    all += file.filename().string() + " " + (hash ? *hash : "none") + "\n";
  }
  return judge::HashOf({all});
}

ModelFacts FactsOf(const model::Entry& entry) {
  ModelFacts facts;
  facts.name = entry.name;
  facts.protocol = model::NameOf(entry.protocol);
  facts.model = entry.model.empty() ? entry.source : entry.model;
  facts.identity = model::IdentityOf(entry);
  facts.open_weights = entry.open_weights;
  facts.price_known = entry.price.known;
  facts.input_price = entry.price.input;
  facts.cached_input_price = entry.price.cached_input;
  facts.output_price = entry.price.output;
  return facts;
}

Status CheckPlan(const Plan& plan) {
  if (plan.models.empty()) return Fail("no models: use --models A,B");
  if (plan.problems.empty()) return Fail("no problems: use --problems A,B or --problems all");
  if (plan.samples < 1 || plan.samples > kMostSamples || plan.rounds < 1 ||
      plan.rounds > kMostRounds)
    return Fail("a run has 1 to {} samples and 1 to {} rounds", kMostSamples, kMostRounds);
  if (plan.models.size() * plan.problems.size() * static_cast<std::size_t>(plan.samples) >
      kMostChains)
    return Fail("a run has at most {} samples in total: split it into several runs", kMostChains);
  std::set<std::string> names, slugs;
  for (const model::Entry& entry : plan.models)
    if (!names.insert(entry.name).second)
      return Fail("two models have the name '{}': rename one of them with OTHER={}", entry.name,
                  entry.name);
  for (const problem::Problem& problem : plan.problems)
    if (!slugs.insert(problem.slug).second)
      return Fail("two problems have the name '{}'", problem.slug);
  return Ok();
}

std::string Shown(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "none";
}

// The first line in which two texts differ would be too much: what and the remedy is enough.
template <class T>
Status Same(const char* what, const T& before, const T& now) {
  if (before == now) return Ok();
  return Fail(
      "the run in this folder has another {} ({}, now {}): use the previous one, or another --out",
      what, before, now);
}

}  // namespace

Result<Settings> Merge(const Settings& before, const Settings& wanted) {
  Settings merged = before;
  const std::vector<Status> checks = {
      Same("seed (--seed)", before.seed, wanted.seed),
      Same("profile (--profile)", before.profile, wanted.profile),
      Same("version of the profile", before.profile_version, wanted.profile_version),
      Same("content of the profile", before.profile_hash, wanted.profile_hash),
      Same("prompt (--prompt)", before.prompt, wanted.prompt),
      Same("text of the prompt template", before.prompt_hash, wanted.prompt_hash),
      Same("temperature (--temperature)", Shown(before.temperature), Shown(wanted.temperature)),
      Same("number of examples (--few-shot)", before.few_shot, wanted.few_shot),
      Same("number of perturbed profiles (--band)", before.band, wanted.band),
      Same("target (--target)", before.target, wanted.target),
      Same("setting of --trace", before.trace, wanted.trace),
      Same("version of allranks", before.version, wanted.version),
      Same("judge (program, libraries or headers; `replay:` repeats its replies in a new run)",
           before.judge, wanted.judge)};
  for (const Status& check : checks)
    if (!check) return Fail(check.error());
  for (const ModelFacts& facts : wanted.models) {
    const auto found = std::find_if(merged.models.begin(), merged.models.end(),
                                    [&](const ModelFacts& one) { return one.name == facts.name; });
    if (found == merged.models.end()) {
      merged.models.push_back(facts);
      continue;
    }
    const std::string what = fmt::format("model named '{}'", facts.name);
    if (const Status same = Same(what.c_str(), found->identity, facts.identity); !same)
      return Fail("{}, or another name: NAME={}", same.error().message, facts.name);
    *found = facts;  // prices may change
  }
  for (const ProblemFacts& facts : wanted.problems) {
    const auto found =
        std::find_if(merged.problems.begin(), merged.problems.end(),
                     [&](const ProblemFacts& one) { return one.slug == facts.slug; });
    if (found == merged.problems.end()) {
      merged.problems.push_back(facts);
      continue;
    }
    const std::string what = fmt::format("content of the problem '{}'", facts.slug);
    if (const Status same = Same(what.c_str(), found->hash, facts.hash); !same)
      return Fail(same.error());
  }
  merged.samples = std::max(before.samples, wanted.samples);
  merged.rounds = std::max(before.rounds, wanted.rounds);
  return merged;
}

Status Prepare(const Plan& plan, Setup* setup) {
  if (const Status good = CheckPlan(plan); !good) return good;
  Result<node::Profile> profile = node::LoadProfile(plan.profile);
  if (!profile) return Fail(profile.error());
  setup->profile = std::move(*profile);
  const Result<std::string> profile_text = ReadWhole(plan.profile);
  if (!profile_text) return Fail(profile_text.error());

  Settings wanted;
  wanted.version = plan.version;
  wanted.judge = HashOfJudge(plan.tools);
  std::error_code error;
  wanted.name = fs::weakly_canonical(plan.out, error).filename().string();
  wanted.seed = plan.seed;
  wanted.profile = setup->profile.name;
  wanted.profile_version = setup->profile.version;
  wanted.profile_hash = judge::HashOf({*profile_text});
  wanted.prompt = plan.prompt.name;
  std::string parts;
  for (const auto& [name, text] : plan.prompt.parts) parts += judge::HashOf({name, text});
  wanted.prompt_hash = judge::HashOf({parts});
  wanted.temperature = plan.temperature;
  wanted.few_shot = plan.few_shot;
  wanted.samples = plan.samples;
  wanted.rounds = plan.rounds;
  wanted.band = plan.band;
  wanted.target = plan.target;
  wanted.trace = plan.trace;
  for (const model::Entry& entry : plan.models) wanted.models.push_back(FactsOf(entry));
  for (const problem::Problem& problem : plan.problems) wanted.problems.push_back(FactsOf(problem));

  setup->fresh = !fs::exists(plan.out / "run.json", error) && !error;
  if (setup->fresh) {
    if (fs::exists(plan.out / "samples", error))
      return Fail("{} contains samples of a run but no run.json: choose another --out",
                  plan.out.string());
    // What a run writes before its run.json. A folder with anything else is somebody's own.
    for (const fs::directory_entry& entry : fs::directory_iterator(plan.out, error)) {
      const std::string name = entry.path().filename().string();
      if (name != "lock" && name != "problems" && name != "log.txt")
        return Fail(
            "{} is not a run folder (it has no run.json) and contains {}: choose another "
            "--out",
            plan.out.string(), name);
    }
    if (wanted.seed.empty()) wanted.seed = DrawSeed();
    setup->settings = wanted;
  } else {
    const Result<std::string> text = ReadWhole(plan.out / "run.json");
    if (!text) return Fail(text.error());
    const Result<Settings> before = SettingsFrom(*text);
    if (!before) return Fail("{}: {}", plan.out.string(), before.error().message);
    if (wanted.seed.empty()) wanted.seed = before->seed;
    Result<Settings> merged = Merge(*before, wanted);
    if (!merged) return Fail("{}: {}", plan.out.string(), merged.error().message);
    setup->settings = std::move(*merged);
  }

  const std::string cuda = judge::CudaVersion(plan.tools).value_or("");
  for (std::size_t i = 0; i < plan.problems.size(); ++i) {
    const problem::Problem& problem = plan.problems[i];
    Asked asked;
    asked.problem = &problem;
    asked.facts = wanted.problems[i];
    Result<problem::Region> region = problem::RegionOf(problem);
    if (!region) return Fail(region.error());
    asked.region = std::move(*region);
    asked.context = {.problem = &problem,
                     .profile = &setup->profile,
                     .folder = plan.prompt_folder,
                     .cuda = cuda,
                     .flags = judge::CompilerFlags(problem, setup->profile)};
    if (const auto found = plan.examples.find(problem.slug); found != plan.examples.end())
      asked.context.examples = found->second;
    Result<problem::Prompt> prompt = problem::MakePrompt(plan.prompt, asked.context);
    if (!prompt) return Fail("{}: {}", problem.slug, prompt.error().message);
    asked.prompt = std::move(*prompt);
    asked.seed = judge::HashOf({"seed of a problem", setup->settings.seed, problem.slug});
    asked.judged = judge::HashOf({"judgement 1", asked.facts.hash, wanted.profile_hash, asked.seed,
                                  wanted.judge, std::to_string(plan.band), "drawn last"});
    setup->problems.push_back(std::move(asked));
  }
  for (const ModelFacts& facts : wanted.models) setup->identities.push_back(facts.identity);
  return Ok();
}

}  // namespace allranks::campaign

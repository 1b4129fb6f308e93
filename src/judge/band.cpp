#include "judge/band.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "judge/perturb.h"
#include "judge/score.h"
#include "judge/scratch.h"
#include "problem/source.h"

namespace allranks::judge {
namespace {

namespace fs = std::filesystem;
using problem::Case;

// Of the timed cases, in the order in which they ran; nothing if one did not pass.
using Times = std::vector<double>;

std::string Render(const Times& times) {
  std::string text;
  for (const double ns : times) text += fmt::format("{}\n", ns);  // as many digits as it has
  return text;
}

Status Write(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return Fail("cannot write {}: {}", path.string(), std::strerror(errno));
  return {};
}

class Band {
 public:
  Band(const Tools& tools, const Request& request, Judgement* judgement)
      : tools_(tools), request_(request), judgement_(*judgement) {}

  // False with an empty failure: this problem cannot have one.
  Result<bool> Run() {
    std::error_code error;
    const fs::path reference = request_.problem->folder / "reference.cu";
    if (!fs::exists(reference, error) || CountTimed() == 0) return false;
    Result<std::string> source = problem::ReadFile(reference);
    if (!source) return Fail(source.error());
    reference_ = std::move(*source);
    Result<Scratch> scratch = Scratch::Make();
    if (!scratch) return Fail(scratch.error());
    folder_ = scratch->path();
    // Without a cache each program would be compiled once per profile.
    if (tools_.cache.empty()) tools_.cache = folder_ + "/cache";
    Result<std::string> machine = HashOfMachine();
    if (!machine) return Fail(machine.error());
    std::vector<double> band;
    for (int number = 0; number < request_.band; ++number) {
      Result<double> ratio = RatioOn(number, *machine);
      if (!ratio) return Fail(ratio.error());
      band.push_back(*ratio);
    }
    judgement_.band = std::move(band);
    return true;
  }

  double cpu_seconds() const { return cpu_seconds_; }

 private:
  std::size_t CountTimed() const {
    std::size_t count = 0;
    for (const CaseResult& one : judgement_.cases)
      count += one.what.kind == Case::Kind::kTimed ? 1 : 0;
    return count;
  }

  // Everything of ours that decides times.
  Result<std::string> HashOfMachine() const {
    std::string all;
    for (const std::string& file :
         {tools_.allranks, tools_.shim + "/liballranks_driver.a", tools_.shim + "/libcudart.so.13",
          tools_.shim + "/libcuda.so.1", tools_.shim + "/liballranks_host.so"}) {
      const Result<std::string> hash = HashOfFile(file);
      if (!hash) return hash;
      all += *hash;
    }
    return all;
  }

  // The perturbed profile and those that cases name, side by side as the originals are; the path of
  // the former. `all`: their texts.
  Result<std::string> WriteProfiles(int number, std::string* all) const {
    const fs::path own = request_.profile;
    std::map<std::string, fs::path> files;
    for (const CaseResult& one : judgement_.cases)
      if (const std::string& name = one.what.profile; !name.empty())
        files[name] = own.parent_path() / (name + ".toml");
    files[own.stem().string()] = own;
    const fs::path folder = fs::path(folder_) / fmt::format("profiles-{}", number);
    std::error_code error;
    fs::create_directory(folder, error);
    // Sandboxes run as another user.
    if (error || chmod(folder.c_str(), 0755) != 0)
      return Fail("cannot create {}: {}", folder.string(), std::strerror(errno));
    for (const auto& [name, from] : files) {
      Result<std::string> text = PerturbedProfile(from.string(), number);
      if (!text) return text;
      const fs::path to = folder / (name + ".toml");
      if (const Status written = Write(to, *text); !written) return Fail(written.error());
      if (chmod(to.c_str(), 0644) != 0) return Fail("cannot open {}", to.string());
      *all += name + "\n" + *text;
    }
    return (folder / (own.stem().string() + ".toml")).string();
  }

  // Times on one profile; empty with *why if it does not pass there. A fault of ours is a failure.
  Result<Times> TimesOf(const std::string& source, const std::string& profile, std::string* why) {
    Request request = request_;
    request.listener = nullptr;  // its cases are not those of the judgement
    request.source = source;
    request.profile = profile;
    request.times_only = true;
    request.band = 0;
    request.trace.clear();
    const Judgement judgement = Judge(tools_, request);
    cpu_seconds_ += judgement.cpu_seconds();
    Times times;
    *why = fmt::format("{}: {}", NameOf(judgement.verdict), judgement.text);
    if (judgement.verdict == Verdict::kInternalError) return Fail("{}", judgement.text);
    if (judgement.verdict != Verdict::kPass) return times;
    for (const CaseResult& one : judgement.cases) times.push_back(one.call_ns);
    return times;
  }

  Result<Times> ReferenceTimes(const std::string& profile, const std::string& key) {
    const Cache cache(tools_.cache);
    if (const std::string kept = cache.Find("references", key); !kept.empty()) {
      std::ifstream file(kept);
      Times times;
      for (double ns = 0; file >> ns;) times.push_back(ns);
      if (times.size() == CountTimed()) return times;
    }
    std::string why;
    Result<Times> times = TimesOf(reference_, profile, &why);
    if (!times) return times;
    if (times->size() != CountTimed())
      return Fail("the reference does not pass on {}: {}", profile, why);
    const fs::path file = fs::path(folder_) / "times";
    if (const Status written = Write(file, Render(*times)); !written) return Fail(written.error());
    if (const auto put = cache.Put("references", key, file.string()); !put)
      return Fail(put.error());
    return times;
  }

  Result<double> RatioOn(int number, const std::string& machine) {
    std::string texts;
    const Result<std::string> profile = WriteProfiles(number, &texts);
    if (!profile) return Fail(profile.error());
    const std::string key =
        HashOf({"band 1", machine, texts, judgement_.problem_hash, reference_, request_.seed,
                request_.only_case, request_.drain ? "drained" : ""});
    const Result<Times> reference = ReferenceTimes(*profile, key);
    if (!reference) return Fail(reference.error());
    std::string why;
    const Result<Times> own = TimesOf(request_.source, *profile, &why);
    if (!own) return Fail(own.error());
    if (own->size() != reference->size()) {
      judgement_.log += fmt::format("perturbed profile {}: {}\n", number, why);
      return 0.0;
    }
    std::vector<double> ratios;
    for (std::size_t i = 0; i < own->size(); ++i) ratios.push_back((*reference)[i] / (*own)[i]);
    return GeometricMean(ratios).value_or(0);
  }

  Tools tools_;
  const Request& request_;
  Judgement& judgement_;
  std::string reference_, folder_;
  double cpu_seconds_ = 0;
};

}  // namespace

void AddBand(const Tools& tools, const Request& request, Judgement* judgement) {
  if (judgement->verdict != Verdict::kPass) return;
  const auto start = std::chrono::steady_clock::now();
  Band band(tools, request, judgement);
  if (const Result<bool> run = band.Run(); !run)
    judgement->log += "no perturbed profiles: " + run.error().message + "\n";
  judgement->cost.band = band.cpu_seconds();
  judgement->cost.wall +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace allranks::judge

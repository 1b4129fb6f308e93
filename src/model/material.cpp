// Models made of the problems' own files, so that a whole run needs no key and has known results:
// `oracle` must pass everywhere and `nop` nowhere; `mixture` errs as models do, and mends it.
//
// Which file answers is decided by problem, sample and round alone: two runs get the same replies.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>

#include "model/local_models.h"
#include "problem/controls.h"
#include "problem/source.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

struct Piece {
  std::string says;  // the sentence before the code
  std::string code;  // empty: prose only
  bool cut = false;
};

tl::unexpected<Failure> Refuse(std::string message) {
  return tl::unexpected(Failure{Failure::Kind::kRequest, std::move(message), 0});
}

// FNV-1a, finished as in MurmurHash3: the same on every machine.
std::uint64_t Mixed(std::string_view text, std::uint64_t number) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto take = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const char c : text) take(static_cast<std::uint8_t>(c));
  for (int i = 0; i < 8; ++i) take(static_cast<std::uint8_t>(number >> (8 * i)));
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

class Material : public Model {
 public:
  explicit Material(Entry entry) : entry_(std::move(entry)) {}

  Outcome Generate(const Ask& ask, const Stop& stop) override {
    if (stop.requested()) return tl::unexpected(Failure{Failure::Kind::kStopped, "stopped", 0});
    if (ask.problem == nullptr) return Refuse("material models solve problems only");
    const auto piece = Choose(*ask.problem, ask.sample, ask.round);
    if (!piece)
      return Refuse(fmt::format(
          "{} has no solution of {}: {}{}", entry_.name, ask.problem->slug, piece.error().message,
          ask.problem->split == problem::Split::kPublic
              ? ""
              : " (a sealed problem does not include its solutions: exclude it)"));
    Reply reply;
    reply.text = piece->says + "\n";
    if (!piece->code.empty()) reply.text += "\n```cuda\n" + piece->code;
    if (!piece->code.empty() && !piece->cut) reply.text += "```\n";
    reply.finish = piece->cut ? Finish::kLength : Finish::kStop;
    reply.usage = EstimateUsage(ask.messages, reply.text);
    reply.served_by = "material:" + entry_.source;
    reply.request =
        fmt::format("{{\"material\":{},\"problem\":{},\"sample\":{},\"round\":{}}}",
                    Quoted(entry_.source), Quoted(ask.problem->slug), ask.sample, ask.round);
    reply.raw = reply.text;
    return reply;
  }

  double MostDollars(const std::vector<Message>&) const override { return 0; }
  int concurrency() const override { return entry_.concurrency; }

 private:
  using Choice = Result<Piece>;

  Choice Choose(const problem::Problem& problem, int sample, int round) const {
    if (entry_.source == "oracle") return File(problem, "reference.cu", "The reference.");
    if (entry_.source == "nop") {
      auto form = problem::TemplateOf(problem);
      if (!form) return Fail(form.error());
      return Piece{"The template, untouched.", std::move(*form)};
    }
    if (entry_.source == "baselines")
      return File(problem, "baseline.cu", "The baseline: right, and simple.");
    if (entry_.source == "references") return Reference(problem, sample);
    return Mixture(problem, sample, round);
  }

  static Choice File(const problem::Problem& problem, const fs::path& name, std::string says) {
    auto text = problem::SolutionOf(problem, name);
    if (!text) return Fail(text.error());
    return Piece{std::move(says), std::move(*text)};
  }

  // By name.
  static std::vector<fs::path> Alternates(const problem::Problem& problem) {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(problem.folder / "alternates", error))
      if (entry.path().extension() == ".cu")
        found.push_back("alternates" / entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  // Sample 0 is the reference, the following ones are the alternates in turn, then again.
  static Choice Reference(const problem::Problem& problem, int sample) {
    const std::vector<fs::path> alternates = Alternates(problem);
    const std::size_t turn = static_cast<std::size_t>(sample) % (alternates.size() + 1);
    if (turn == 0) return File(problem, "reference.cu", "The reference.");
    return File(problem, alternates[turn - 1],
                fmt::format("The alternate {}.", alternates[turn - 1].stem().string()));
  }

  // A mutant whose outputs show its bug; `patch` says of which sort, if there are both.
  static Choice Mutant(const problem::Problem& problem, bool patch, std::uint64_t draw) {
    std::vector<const problem::Mutant*> fitting, others;
    for (const problem::Mutant& mutant : problem.mutants) {
      if (mutant.needs_checker) continue;
      (!mutant.tag.empty() != patch ? fitting : others).push_back(&mutant);
    }
    if (fitting.empty()) fitting.swap(others);
    if (fitting.empty()) return Fail("it has no mutant that changes its outputs");
    const problem::Mutant& mutant = *fitting[draw % fitting.size()];
    auto text = problem::MutantOf(problem, mutant);
    if (!text) return Fail(text.error());
    if (!text->ends_with('\n')) *text += '\n';
    return Piece{fmt::format("The mutant {}.", mutant.name), std::move(*text)};
  }

  static Choice Control(const problem::Problem& problem, std::uint64_t draw) {
    const std::vector<problem::Control> controls = problem::ControlsOf(problem);
    if (controls.empty()) return Mutant(problem, true, draw);
    const problem::Control& control = controls[draw % controls.size()];
    if (!control.error.empty()) return Fail("control {}: {}", control.name, control.error);
    return Piece{fmt::format("The control {}.", control.name), control.region};
  }

  // The reference with a name that nobody declared, at the end of what may be edited.
  static Choice CompileError(const problem::Problem& problem) {
    auto piece = File(problem, "reference.cu", "The reference, with an error.");
    if (!piece) return piece;
    const auto region = problem::SplitTemplate(piece->code);
    if (!region) return Fail(region.error());
    piece->code = region->before + region->inside +
                  "static int NotDeclaredAnywhere() { return not_declared_anywhere; }\n" +
                  region->after;
    return piece;
  }

  static Choice Truncated(const problem::Problem& problem) {
    auto piece =
        File(problem, "reference.cu", "The reference, of which the first two thirds came.");
    if (!piece) return piece;
    piece->code.resize(piece->code.size() * 2 / 3);
    piece->cut = true;
    return piece;
  }

  // Round 1 goes through the ways to err and to be right, from a place that the problem gives, so
  // that samples of one problem differ; later rounds mend it in two cases of three, and from the
  // third one on always.
  static Choice Mixture(const problem::Problem& problem, int sample, int round) {
    const std::uint64_t draw = Mixed(problem.slug, static_cast<std::uint64_t>(sample));
    if (round >= 2) {
      if (round == 2 && draw % 3 == 0) return Mutant(problem, draw % 2 == 0, draw >> 16);
      return draw % 3 == 1 ? Reference(problem, sample + 1) : Reference(problem, 0);
    }
    // Chosen so that two samples of each shipped problem go through all ways.
    constexpr std::uint64_t kWays = 8, kStart = 1004;
    switch ((Mixed(problem.slug, kStart) + 3 * static_cast<std::uint64_t>(sample)) % kWays) {
      case 0:
        return Mutant(problem, true, draw >> 8);
      case 1:
        return CompileError(problem);
      case 2:
        return File(problem, "baseline.cu", "The baseline: right, and simple.");
      case 3:
        return Control(problem, draw >> 8);
      case 4:
        return Piece{
            "This asks for a kernel that moves data between the ranks' memories; it would "
            "begin with flags, and then copy. (Prose only: there is no code in this "
            "reply.)",
            ""};
      case 5:
        return Reference(problem, sample + 1);
      case 6:
        return Mutant(problem, false, draw >> 8);
      default:
        return Truncated(problem);
    }
  }

  Entry entry_;
};

}  // namespace

std::unique_ptr<Model> MakeMaterialModel(const Entry& entry) {
  return std::make_unique<Material>(entry);
}

}  // namespace allranks::model

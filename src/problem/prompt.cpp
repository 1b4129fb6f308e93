// Templates: where they are found, how they are divided into parts, and what becomes of them. The
// mustache library renders; names that do not exist are errors here, where it would insert nothing.
#include "problem/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <kainjow/mustache.hpp>
#include <set>

#include "problem/facts.h"
#include "problem/reader.h"
#include "problem/source.h"
#include "problem/text.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;
namespace mustache = kainjow::mustache;

constexpr std::array<const char*, 4> kParts = {"system", "task", "repair", "improve"};
constexpr const char* kDefault = "default";
constexpr const char* kAlways = "always";  // a flag of our own; no template may name it

bool Knows(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Every tag of a part names something that there is. What a tag would do is left to the library.
Status CheckNames(std::string_view text, const std::string& part) {
  std::vector<std::string> known = FactNames();
  if (part == "repair" || part == "improve")
    known.insert(known.end(), FeedbackNames().begin(), FeedbackNames().end());
  for (std::size_t at = text.find("{{"); at != std::string_view::npos; at = text.find("{{", at)) {
    const std::size_t end = text.find("}}", at);
    if (end == std::string_view::npos) return Fail("a '{{{{' in part {} has no '}}}}'", part);
    std::string_view tag = Trimmed(text.substr(at + 2, end - at - 2));
    at = end + 2;
    if (tag.starts_with("!")) continue;
    if (tag.starts_with(">") || tag.starts_with("="))
      return Fail("part {} has '{{{{{}}}}}': partials and other delimiters are not supported", part,
                  tag);
    if (!tag.empty() && std::string_view("#^/&{").find(tag[0]) != std::string_view::npos)
      tag = Trimmed(tag.substr(1));
    if (tag == "." || Knows(known, tag)) continue;
    if (Knows(FeedbackNames(), tag))
      return Fail("part {} names '{}', which only repair and improve have", part, tag);
    return Fail("part {} names '{}', which does not exist{}; docs/prompts.md lists the names", part,
                tag, DidYouMean(tag, known));
  }
  return Ok();
}

// Remembers what was looked up and not found: a column outside of its table, a missing file.
class Context : public mustache::context<std::string> {
 public:
  explicit Context(const mustache::data* data) : mustache::context<std::string>(data) {}
  const mustache::data* get(const std::string& name) const override {
    const mustache::data* found = mustache::context<std::string>::get(name);
    if (found == nullptr && missing_.empty()) missing_ = name;
    return found;
  }
  const std::string& missing() const { return missing_; }

 private:
  mutable std::string missing_;
};

mustache::data DataOf(const Facts& facts) {
  mustache::data data;
  for (const auto& [name, text] : facts.words) data.set(name, text);
  for (const auto& [name, flag] : facts.flags)
    data.set(name, mustache::data(flag ? mustache::data::type::bool_true
                                       : mustache::data::type::bool_false));
  for (const auto& [name, texts] : facts.lists) {
    mustache::data list(mustache::data::type::list);
    for (const std::string& text : texts) list.push_back(mustache::data(text));
    data.set(name, list);
  }
  for (const auto& [name, rows] : facts.tables) {
    mustache::data list(mustache::data::type::list);
    for (const Facts::Row& row : rows) {
      mustache::data columns;
      for (const auto& [column, text] : row) columns.set(column, text);
      list.push_back(columns);
    }
    data.set(name, list);
  }
  return data;
}

// A line with nothing but the end of a section, or a remark, leaves nothing. The library forgets
// that where the section was left out, unless another one is on the line.
std::string WithQuietLines(const std::string& text) {
  std::string quiet;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at), word = Trimmed(line);
    quiet += line;
    if ((word.starts_with("{{/") || word.starts_with("{{!")) && word.ends_with("}}") &&
        word.find("}}") == word.size() - 2)
      quiet += fmt::format("{{{{#{0}}}}}{{{{/{0}}}}}", kAlways);
    if (end < text.size()) quiet += '\n';
    at = end + 1;
  }
  return quiet;
}

Result<std::string> Render(const PromptTemplate& form, const std::string& part, const Facts& facts,
                           const Problem& problem) {
  const auto found = form.parts.find(part);
  if (found == form.parts.end()) return Fail("prompt '{}' has no part {}", form.name, part);
  if (const Status known = CheckNames(found->second, part); !known)
    return Fail("prompt '{}': {}", form.name, known.error().message);
  mustache::mustache tree(WithQuietLines(found->second));
  if (!tree.is_valid())
    return Fail("prompt '{}', part {}: {}", form.name, part, tree.error_message());
  // Prompts are no HTML: a '<' is a '<'.
  tree.set_custom_escape([](const std::string& text) { return text; });
  mustache::data data = DataOf(facts);
  data.set(kAlways, mustache::data(mustache::data::type::bool_true));
  Context context(&data);
  const std::string text = tree.render(context);
  if (context.missing() == "operation") {
    return Fail(
        "prompt '{}' shows the operation as PyTorch code, and {} has none: write {}, or select "
        "another prompt with --prompt",
        form.name, problem.slug, (problem.folder / "operation.py").string());
  }
  if (!context.missing().empty()) {
    return Fail("prompt '{}', part {}: '{}' is valid only inside its list", form.name, part,
                context.missing());
  }
  const std::string_view body = Trimmed(text);
  return body.empty() ? "" : std::string(body) + "\n";
}

// A file without any line `=== PART` is a task. What stands before the first such line is for its
// readers.
Result<std::map<std::string, std::string>> Divide(const std::string& text) {
  std::map<std::string, std::string> parts;
  std::string* part = nullptr;
  std::string before;
  std::size_t at = 0;
  for (int number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("===")) {
      const std::string name(Trimmed(std::string_view(line).substr(3)));
      if (std::find(kParts.begin(), kParts.end(), name) == kParts.end())
        return Fail("line {}: '{}' is not a part; the parts are system, task, repair, improve",
                    number, name);
      if (parts.contains(name)) return Fail("line {}: part {} occurs twice", number, name);
      part = &parts[name];
      continue;
    }
    (part == nullptr ? before : *part) += line + "\n";
  }
  if (parts.empty()) parts["task"] = before;
  for (auto& [name, body] : parts) body = std::string(Trimmed(body)) + "\n";
  if (parts.contains("task") && parts["task"] == "\n") return Fail("the task is empty");
  for (const auto& [name, body] : parts)
    if (const Status known = CheckNames(body, name); !known) return Fail(known.error());
  return parts;
}

Result<PromptTemplate> LoadFile(const fs::path& path, const std::string& name) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return Fail(text.error());
  if (text->find('\0') != std::string::npos)
    return Fail("{} is no text: it contains NUL bytes", path.string());
  auto parts = Divide(*text);
  if (!parts) return Fail("{}: {}", path.string(), parts.error().message);
  for (const auto& [part, body] : *parts) {
    mustache::mustache tree(WithQuietLines(body));
    if (!tree.is_valid()) return Fail("{}: part {}: {}", path.string(), part, tree.error_message());
  }
  return PromptTemplate{name, std::move(*parts)};
}

}  // namespace

std::vector<std::string> PromptNames(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".md") names.push_back(entry->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<PromptTemplate> LoadPrompt(const std::string& name, const fs::path& folder) {
  std::error_code error;
  const fs::path shipped = folder / (name + ".md");
  const bool path = name.find('/') != std::string::npos;
  Result<PromptTemplate> form;
  if (!path && fs::is_regular_file(shipped, error)) {
    form = LoadFile(shipped, name);
  } else if (fs::is_regular_file(name, error)) {
    form = LoadFile(name, fs::path(name).stem().string());
  } else {
    const std::vector<std::string> names = PromptNames(folder);
    return Fail("no prompt '{}'{}: give the path of a file, or one of {}", name,
                DidYouMean(name, names), Join(names));
  }
  if (!form) return form;
  if (form->parts.size() == kParts.size()) return form;
  Result<PromptTemplate> rest = LoadFile(folder / (std::string(kDefault) + ".md"), kDefault);
  if (!rest) return rest;
  form->parts.insert(rest->parts.begin(), rest->parts.end());
  for (const char* part : kParts)
    if (!form->parts.contains(part)) return Fail("{} has no part {}", shipped.string(), part);
  return form;
}

Result<Prompt> MakePrompt(const PromptTemplate& form, const PromptContext& context) {
  const Result<Facts> facts = MakeFacts(context);
  if (!facts) return Fail(facts.error());
  Result<std::string> system = Render(form, "system", *facts, *context.problem);
  if (!system) return Fail(system.error());
  Result<std::string> task = Render(form, "task", *facts, *context.problem);
  if (!task) return Fail(task.error());
  return Prompt{std::move(*system), TextOf(context.examples) + *task};
}

Result<std::string> MakeFeedback(const PromptTemplate& form, const PromptContext& context,
                                 const Feedback& feedback) {
  Result<Facts> facts = MakeFacts(context);
  if (!facts) return Fail(facts.error());
  AddFeedback(feedback, &*facts);
  return Render(form, feedback.improve ? "improve" : "repair", *facts, *context.problem);
}

}  // namespace allranks::problem

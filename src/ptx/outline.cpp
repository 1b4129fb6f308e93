// Outlines (outline.h). The parser finds the bodies and reads an outline as it reads a text.
#include "ptx/outline.h"

#include <cctype>
#include <memory>
#include <utility>

#include "ptx/parser_impl.h"

namespace allranks::ptx {

bool DeclaresShared(std::string_view body) {
  constexpr std::string_view kShared = ".shared";
  for (std::size_t at = body.find(kShared); at != std::string_view::npos;
       at = body.find(kShared, at + 1)) {
    const char before = at == 0 ? '\n' : body[at - 1];
    if (std::isalnum(static_cast<unsigned char>(before)) == 0 && before != '_') return true;
  }
  return false;
}

Result<Outline> MakeOutline(std::string text) {
  return Parser(WithoutPadding(std::move(text)), Bodies::kLater).MakeOutline();
}

Result<Module> ParseOutline(Outline outline, std::function<Result<std::string>()> whole) {
  return std::make_shared<Parser>(std::move(outline), std::move(whole))->Run();
}

Parser::Parser(Outline outline, std::function<Result<std::string>()> whole)
    : Parser(std::exchange(outline.text, {}), Bodies::kLater) {
  text_bytes_ = outline.text_bytes;
  outline_ = std::move(outline);
  whole_ = std::move(whole);
}

Result<Outline> Parser::MakeOutline() {
  if (!ParseModule() || !Finish()) return Fail("{}", error_);
  Outline outline;
  outline.text_bytes = text_->size();
  for (const Variable& variable : module_.variables)
    if (variable.space == Space::kShared) outline.shared_names.emplace_back(variable.name);
  const char* from = text_->data();
  for (const Later& later : later_) {
    outline.text.append(from, later.begin.at).append("{}");
    from = later.end.at;
    const std::string_view body(later.begin.at, static_cast<std::size_t>(from - later.begin.at));
    Outline::Body& made = outline.bodies.emplace_back();
    made.begin = static_cast<std::uint64_t>(later.begin.at - text_->data());
    made.end = made.begin + body.size();
    made.first_line = later.begin.line;
    made.last_line = later.end.line;
    made.shared = DeclaresShared(body);
    for (std::uint32_t i = 0; i < outline.shared_names.size(); ++i)
      if (body.find(outline.shared_names[i]) != std::string_view::npos) made.named.push_back(i);
  }
  outline.text.append(from, text_->data() + text_->size());
  return outline;
}

// The next body of an outline, which is "{}" in its text.
bool Parser::SkipOutlined() {
  if (later_.size() >= outline_->bodies.size()) return Error("a body that is not known");
  const Outline::Body& body = outline_->bodies[later_.size()];
  Later later;
  later.begin.line = body.first_line;
  if (!Expect('{') || !Expect('}')) return false;
  lexer_.Return({lexer_.mark().at, body.last_line});
  later_.push_back(later);
  return true;
}

// What the text of a body would have told.
void Parser::TellOutlined(const Module& module, Function* function) const {
  const Outline::Body& body = outline_->bodies[function->body];
  function->outlined = true;
  function->declares_shared = body.shared;
  for (const std::uint32_t name : body.named) {
    if (name >= outline_->shared_names.size()) continue;
    const Variable* variable = module.FindVariable(outline_->shared_names[name]);
    if (variable != nullptr) function->names_shared.push_back(variable->name);
  }
}

Result<void> Parser::ReadWhole(Module* module) {
  auto text = whole_();
  if (!text) return Fail(text.error());
  auto whole = std::make_shared<const std::string>(WithoutPadding(std::move(*text)));
  if (whole->size() != text_bytes_) return Fail("the text is not the one that was read before");
  for (std::size_t i = 0; i < later_.size(); ++i) {
    const Outline::Body& body = outline_->bodies[i];
    if (body.begin >= body.end || body.end > whole->size() || (*whole)[body.begin] != '{')
      return Fail("the text is not the one that was read before");
    later_[i].begin.at = whole->data() + body.begin;
  }
  lexer_ = Lexer(*whole);
  module->more_texts.push_back(std::move(whole));  // names of the bodies point into it
  whole_ = nullptr;
  return {};
}

}  // namespace allranks::ptx

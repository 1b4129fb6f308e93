// The statements of a CUDA source, as far as one has to know them to put another one in front of or
// behind them. No compiler: brackets, keywords and semicolons are enough.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace allranks::remedies {

struct Statement {
  enum class Kind { kFunction, kBlock, kIf, kLoop, kDo, kSimple };
  Kind kind = Kind::kSimple;
  std::size_t begin = 0, end = 0;            // of the text
  std::size_t head_begin = 0, head_end = 0;  // what stands in its brackets
  std::size_t body = 0;                      // kFunction: behind its first brace
  std::string name;                          // kFunction
  int parent = -1;
};

// Threads that have to execute something together.
enum class Group { kWarp, kBlock, kGrid };

class Source {
 public:
  explicit Source(std::string text);
  const std::string& text() const { return text_; }
  std::string_view Text(const Statement& of) const {
    return std::string_view(text_).substr(of.begin, of.end - of.begin);
  }
  const std::vector<Statement>& statements() const { return statements_; }
  const Statement& at(int statement) const {
    return statements_[static_cast<std::size_t>(statement)];
  }
  std::size_t Offset(int line, int column) const;
  // The innermost one there; -1: none.
  int Find(std::size_t offset) const;
  int Function(int statement) const;
  int Named(std::string_view name) const;  // a function; -1: none
  bool InHead(int statement, std::size_t offset) const {
    return offset >= at(statement).head_begin && offset < at(statement).head_end;
  }
  // Whether the statement's own head lets only some threads of the group in.
  bool Divergent(int statement, Group group) const;
  // It does nothing but one instruction or call.
  bool Wrapper(int function) const;

 private:
  struct Token {
    std::size_t begin, end;
  };
  std::string_view Word(std::size_t token) const {
    return token < tokens_.size()
               ? std::string_view(text_).substr(tokens_[token].begin,
                                                tokens_[token].end - tokens_[token].begin)
               : std::string_view();
  }
  std::size_t Closing(std::size_t token) const;  // of a bracket
  std::size_t Parse(std::size_t token, int parent);
  void ParseScope(std::size_t begin, std::size_t end);
  int Add(Statement::Kind kind, std::size_t token, int parent);
  // Whether `outer` is `inner`, or around it.
  bool Encloses(int outer, int inner) const;
  bool Seen(std::size_t made, int statement) const;
  bool Varies(int statement, Group group) const;

  std::string text_;
  std::vector<Token> tokens_;
  std::vector<Statement> statements_;
};

// "Send" of "void Send<int>(int*)"; a lambda has no name.
std::string Simple(const std::string& function);

}  // namespace allranks::remedies

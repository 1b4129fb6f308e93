// A plugin of clang-tidy 19 that tools/tidy builds and loads: checks look at the code of this
// repository only. Without it they go through every declaration of every system header, drop what
// they find there, and need five times as long. Nothing else changes.
#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/AST/ASTContext.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>
#include <clang/Basic/SourceManager.h>

#include <vector>

namespace {

// Matches the unit as a whole, which comes before all that is in it, and narrows what follows.
class OwnCode : public clang::tidy::ClangTidyCheck {
 public:
  using ClangTidyCheck::ClangTidyCheck;

  void registerMatchers(clang::ast_matchers::MatchFinder* finder) override {
    finder->addMatcher(clang::ast_matchers::translationUnitDecl().bind("unit"), this);
  }

  void check(const clang::ast_matchers::MatchFinder::MatchResult& result) override {
    const clang::SourceManager& sources = *result.SourceManager;
    std::vector<clang::Decl*> own;
    for (clang::Decl* decl : result.Context->getTranslationUnitDecl()->decls()) {
      const clang::SourceLocation at = decl->getLocation();
      if (at.isValid() && !sources.isInSystemHeader(sources.getExpansionLoc(at))) {
        own.push_back(decl);
      }
    }
    result.Context->setTraversalScope(own);
  }
};

class OwnModule : public clang::tidy::ClangTidyModule {
 public:
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& factories) override {
    factories.registerCheck<OwnCode>("allranks-own-code");
  }
};

clang::tidy::ClangTidyModuleRegistry::Add<OwnModule> registered("allranks", "checks of AllRanks");

}  // namespace

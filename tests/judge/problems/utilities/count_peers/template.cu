#include "problem.h"

// >>> edit
extern "C" std::size_t answer(const Args&, void*, std::size_t) { return 0; }
// <<< edit

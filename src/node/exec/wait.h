// Waiting: how a path that spins is recognised, parked and woken, so that waiting costs nothing
// however long it lasts.
//
// Theory of operation. flow.h has marked the back edges of loops that could be waits. When a path
// takes such an edge the loop is *watched*: branches taken, bytes read, operands of compares and
// lengths of sleeps are written down (a signature of the iteration). An iteration that changes
// memory, or in which lanes of several paths meet, is no waiting: the notes are thrown away. A
// store that finds its own value is noted like a load: should somebody else change those bytes, the
// loop would write them again. When two
// iterations in a row have the same signature and every register carried around the loop is either
// unchanged or has moved twice by the same amount, the future is known: the loop goes on like this
// until a byte it read changes, or until a compare whose operands move (with the clock, or by
// count) changes its outcome. The path is *parked* with watches on the bytes and, if there is such
// a compare, a timer set a little before the change, from where it is executed again.
//
// Waking puts the path onto the grid of its polls: it resumes at the start of the iteration whose
// load is the first to see the write, its carried registers moved on by the skipped iterations.
// So parking cannot be noticed by the program, except by its speed.
#pragma once

#include <cstdint>

#include "node/exec/world.h"
#include "node/state/spin_state.h"

namespace allranks::node {

// How many further iterations certainly have the outcome the compare has now, when its operands
// a, b move by da, db in each (and may be off by `slack`). kForever if it never changes.
inline constexpr std::uint64_t kForever = ~std::uint64_t{0};
std::uint64_t StableIterations(const CompareCode& compare, std::uint64_t a, std::uint64_t b,
                               std::int64_t da, std::int64_t db, std::int64_t slack);

}  // namespace allranks::node
